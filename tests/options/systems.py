"""Every system with a very small model, as the options of fairseq's commands; data for each task.

A ``System`` is one architecture of one task. Its words are what a user would type.
"""

import random
import shutil
from typing import Callable, Dict, List, NamedTuple, Tuple

import torch
from common import inprocess
from dual.reviews import binarise, write_reviews
from fairseq import options, tasks
from twin.support import DECODER, LSTM, TRANSFORMER
from twin.test_captions_task import SIZES as CAPTION
from twin.test_captions_task import prepared as captions
from twin.test_speech_task import SIZES as SPEECH

DUAL = "--embed-dim 12 --ffn-embed-dim 16 --attention-heads 2 --layers 1"
ROUTED = "--embed-dim 10 --hidden-size 8 --attention-size 8"
MULTIWAY = (
    "--embed-dim 10 --hidden-size 12 --context-size 10 --readout-size 9 --init-hidden-size 7 "
    "--init-size 8"
)
ADAM = "--optimizer adam --lr 0.01 --clip-norm 1 --seed 3"
SMOOTHED = "--criterion label_smoothed_cross_entropy --label-smoothing 0.1"


def flat(sizes: Dict[str, object]) -> str:
    """{option: value} -> "option value option value"."""
    return " ".join(f"{name} {value}" for name, value in sizes.items())


class System(NamedTuple):
    """An architecture of a task.

    task, arch: their names. data: name of a fixture of ``Data``. model, training: options of
    fairseq-train. inference: what fairseq-generate is given besides. lines: of the standard input
    of fairseq-interactive, or none where it has none.
    """

    task: str
    arch: str
    data: str
    model: str
    training: str = SMOOTHED
    inference: str = "-s xx -t yy"
    lines: Tuple[str, ...] = ("an1 av2 an3", "an4 av5 an6 at1")

    def words(self, data, *more) -> List[object]:
        """Of fairseq-train."""
        named = ["--task", self.task, "--arch", self.arch]
        return [data, *named, *f"{self.model} {self.training} {ADAM}".split(), *more]

    def inference_words(self, data, checkpoint, *more) -> List[object]:
        """Of fairseq-generate."""
        named = ["--task", self.task, "--path", checkpoint, "--gen-subset", "valid"]
        return [data, *named, *self.inference.split(), *more]


