"""Unknown words are replaced by way of the alignment."""

import pytest
from fairseq.data import Dictionary

from fairseq_ext.compat.generation.unknown_words import text_with_unknown_replaced


def test_replacing_by_hand():
    dictionary = Dictionary()
    word, unknown, end = dictionary.add_symbol("b"), dictionary.unk(), dictionary.eos()
    tokens = [unknown, word, dictionary.bos(), unknown, unknown, end]
    alignment = [(1, 0), (0, 1), (0, 2), (0, 3)]

    def text(alignment, source):
        return text_with_unknown_replaced(tokens, dictionary, {end}, source, alignment, {"q": "Q"})

    assert text(alignment, ["p", "q"]) == "Q b p <unk>"
    with pytest.raises(ValueError, match="--replace-unk: word 1 is aligned to source word 2 of 1"):
        text(alignment, ["p"])
