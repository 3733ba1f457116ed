"""The task ``image_captioning``: features of images as .npy files -> words.

DATA holds what ``fairseq-preprocess --only-source`` makes of the captions (dict.txt, train.bin ..)
and, for each of them, SPLIT.features: line N names the feature file of caption N. An image with
several captions stands on as many lines.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, indexed_dataset
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II
from torch import Tensor

from ...common.empty_files import binarised_lines
from ...common.fast_search import fast_search
from ...common.search_options import SOURCE_WORDS, refuse_options
from ...compat.user_errors import SPLIT_OPTIONS
from ..metrics import bleu_sums, log_bleu, log_cider
from ..validation_search import UNKNOWN, search_options
from .dataset import CaptionDataset, feature_paths


@dataclass
class ImageCaptioningConfig(FairseqDataclass):
    """Options of ``image_captioning``: its files, and the scores in validation."""

    data: Optional[str] = field(
        default=None, metadata={"help": "folder of the captions and of SPLIT.features"}
    )
    features: Optional[str] = field(
        default=None,
        metadata={"help": "folder of the .npy files that SPLIT.features names (default: DATA)"},
    )
    max_target_positions: int = field(
        default=1024, metadata={"help": "maximum length of a caption in tokens, its end included"}
    )
    eval_bleu: bool = field(
        default=False,
        metadata={
            "help": "log BLEU of captions in validation (bleu), against all captions of an image"
        },
    )
    eval_cider: bool = field(
        default=False, metadata={"help": "log CIDEr-D of captions in validation (cider)"}
    )
    eval_args: str = field(
        default="{}",
        metadata={"help": "options of the search for both scores, as JSON: '{\"beam\": 4}'"},
    )
    dataset_impl: Optional[str] = II("dataset.dataset_impl")
    train_subset: str = II("dataset.train_subset")
    valid_subset: str = II("dataset.valid_subset")


@register_task("image_captioning", dataclass=ImageCaptioningConfig)
class ImageCaptioningTask(FairseqTask):
    """Words from features of images."""

    def __init__(self, cfg: ImageCaptioningConfig, dictionary: Dictionary):
        super().__init__(cfg)
        self.dictionary = dictionary

    @classmethod
    def setup_task(cls, cfg: ImageCaptioningConfig, **_unused: Any) -> "ImageCaptioningTask":
        """Return the task; FileNotFoundError for a folder without a dictionary."""
        path = Path(cfg.data or "") / "dict.txt"
        if not path.is_file():
            raise FileNotFoundError(
                f"there is no {path}; run fairseq-preprocess --only-source on the captions"
            )
        return cls(cfg, Dictionary.load(str(path)))

    def load_dataset(
        self, split: str, epoch: int = 1, combine: bool = False, **_unused: Any
    ) -> None:
        """Read a split.

        Raises FileNotFoundError, naming the file, without captions or the list of their features,
        and ValueError for captions or a list that cannot be used.
        """
        stem = os.path.join(self.cfg.data, split)
        # fairseq would join train and train1; SPLIT.features names the images of one file
        if combine and indexed_dataset.infer_dataset_impl(f"{stem}1") is not None:
            raise ValueError(
                f"{stem}1.idx: image_captioning reads one file of captions for {split}; allowed: "
                f"{stem} alone"
            )
        empty = f"{stem}: holds no caption"
        captions = binarised_lines(stem, self.dictionary, self.cfg.dataset_impl, empty)
        if captions is None:
            raise FileNotFoundError(
                f"there are no captions {stem}.bin, {stem}.idx of the split {split!r} "
                f"({SPLIT_OPTIONS})"
            )
        folder = self.cfg.features or self.cfg.data
        paths = feature_paths(folder, self.cfg.data, split, len(captions))
        is_training = split == self.cfg.train_subset
        dataset = CaptionDataset(paths, self.dictionary, captions, is_training, split)
        # of a large training set they take time: only if it is validated as well
        is_scored = not is_training or split in self.cfg.valid_subset.split(",")
        if self.is_scoring and is_scored:
            dataset.read_references(self.cfg.eval_cider)
        self.datasets[split] = dataset

    @property
    def is_scoring(self) -> bool:
        """True if validation scores captions."""
        return self.cfg.eval_bleu or self.cfg.eval_cider

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Return the model; ValueError for search options that are no JSON object or not used."""
        model = super().build_model(cfg, from_checkpoint)
        if self.is_scoring:
            # built here, as every task of fairseq does that generates in validation
            options = search_options("--eval-args", self.cfg.eval_args)
            self.generator = self.build_generator([model], options)
        elif self.cfg.eval_args != "{}":
            raise ValueError(
                f"--eval-args {self.cfg.eval_args}: is of --eval-bleu and --eval-cider; give one"
            )
        return model

    def valid_step(
        self, sample: Dict[str, Any], model: BaseFairseqModel, criterion: FairseqCriterion
    ) -> Tuple[Tensor, int, Dict[str, Any]]:
        """Return loss, sample size and sums to be logged, scores of captions among them."""
        loss, sample_size, log = super().valid_step(sample, model, criterion)
        if self.is_scoring:
            log = {**log, **self._score(sample, model)}
        return loss, sample_size, log

    def _score(self, sample: Dict[str, Any], model: BaseFairseqModel) -> Dict[str, Any]:
        """Return sums over the images whose scored caption is in the batch."""
        lists = self.inference_step(self.generator, [model], sample)
        tokens = [nbest[0]["tokens"].int().cpu() for nbest in lists]
        lines = [self.dictionary.string(words, unk_string=UNKNOWN[0]) for words in tokens]
        # an image is scored once, with one caption: only there are the references
        pairs = [pair for pair in zip(lines, sample["references"]) if pair[1]]
        hypotheses, references = [line for line, _ in pairs], [texts for _, texts in pairs]
        sums = bleu_sums(hypotheses, references) if self.cfg.eval_bleu else {}
        if self.cfg.eval_cider:
            sums.update(self.datasets[sample["subset"]].cider.sums(hypotheses, references))
        return sums

    def reduce_metrics(
        self, logging_outputs: List[Dict[str, Any]], criterion: FairseqCriterion
    ) -> None:
        """Log the values of the criterion, and scores of captions where there are any."""
        super().reduce_metrics(logging_outputs, criterion)
        if any("_bleu_sys_len" in log for log in logging_outputs):
            log_bleu(logging_outputs)
        if any("_cider_sum" in log for log in logging_outputs):
            log_cider(logging_outputs)

    def get_interactive_tokens_and_lengths(
        self, lines: List[str], encode_fn: Callable[[str], str]
    ) -> Tuple[List[str], List[int]]:
        """Return the feature files that the lines name, as SPLIT.features does; lengths are 1.

        A file that is not in the folder of the features may also be named from where one stands.
        """
        folder = self.cfg.features or self.cfg.data
        names = [line.strip() for line in lines]
        paths = [os.path.join(folder, name) for name in names]
        paths = [path if os.path.isfile(path) else name for path, name in zip(paths, names)]
        return paths, [1] * len(lines)

    def build_dataset_for_inference(
        self, src_tokens: List[str], src_lengths: Sequence[int], constraints: Any = None
    ) -> CaptionDataset:
        """Return the images of fairseq-interactive, without captions."""
        return CaptionDataset(src_tokens, self.dictionary)

    def build_generator(self, models: List[BaseFairseqModel], args: Any, **options: Any) -> Any:
        """Return fairseq's search by ``common/beam_search.py``."""
        refuse_options(args, SOURCE_WORDS, "the source is an image and has no words")
        return super().build_generator(models, args, **fast_search(args, options))

    def max_positions(self) -> Tuple[None, int]:
        """Return the limits of features and captions: none, and in tokens."""
        return None, self.cfg.max_target_positions

    @property
    def source_dictionary(self) -> None:
        """Return None: the source is no text."""
        return None

    @property
    def target_dictionary(self) -> Dictionary:
        """Return the dictionary of the captions."""
        return self.dictionary