TRANSLATION = "-s xx -t yy"
LABELS = "--criterion label_cross_entropy"
LINES = ("good film was it", "the plot of it and bad")
SYSTEMS = {
    "dual_transformer": System(
        "dual_translation", "dual_transformer", "two", f"{DUAL} {TRANSLATION}"
    ),
    "dual_supervised_transformer": System(
        "dual_translation",
        "dual_supervised_transformer",
        "two",
        f"{flat(TRANSFORMER)} {TRANSLATION}",
    ),
    "tagged_transformer": System(
        "dual_translation", "tagged_transformer", "two", f"{flat(TRANSFORMER)} {TRANSLATION}"
    ),
    "dual_lstm_classifier": System(
        "dual_translation",
        "dual_lstm_classifier",
        "reviews",
        "--embed-dim 5 --hidden-size 6 -s text -t label",
        "--criterion dual_label_cross_entropy",
        "-s text -t label",
        LINES,
    ),
    "multiway_gru": System(
        "multiway_translation", "multiway_gru", "three", f"{MULTIWAY} --lang-pairs xx-yy,xx-zz"
    ),
    "routed_gru": System(
        "routed_mtl",
        "routed_gru",
        "three",
        f"{ROUTED} --decoder-layers 2 --lang-pairs xx-yy,xx-zz --main-pair xx-yy",
    ),
    "mtl_partial_gru": System(
        "routed_mtl",
        "mtl_partial_gru",
        "three",
        f"{ROUTED} --lang-pairs xx-yy,xx-zz --main-pair xx-yy",
    ),
    "transformer": System(
        "fast_translation", "transformer", "two", f"{flat(TRANSFORMER)} {TRANSLATION}"
    ),
    "duo_transformer": System(
        "fast_translation", "duo_transformer", "two", f"{DUAL} {TRANSLATION}"
    ),
    "twin_lstm": System(
        "fast_translation", "twin_lstm", "two", f"{flat(LSTM)} {TRANSLATION}", "--criterion twin"
    ),
    "twin_transformer": System(
        "fast_translation",
        "twin_transformer",
        "two",
        f"{flat(TRANSFORMER)} {TRANSLATION}",
        "--criterion twin",
    ),
    "duo_classifier": System(
        "text_classification",
        "duo_classifier",
        "reviews",
        "--embed-dim-s 6 --embed-dim-p 5 --ffn-embed-dim 8",
        LABELS,
        "",
        LINES,
    ),
    "duo_classifier_mean_mlp": System(
        "text_classification",
        "duo_classifier_mean_mlp",
        "reviews",
        "--embed-dim-s 6 --ffn-embed-dim 8",
        LABELS,
        "",
        LINES,
    ),
    "twin_caption_lstm": System(
        "image_captioning",
        "twin_caption_lstm",
        "captions",
        " ".join(map(str, CAPTION)),
        "--criterion twin",
        "--max-len-b 6",
        (),
    ),
    "twin_caption_attention": System(
        "image_captioning",
        "twin_caption_attention",
        "captions",
        " ".join(map(str, [*CAPTION, "--attention-size", 8])),
        "--criterion twin",
        "--max-len-b 6",
        (),
    ),
    "twin_speech_lstm": System(
        "speech_to_text",
        "twin_speech_lstm",
        "speech",
        flat(SPEECH),
        "--criterion twin",
        "--max-len-b 6",
        (),
    ),
    "twin_lstm_lm": System(
        "language_modeling",
        "twin_lstm_lm",
        "language",
        f"{flat(DECODER)} --sample-break-mode eos",
        "--criterion twin",
        "--sample-break-mode eos",
        (),
    ),
    "gru_lm": System(
        "language_modeling",
        "gru_lm",
        "language",
        "--embed-dim 6 --hidden-size 7 --sample-break-mode eos",
        "--criterion cross_entropy",
        "--sample-break-mode eos",
        (),
    ),
}


class Data:
    """The folder of each kind of data, made when first asked for.

    Args:
        toy_corpus: of conftest.py.
        folder: function (name) -> a new folder.
    """

    def __init__(self, toy_corpus, folder: Callable):
        self.toy_corpus, self.folder, self.folders = toy_corpus, folder, {}

    def __getitem__(self, name: str):
        if name not in self.folders:
            self.folders[name] = getattr(self, f"_{name}")()
        return self.folders[name]

    def _two(self):
        return self.toy_corpus.two

    def _three(self):
        return self.toy_corpus.three

    def _reviews(self):
        folder = self.folder("reviews")
        write_reviews(folder, random.Random(3))
        return binarise(folder)

    def _captions(self):
        return captions(self.folder("captions"), {"train": 40, "valid": 8})

    def _speech(self):
        from twin.recordings import prepared

        return prepared(self.folder("speech"), {"train": 24, "valid": 6})

    def _language(self):
        folder = self.folder("language")
        for path in self.toy_corpus.two.glob("*.xx-yy.yy.*"):
            split, _, _, kind = path.name.split(".")
            shutil.copy(path, folder / f"{split}.{kind}")
        shutil.copy(self.toy_corpus.two / "dict.yy.txt", folder / "dict.txt")
        return folder


def built(system: System, data, *more):
    """Configuration, task and model of a run."""
    words = system.words(data, *more)
    cfg = inprocess.configuration(options.get_training_parser(), words)
    task = tasks.setup_task(cfg.task)
    return cfg, task, task.build_model(cfg.model)


def first_batch(task, split: str = "valid"):
    """A batch of one pair or of the whole task."""
    task.load_dataset(split)
    dataset = task.dataset(split)
    if hasattr(dataset, "datasets"):
        pair, dataset = next(iter(dataset.datasets.items()))
        batch = dataset.collater([dataset[number] for number in range(3)])
        batch["net_input"]["pair"] = pair
        return batch
    return dataset.collater([dataset[number] for number in range(3)])


def output_of(model, batch) -> torch.Tensor:
    """The first output of the model: logits or scores."""
    with torch.no_grad():
        output = model(**batch["net_input"])
    return output[0].float()
