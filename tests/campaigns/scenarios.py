"""What the campaign of interrupted trainings trains: every system, on a made-up corpus."""

import random
import shutil
from pathlib import Path

OPTIMISE = ["--optimizer", "adam", "--lr", 0.005, "--clip-norm", 1, "--seed", 1, "--cpu"]
OPTIMISE += ["--num-workers", 0, "--log-format", "json", "--log-interval", 3]
OPTIMISE += ["--save-interval-updates", 7, "--max-epoch", 2]
MULTIWAY = ["--task", "multiway_translation", "--arch", "multiway_gru", "--batch-size", 40]
MULTIWAY += ["--embed-dim", 8, "--hidden-size", 8, "--context-size", 8, "--readout-size", 8]
MULTIWAY += ["--init-hidden-size", 8, "--init-size", 8, "--lang-pairs", "xx-yy,xx-zz,yy-zz"]
ROUTED = ["--task", "routed_mtl", "--arch", "routed_gru", "--embed-dim", 8, "--hidden-size", 8]
ROUTED += ["--attention-size", 8, "--lang-pairs", "xx-yy,xx-zz,yy-zz", "--main-pair", "xx-yy"]
ROUTED += ["--batch-size", 40]
DUAL = ["--task", "dual_translation", "--arch", "dual_transformer_tiny", "--embed-dim", 16]
DUAL += ["--ffn-embed-dim", 16, "--attention-heads", 2, "--layers", 1, "--dropout", 0.2]
TAGGED = ["--task", "dual_translation", "--arch", "tagged_transformer", "--share-all-embeddings"]
TAGGED += ["--encoder-layers", 1, "--decoder-layers", 1, "--encoder-embed-dim", 16]
TAGGED += ["--decoder-embed-dim", 16, "--encoder-ffn-embed-dim", 16, "--decoder-ffn-embed-dim", 16]
TAGGED += ["--encoder-attention-heads", 2, "--decoder-attention-heads", 2]
TWIN = ["--task", "translation", "--arch", "twin_transformer", "--criterion", "twin"]
TWIN += ["--encoder-layers", 1, "--decoder-layers", 1, "--encoder-embed-dim", 16]
TWIN += ["--decoder-embed-dim", 16, "--encoder-ffn-embed-dim", 16, "--decoder-ffn-embed-dim", 16]
TWIN += ["--encoder-attention-heads", 2, "--decoder-attention-heads", 2]
DUO = ["--task", "translation", "--arch", "duo_transformer", "--embed-dim", 12, "--layers", 1]
DUO += ["--ffn-embed-dim", 12, "--attention-heads", 2]
TWO = ["-s", "xx", "-t", "yy", "--batch-size", 24]
LABELS = ["-s", "text", "-t", "label", "--batch-size", 16]
CLASSIFIER = ["--task", "text_classification", "--arch", "duo_classifier", "--embed-dim-s", 8]
CLASSIFIER += ["--embed-dim-p", 8, "--ffn-embed-dim", 8, "--criterion", "label_cross_entropy"]
CLASSIFIER += [*LABELS, "--patience", 2]
DSL = ["--task", "dual_translation", "--arch", "dual_lstm_classifier_tiny", *LABELS]
DSL += ["--criterion", "dual_label_cross_entropy"]
JOIN = ["--join-at", "yy-zz=11"]

# name -> (corpus, words of the command)
SCENARIOS = {
    "dual, joint": ("two", [*DUAL, *TWO]),
    "dual, fused_adam": ("two", [*DUAL, *TWO, "--optimizer", "fused_adam"]),
    "multiway, joint": ("three", [*MULTIWAY, "--schedule", "joint"]),
    "multiway, cycle": ("three", [*MULTIWAY, "--schedule", "cycle", "--update-freq", 2]),
    "multiway, main+aux": (
        "three",
        [*MULTIWAY, "--schedule", "main+aux", "--main-pair", "xx-yy", "--update-freq", "1,3"],
    ),
    "multiway, temperature, --join-at": (
        "three",
        [*MULTIWAY, "--schedule", "temperature", "--schedule-temperature", 2, *JOIN],
    ),
    "multiway, cycle, --join-at": ("three", [*MULTIWAY, "--schedule", "cycle", *JOIN]),
    "multiway, --pair-patience": (
        "three",
        [*MULTIWAY, "--schedule", "cycle", "--pair-patience", 1, "--lr", 0.1],
    ),
    "routed": ("three", ROUTED),
    "twin": ("two", [*TWIN, *TWO]),
    "duo": ("two", [*DUO, *TWO, "--lr-scheduler", "reduce_lr_on_plateau", "--lr-patience", 0]),
    "duo classifier": ("labels", CLASSIFIER),
    "dual classifier": ("labels", DSL),
}
# with synthetic pairs; the campaign of option pairs draws them as well
LINES = ["--monolingual", "xx,yy", "--batch-size", 40]
SYNTHETIC = {
    "dual, --monolingual": ("lines", [*DUAL, *LINES, "--lang-pairs", "xx-yy"]),
    "tagged, --monolingual": ("lines", [*TAGGED, *LINES, "--lang-pairs", "xx-yy"]),
    "multiway, cycle, --monolingual": (
        "lines",
        [*MULTIWAY, *LINES, "--schedule", "cycle", "--lang-pairs", "xx-yy,yy-xx,xx-zz"],
    ),
    "multiway, temperature, --monolingual, @bt": (
        "lines",
        [*MULTIWAY, *LINES, "--schedule", "temperature", "--lang-pairs", "xx-yy,yy-xx,xx-yy@bt"],
    ),
    "routed, --monolingual": ("lines", [*ROUTED, *LINES, "--lang-pairs", "xx-yy,yy-xx,xx-zz"]),
    "dual, @bt": ("lines", [*DUAL, "--lang-pairs", "xx-yy,xx-yy@bt", "--batch-size", 40]),
}


def write_corpora(folder: Path) -> dict:
    """{name: folder made by fairseq-preprocess}."""
    from conftest import ToyCorpus
    from dual.reviews import binarise, write_reviews

    toy = ToyCorpus(folder / "toy")
    labels = folder / "labels"
    labels.mkdir()
    write_reviews(labels, random.Random(1))
    lines = write_synthetic(toy.three, folder / "lines")
    return {"two": toy.two, "three": toy.three, "labels": binarise(labels), "lines": lines}


def write_synthetic(three: Path, folder: Path) -> Path:
    """The corpus "three" with monolingual text of xx and yy, and the pair xx-yy@bt."""
    shutil.copytree(three, folder)
    (folder / "bt").mkdir()
    for suffix in ("bin", "idx"):
        for split, pair, lang in (("test", "xx-zz", "xx"), ("train", "yy-zz", "yy")):
            lines = folder / f"train.{lang}-None.{lang}.{suffix}"
            shutil.copy(three / f"{split}.{pair}.{lang}.{suffix}", lines)
        for lang in ("xx", "yy"):
            name = f"xx-yy.{lang}.{suffix}"
            shutil.copy(three / f"valid.{name}", folder / "bt" / f"train.{name}")
    return folder


def command(scenario: str, corpora: dict, save_dir: Path) -> list:
    """The words of fairseq-train."""
    corpus, words = {**SCENARIOS, **SYNTHETIC}[scenario]
    whole = [corpora[corpus], *OPTIMISE, *words, "--save-dir", save_dir]
    return [str(word) for word in whole]


def clear(folder: Path) -> Path:
    """The folder, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
