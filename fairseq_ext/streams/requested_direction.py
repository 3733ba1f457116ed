"""The direction that -s and -t ask for."""

from typing import Optional, Tuple

from ..compat.data.language_pairs import language_pairs
from .config import StreamsConfig
from .lang_pairs import check_direction
from .language_pair import LanguagePair


def requested_direction(cfg: StreamsConfig, folder: str) -> Optional[LanguagePair]:
    """Return the direction of -s and -t or, without any languages, of the data folder's pair.

    None where --lang-pairs stands alone. Training, without --lang-pairs, trains it; inference
    translates it. The options stay as the user has given them.

    Raises ValueError, naming the options, for one language of two, for names that cannot be, and
    for a folder without a binarised pair or with several.
    """
    source, target = cfg.source_lang, cfg.target_lang
    if (source is None) != (target is None):
        raise ValueError(f"-s {source} -t {target}: give both languages or neither")
    if source is None and cfg.lang_pairs:
        return None
    if source is None:
        source, target = _pair_of_files(folder)
    check_direction(source, target)
    return LanguagePair(source, target)


def _pair_of_files(folder: str) -> Tuple[str, str]:
    """Return the languages of the binarised pair; its files may be there in both directions."""
    pairs = language_pairs(folder)
    if not pairs:
        raise ValueError(f"{folder}: holds no binarised pair; give -s and -t")
    if len(set(map(frozenset, pairs))) > 1:
        present = ", ".join(map("-".join, pairs))
        raise ValueError(
            f"{folder}: holds several pairs, {present}; give -s and -t, or --lang-pairs in a "
            "training"
        )
    return pairs[0]
