"""One dictionary for embeddings that languages share."""

import pytest
from fairseq.data import Dictionary

from fairseq_ext.common.joined_dictionary import check_joined


def dictionary(words):
    entries = Dictionary()
    for word in words:
        entries.add_symbol(word)
    return entries


def test_equal_sizes_are_not_enough():
    """Entry N has to be the same word everywhere."""
    check_joined({"de": dictionary("ab"), "en": dictionary("ab")}, "--share-all-embeddings")
    message = r"^--x: the dictionaries of de \(6 entries\) and fr \(6 entries\) differ; binarise "
    parts = {"de": dictionary("ab"), "en": dictionary("ab"), "fr": dictionary("ba")}
    with pytest.raises(ValueError, match=message + "with --joined-dictionary$"):
        check_joined(parts, "--x")
    with pytest.raises(ValueError, match=message):
        check_joined({"de": parts["de"], "fr": parts["fr"]}, "--x")
