"""What --lang-pairs, or -s and -t, may say, and what may be the name of a language."""

import re
from typing import Iterable, List, Optional

from torch.nn import ModuleDict

from ..common.named_values import entries
from .language_pair import LABEL, MONO, LanguagePair, label_of, languages, pair_of


def parse_lang_pairs(text: str) -> List[str]:
    """Return the pairs of "de-en,fr-en", without those that have a label, such as "de-en@bt".

    ValueError for anything else than distinct pairs, and where none is without a label.
    """
    pairs = [name for name in _names(text) if not label_of(name)]
    if not pairs:
        raise ValueError(f"--lang-pairs {text!r}: names no pair")
    return pairs


def parse_labelled_pairs(text: Optional[str]) -> List[str]:
    """Return the pairs of "de-en,de-en@bt" that have a label: synthetic ones, in a folder of it."""
    return [name for name in _names(text or "") if label_of(name)]


def _names(text: str) -> List[str]:
    """Return the entries of --lang-pairs; ValueError for what is no name and for repeated ones."""
    names = entries(text)
    for name in names:
        if not _is_of_two_languages(pair_of(name)):
            raise ValueError(
                f"--lang-pairs {text!r}: {name!r} is not of the form SOURCE-TARGET "
                "with two different languages without a dash in their names"
            )
        # the label is the name of a folder
        if LABEL in name and not re.fullmatch(r"\w+", label_of(name)):
            raise ValueError(
                f"--lang-pairs {text!r}: {name!r} is not of the form SOURCE-TARGET@LABEL; allowed "
                "in a label: letters, digits and _"
            )
        if label_of(name) == MONO:
            raise ValueError(
                f"--lang-pairs {text!r}: {name!r}: the label {MONO} is that of pairs made in "
                "training; name the language with --monolingual"
            )
    check_languages(languages(map(pair_of, names)))
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"--lang-pairs {text!r}: {repeated[0]!r} is named twice")
    return names


def _is_of_two_languages(text: str) -> bool:
    """True if ``text`` is a pair of different languages."""
    try:
        source, target = LanguagePair.parse(text)
    except ValueError:
        return False
    return source != target


def check_languages(names: Iterable[str]) -> None:
    """Raise ValueError for a name that torch does not take for a part of a model."""
    for name in names:
        # the entries of a ModuleDict become its attributes
        if "." in name or hasattr(ModuleDict, name):
            raise ValueError(
                f"language {name!r}: allowed: a name without a dot that is no attribute of "
                f"torch.nn.ModuleDict, such as {name.replace('.', '')}_"
            )


def check_direction(source: str, target: str) -> None:
    """Raise ValueError unless -s and -t name two different languages that a model can have."""
    if source == target or not source or not target or "-" in source + target:
        raise ValueError(
            f"-s {source} -t {target}: must be two different languages without a dash in their "
            "names"
        )
    check_languages([*source.split("+"), target])
