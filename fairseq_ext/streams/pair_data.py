"""Dictionaries and the sentences of one pair of a split, and errors that name the file."""

import os
from typing import Mapping, Sequence, Type

from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.tasks.translation import load_langpair_dataset

from ..common.empty_files import empty_file_as
from ..compat.user_errors import SPLIT_OPTIONS, raw_text_note
from .config import StreamsConfig
from .language_pair import LanguagePair


def load_dictionary(
    paths: Sequence[str], lang: str, kind: Type[Dictionary] = Dictionary
) -> Dictionary:
    """Return dict.LANG.txt of the first data folder; ValueError, naming the file, without it.

    kind: the class of the dictionary.
    """
    name = os.path.join(paths[0], f"dict.{lang}.txt")
    if not os.path.exists(name):
        raise ValueError(
            f"{name}: no dictionary for language {lang!r}; the data folder must come from "
            "fairseq-preprocess and hold dict.LANG.txt for every language of the model"
        )
    return kind.load(name)


def load_pair(
    cfg: StreamsConfig,
    dictionaries: Mapping[str, Dictionary],
    path: str,
    split: str,
    pair: str,
    combine: bool,
    can_lack_targets: bool,
    max_source_tokens: int,
) -> LanguagePairDataset:
    """Return ``split`` of ``pair`` in a folder, read by fairseq's ``load_langpair_dataset``.

    Args:
        cfg, dictionaries: the task's.
        path: of fairseq-preprocess.
        split, pair: such as "train" and "de-en"; files of "en-de" do as well.
        combine: read split1, split2 .. as well; --upsample-primary repeats the training set alone.
        can_lack_targets: True where sources are to be translated.
        max_source_tokens: the length to which --truncate-source cuts.

    Raises FileNotFoundError for missing files and ValueError for empty ones, naming the folder.
    """
    source, target = LanguagePair.parse(pair)
    empty = f"{path}: {split} of the pair {pair} holds no sentence"
    try:
        with empty_file_as(empty):
            dataset = load_langpair_dataset(
                path,
                split,
                source,
                dictionaries[source],
                target,
                dictionaries[target],
                combine=combine,
                dataset_impl=cfg.dataset_impl,
                upsample_primary=cfg.upsample_primary if split == cfg.train_subset else 1,
                left_pad_source=cfg.left_pad_source,
                left_pad_target=cfg.left_pad_target,  # False: ``setup_task`` refuses True
                max_source_positions=max_source_tokens,
                max_target_positions=cfg.max_target_positions,
                load_alignments=cfg.load_alignments,
                truncate_source=cfg.truncate_source,
                num_buckets=cfg.num_batch_buckets,
                pad_to_multiple=cfg.required_seq_len_multiple,
                shuffle=(split != "test"),  # as in fairseq's translation task
            )
    except FileNotFoundError as error:
        of_pair = (f"{split}.{source}-{target}.", f"{split}.{target}-{source}.")
        note = raw_text_note(path, split, of_pair)
        raise FileNotFoundError(
            f"{path}: no {split}.{source}-{target} or {split}.{target}-{source} for the pair "
            f"{pair} ({SPLIT_OPTIONS}){note}"
        ) from error
    if dataset.tgt is None and not can_lack_targets:
        raise FileNotFoundError(f"{path}: {split} of the pair {pair} has no sentences of {target}")
    if len(dataset) == 0:
        raise ValueError(empty)
    return dataset
