"""Monolingual text: lines that are translated in training (--monolingual)."""

import itertools
import logging
import os
from typing import List, Optional, Sequence

import numpy as np
from fairseq.data import ConcatDataset, Dictionary, FairseqDataset, LanguagePairDataset
from fairseq.data.indexed_dataset import dataset_exists

from ..common.empty_files import binarised_lines
from ..common.named_values import entries
from ..compat.user_errors import raw_text_note
from .config import StreamsConfig
from .language_pair import LABEL, MONO, languages, reverse_of, target_of
from .marked_sources import marked

logger = logging.getLogger(__name__)


def parse_monolingual(text: Optional[str], pairs: Sequence[str]) -> List[str]:
    """Return the languages of "de,en"; ValueError for others than those of ``pairs``."""
    langs = entries(text)
    if text is not None and not langs:
        raise ValueError(f"--monolingual {text!r}: names no language")
    for lang in langs:
        if lang not in languages(pairs):
            raise ValueError(
                f"--monolingual {text!r}: {lang!r} is none of {', '.join(languages(pairs))}"
            )
        if langs.count(lang) > 1:
            raise ValueError(f"--monolingual {text!r}: {lang!r} is named twice")
    return langs


def monolingual_streams(text: Optional[str], pairs: Sequence[str], of: Sequence[str]) -> List[str]:
    """Return the streams of --monolingual: X-Y@mono for each X-Y whose reverse translates Y.

    Args:
        text: of the option.
        pairs: directions of the run.
        of: those of them that may be trained on synthetic pairs.

    Raises ValueError for a language of which there is no such direction.
    """
    streams: List[str] = []
    for lang in parse_monolingual(text, pairs):
        into = [pair for pair in of if target_of(pair) == lang]
        if not into:
            raise ValueError(
                f"--monolingual {text}: no pair that may be trained on its lines translates into "
                f"{lang}; the pairs are {', '.join(of)}"
            )
        both = [pair for pair in into if reverse_of(pair) in pairs]
        if not both:
            raise ValueError(
                f"--monolingual {text}: the sources of {', '.join(into)} would be translations "
                f"from {lang} by {', '.join(map(reverse_of, into))}, which is not trained; add it "
                "to --lang-pairs (dual_translation: leave out --one-way)"
            )
        streams += [f"{pair}{LABEL}{MONO}" for pair in both]
    return streams


class MonolingualLines(LanguagePairDataset):
    """Lines of a language as sources and as targets; those that are not ``usable`` (N,) are out."""

    usable: np.ndarray

    def ordered_indices(self) -> np.ndarray:
        """Return the numbers of the usable lines in the order in which batches are cut."""
        indices = super().ordered_indices()
        return indices[self.usable[indices]]


def load_lines(
    cfg: StreamsConfig,
    dictionary: Dictionary,
    path: str,
    split: str,
    lang: str,
    combine: bool,
    marks: Sequence[int],
) -> MonolingualLines:
    """Return the lines of a language in a data folder.

    Args:
        cfg: the task's.
        dictionary: of the language.
        path, split, lang: of fairseq-preprocess --only-source: PATH/SPLIT.LANG-None.LANG.
        combine: read split1, split2 .. as well.
        marks: tokens in front of every line as a source.

    Raises FileNotFoundError without the file, ValueError where no line can be used.
    """
    lines = _lines(cfg, dictionary, path, split, lang, combine)
    sizes = np.asarray(lines.sizes)
    # the limits count the end symbol, as sizes do, and the option does not
    longest = min(cfg.max_source_positions - len(marks), cfg.max_target_positions)
    if cfg.monolingual_max_len:
        longest = min(longest, cfg.monolingual_max_len + 1)
    empty, long = sizes <= 1, sizes > longest
    usable = ~(empty | long)
    place = f"{path}: {split}.{lang}-None.{lang}"
    if not usable.any():
        raise ValueError(
            f"{place}: no line can be used: of {len(sizes)} lines {int(empty.sum())} are empty and "
            f"{int(long.sum())} have more than {longest - 1} tokens (--monolingual-max-len, "
            "--max-source-positions, --max-target-positions)"
        )
    logger.info(
        f"{place}: {int(usable.sum())} lines; left out are {int(empty.sum())} empty ones and "
        f"{int(long.sum())} of more than {longest - 1} tokens"
    )
    source = marked(lines, marks)
    dataset = MonolingualLines(
        source,
        source.sizes,
        dictionary,
        lines,
        sizes,
        dictionary,
        left_pad_source=cfg.left_pad_source,
        left_pad_target=cfg.left_pad_target,
        pad_to_multiple=cfg.required_seq_len_multiple,
    )
    dataset.usable = usable
    return dataset


def _lines(
    cfg: StreamsConfig, dictionary: Dictionary, path: str, split: str, lang: str, combine: bool
) -> FairseqDataset:
    """Return the lines of all files; an error, with the file, where there is none."""
    parts = []
    for number in itertools.count():
        name = f"{split}{number or ''}.{lang}-None.{lang}"
        prefix = os.path.join(path, name)
        if not dataset_exists(prefix, cfg.dataset_impl):
            break
        empty = f"{prefix}: holds no line (--monolingual {lang})"
        parts.append(binarised_lines(prefix, dictionary, cfg.dataset_impl, empty))
        if not combine:
            break
    if not parts:
        raise FileNotFoundError(
            f"{path}: no {split}.{lang}-None.{lang} for --monolingual {lang}; fairseq-preprocess "
            f"--only-source -s {lang} --srcdict {path}/dict.{lang}.txt makes it"
            + raw_text_note(path, split, (f"{split}.{lang}-None.",))
        )
    return parts[0] if len(parts) == 1 else ConcatDataset(parts)
