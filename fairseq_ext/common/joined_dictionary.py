"""One dictionary of all languages, which embeddings that are shared between them need."""

from typing import Mapping

from fairseq.data import Dictionary


def check_joined(dictionaries: Mapping[str, Dictionary], option: str) -> None:
    """Raise ValueError, naming the option, unless all languages have the same dictionary.

    dictionaries: {lang, or side: dictionary}.
    """
    langs = list(dictionaries)
    # equal sizes are not enough: entry N has to be the same word everywhere
    first = dictionaries[langs[0]]
    for lang in langs[1:]:
        other = dictionaries[lang]
        if first != other:
            raise ValueError(
                f"{option}: the dictionaries of {langs[0]} ({len(first)} entries) "
                f"and {lang} ({len(other)} entries) differ; binarise with --joined-dictionary"
            )
