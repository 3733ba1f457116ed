"""The direction that -s and -t ask for."""

import os
from typing import Optional, Tuple

from .config import StreamsConfig
from .lang_pairs import check_direction
from .language_pair import LanguagePair


def requested_direction(cfg: StreamsConfig, folder: str) -> Optional[LanguagePair]:
    """Return the direction of -s and -t or, without any languages, of the data folder's pair.

    None where --lang-pairs stands alone. Training, without --lang-pairs, trains it; inference
    translates it. The options stay as the user has given them.

    Raises ValueError, naming the options, for one language of two, for names that cannot be, and
    for a folder without a binarised pair.
    """
    source, target = cfg.source_lang, cfg.target_lang
    if (source is None) != (target is None):
        raise ValueError(f"-s {source} -t {target}: give both languages or neither")
    if source is None and cfg.lang_pairs:
        return None
    if source is None:
        # from the names of the files, SPLIT.SRC-TGT.LANG: (None, None) where there are none
        source, target = _pair_of_files(folder)
        if source is None:
            raise ValueError(f"{folder}: holds no binarised pair; give -s and -t")
    check_direction(source, target)
    return LanguagePair(source, target)


def _pair_of_files(folder: str) -> Tuple[Optional[str], Optional[str]]:
    """Return the languages of the first binarised pair; (None, None) where there is none.

    As fairseq's ``infer_language_pair``, which takes monolingual text, train.de-None.de, for a
    pair as well.
    """
    for name in sorted(os.listdir(folder)):
        parts = name.split(".")
        langs = parts[1].split("-") if len(parts) >= 3 else []
        if len(langs) == 2 and langs[1] != "None":
            return langs[0], langs[1]
    return None, None
