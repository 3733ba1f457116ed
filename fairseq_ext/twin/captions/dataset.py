"""The data of ``image_captioning``: the feature file of each image, and what its captions say.

Dimensions: B images, P positions, D features, T words.
"""

import os
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Tuple
from zipfile import BadZipFile

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from torch import Tensor

from ...compat.text_lines import lines_of
from ...compat.user_errors import SPLIT_OPTIONS
from ..metrics import Cider
from ..validation_search import UNKNOWN


def read_features(path: str) -> Tensor:
    """Return the features (P, D) float32 of a file: one row, rows of positions, or a grid of them.

    Raises ValueError naming the file unless it is a .npy file of numbers.
    """
    try:
        array = np.load(path)
    except (OSError, ValueError, EOFError, BadZipFile) as error:  # a .npz is a zip
        raise ValueError(f"{path}: no .npy file of features: {error}") from error
    is_array = isinstance(array, np.ndarray) and array.ndim > 0 and array.size > 0
    if not is_array or array.dtype.kind not in "fiu":
        raise ValueError(f"{path}: no .npy file of features: allowed: an array of numbers")
    # a grid of positions becomes rows; a single vector is one row
    return torch.from_numpy(np.atleast_2d(array).reshape(-1, array.shape[-1])).float()


def feature_paths(folder: str, data: str, split: str, count: int) -> List[str]:
    """Return the files that DATA/SPLIT.features names, one for each of ``count`` captions.

    Raises FileNotFoundError without that list, and ValueError, naming the line, where it names a
    file that does not exist, and for too few or many lines.
    """
    names_file = Path(data) / f"{split}.features"
    if not names_file.is_file():
        raise FileNotFoundError(
            f"there is no {names_file}, which names the feature file of each caption of the split "
            f"{split!r} ({SPLIT_OPTIONS})"
        )
    # a caption without a line would get the features of another
    names = list(lines_of(names_file))
    if len(names) != count:
        raise ValueError(f"{names_file} has {len(names)} lines, there are {count} captions")
    paths = [os.path.join(folder, name) for name in names]
    # an image with five captions is looked up once
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
        subset: name of the set, which batches with references carry.

    Where captions are to be scored, ``read_references`` fills ``references``, {number of the
    caption with which an image is scored: all captions of the image as text}, and ``cider``.
    """

    def __init__(
        self,
        paths: List[str],
        dictionary: Dictionary,
        captions: Any = None,
        shuffle: bool = False,
        subset: str = "",
    ):
        self.paths, self.dictionary, self.captions = paths, dictionary, captions
        self.shuffle, self.subset = shuffle, subset
        self.texts: Dict[str, List[str]] = {}  # {feature file: captions}
        self.references: Dict[int, List[str]] = {}
        self.cider: Optional[Cider] = None
        if captions is None:
            # without captions all images count alike in a batch
            self.lengths = np.ones(len(paths), dtype=np.int64)
        else:
            self.lengths = np.array(captions.sizes)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Dict[str, Any]:
        return {
            "id": index,
            "source": read_features(self.paths[index]),
            "target": None if self.captions is None else self.captions[index].long(),
        }

    @property
    def sizes(self) -> np.ndarray:
        """Return the lengths of the captions in tokens."""
        return self.lengths

    def num_tokens(self, index: int) -> int:
        """Return the length of a caption in tokens."""
        return self.lengths[index]

    def size(self, index: int) -> Tuple[None, int]:
        """Return the size of the features (without a limit) and of the caption."""
        # fairseq compares it with the limits of source and target; None is no limit
        return None, self.lengths[index]

    def ordered_indices(self) -> np.ndarray:
        """Return all numbers by length, so that batches have little padding."""
        # drawn under --seed: fairseq seeds NumPy around this call
        # a stable sort: equal lengths stay as drawn
        order = np.random.permutation(len(self)) if self.shuffle else np.arange(len(self))
        return order[np.argsort(self.lengths[order], kind="stable")]

    def collater(self, samples: List[Dict[str, Any]]) -> Dict[str, Any]:
        """Return a batch of features (B, P, D), their numbers (B,) and captions (B, T)."""
        # fairseq asks for an empty batch on workers that have run out of data
        if not samples:
            return {}
        sources = [sample["source"] for sample in samples]
        lengths = torch.tensor([len(source) for source in sources])
        # images may have different numbers of positions
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
            # the end symbol in front: teacher forcing
            batch["net_input"]["prev_output_tokens"] = self._collate(targets, shift=True)
        # an image is scored with one caption; the others have nothing to compare with
        if self.texts:
            batch["subset"] = self.subset
            batch["references"] = [self.references.get(sample["id"], []) for sample in samples]
        return batch

    def read_references(self, for_cider: bool) -> None:
        """Fill ``references`` and, if asked for, ``cider``."""
        self.texts = {}
        for number, path in enumerate(self.paths):
            text = self.dictionary.string(self.captions[number], unk_string=UNKNOWN[1])
            self.texts.setdefault(path, []).append(text)
        self._choose(range(len(self.paths)))
        # CIDEr-D counts n-grams over the images of the set that is scored
        self.cider = Cider(list(self.texts.values())) if for_cider else None

    def _choose(self, numbers: Iterable[int]) -> None:
        """Score each image with its first caption among ``numbers``."""
        first: Dict[str, int] = {}
        for number in sorted(numbers):
            first.setdefault(self.paths[number], int(number))
        self.references = {number: self.texts[path] for path, number in first.items()}

    def filter_indices_by_size(
        self, indices: np.ndarray, max_sizes: Any
    ) -> Tuple[np.ndarray, List[int]]:
        """Return the captions that are short enough, and the others, which no batch has."""
        fitting, ignored = super().filter_indices_by_size(indices, max_sizes)
        if self.texts:
            self._choose(fitting)
        return fitting, ignored

    def _collate(self, targets: List[Tensor], shift: bool = False) -> Tensor:
        """Return captions (B, T), padded at the end; ``shift``: as the decoder's inputs."""
        pad, eos = self.dictionary.pad(), self.dictionary.eos()
        return data_utils.collate_tokens(targets, pad, eos, move_eos_to_beginning=shift)
