"""The task ``image_captioning``: features of images as .npy files -> words.

DATA holds what ``fairseq-preprocess --only-source`` makes of the captions (dict.txt, train.bin ..)
and, for each of them, SPLIT.features: line N names the feature file of caption N. An image with
several captions stands on as many lines.

Dimensions: B images, P positions, D features, T words.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, List, Optional
from zipfile import BadZipFile

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II

from ..common.beam_search import own_search


@dataclass
class ImageCaptioningConfig(FairseqDataclass):
    data: Optional[str] = field(
        default=None, metadata={"help": "folder of the captions and of SPLIT.features"}
    )
    features: Optional[str] = field(
        default=None,
        metadata={"help": "folder of the .npy files that SPLIT.features names (default: DATA)"},
    )
    max_target_positions: int = field(
        default=1024, metadata={"help": "the longest caption in tokens, its end included"}
    )
    dataset_impl: Optional[str] = II("dataset.dataset_impl")


def read_features(path: str) -> torch.Tensor:
    """The features of a file as (P, D) float32: one row, rows of positions, or a grid of them.

    Raises ValueError naming the file unless it is a .npy file of numbers.
    """
    try:
        array = np.load(path)
    except (OSError, ValueError, EOFError, BadZipFile) as error:  # a .npz is a zip
        raise ValueError(f"{path}: no .npy file of features: {error}") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu" or not array.size:
        raise ValueError(f"{path}: no .npy file of features: allowed: an array of numbers")
    return torch.from_numpy(np.atleast_2d(array).reshape(-1, array.shape[-1])).float()


def feature_paths(folder: str, data: str, split: str, count: int) -> List[str]:
    """The files that DATA/SPLIT.features names, one for each of ``count`` captions.

    Raises ValueError naming the line for a file that does not exist, and for too few or many lines.
    """
    names_file = Path(data) / f"{split}.features"
    if not names_file.is_file():
        raise ValueError(f"there is no {names_file}, which names the feature file of each caption")
    names = names_file.read_text(encoding="utf-8").splitlines()
    if len(names) != count:
        raise ValueError(f"{names_file} has {len(names)} lines, there are {count} captions")
    paths = [os.path.join(folder, name) for name in names]
    exists = {path: os.path.isfile(path) for path in set(paths)}
    missing = [number for number, path in enumerate(paths) if not exists[path]]
    if missing:
        more = f" (and {len(missing) - 1} lines more)" if len(missing) > 1 else ""
        raise ValueError(
            f"{names_file}, line {missing[0] + 1}: there is no {paths[missing[0]]}{more}; name "
            "their folder with --features"
        )
    return paths


class CaptionDataset(FairseqDataset):
    """Couples of a feature file and a caption.

    Args:
        paths: feature files.
        dictionary: of the words.
        captions: the captions, or None where they are to be found.
        shuffle: captions of one length in an order that is drawn, once a run.
    """

    def __init__(self, paths: List[str], dictionary: Dictionary, captions=None, shuffle=False):
        self.paths, self.dictionary, self.captions = paths, dictionary, captions
        self.shuffle = shuffle
        one_each = np.ones(len(paths), dtype=np.int64)
        self.lengths = one_each if captions is None else np.array(captions.sizes)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return {
            "id": index,
            "source": read_features(self.paths[index]),
            "target": None if self.captions is None else self.captions[index].long(),
        }

    @property
    def sizes(self):
        return self.lengths

    def num_tokens(self, index):
        return self.lengths[index]

    def size(self, index):
        """Of the features (without a limit) and of the caption."""
        return None, self.lengths[index]

    def ordered_indices(self):
        """By length, so that batches have little padding; captions of one length in any order."""
        order = np.random.permutation(len(self)) if self.shuffle else np.arange(len(self))
        return order[np.argsort(self.lengths[order], kind="stable")]

    def collater(self, samples):
        """A batch: src_tokens (B, P, D), src_lengths (B,), captions (B, T) padded at the end."""
        if not samples:
            return {}
        sources = [sample["source"] for sample in samples]
        lengths = torch.tensor([len(source) for source in sources])
        features = torch.nn.utils.rnn.pad_sequence(sources, batch_first=True)
        batch: Any = {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": len(samples),
            "net_input": {"src_tokens": features, "src_lengths": lengths},
            "target": None,
        }
        if self.captions is not None:
            targets = [sample["target"] for sample in samples]
            batch["target"] = self._collate(targets)
            batch["ntokens"] = sum(len(target) for target in targets)
            batch["net_input"]["prev_output_tokens"] = self._collate(targets, shift=True)
        return batch

    def _collate(self, targets, shift=False):
        pad, eos = self.dictionary.pad(), self.dictionary.eos()
        return data_utils.collate_tokens(targets, pad, eos, move_eos_to_beginning=shift)


@register_task("image_captioning", dataclass=ImageCaptioningConfig)
class ImageCaptioningTask(FairseqTask):
    """Words from features of images."""

    def __init__(self, cfg: ImageCaptioningConfig, dictionary: Dictionary):
        super().__init__(cfg)
        self.dictionary = dictionary

    @classmethod
    def setup_task(cls, cfg: ImageCaptioningConfig, **_unused):
        path = Path(cfg.data or "") / "dict.txt"
        if not path.is_file():
            raise ValueError(
                f"there is no {path}; run fairseq-preprocess --only-source on the captions"
            )
        return cls(cfg, Dictionary.load(str(path)))

    def load_dataset(self, split, epoch=1, combine=False, **_unused):
        """ValueError naming the file when captions or features are missing."""
        stem = os.path.join(self.cfg.data, split)
        captions = data_utils.load_indexed_dataset(stem, self.dictionary, self.cfg.dataset_impl)
        if captions is None:
            raise ValueError(f"there are no captions {stem}.bin, {stem}.idx")
        folder = self.cfg.features or self.cfg.data
        paths = feature_paths(folder, self.cfg.data, split, len(captions))
        is_training = split.startswith("train")
        self.datasets[split] = CaptionDataset(paths, self.dictionary, captions, is_training)

    def get_interactive_tokens_and_lengths(self, lines, encode_fn):
        """fairseq-interactive reads names of feature files, one a line."""
        return [line.strip() for line in lines], [1] * len(lines)

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None):
        return CaptionDataset(src_tokens, self.dictionary)

    def build_generator(self, models, args, **options):
        """fairseq's search by ``common/beam_search.py``."""
        return super().build_generator(models, args, **own_search(args, options))

    def max_positions(self):
        return None, self.cfg.max_target_positions

    @property
    def source_dictionary(self):
        return None

    @property
    def target_dictionary(self):
        return self.dictionary
