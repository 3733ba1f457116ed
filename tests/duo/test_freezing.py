"""Frozen embeddings stay so in runs that begin with a checkpoint; scores of labels are finite."""

import random

import pytest
import torch
from common import inprocess
from common.words import dictionary_with
from duo.test_training import TASK, write
from fairseq import checkpoint_utils
from torch import nn

from fairseq_ext.compat.user_errors import OptionError
from fairseq_ext.dual.lstm_classifier.label_sides import LabelSearch
from fairseq_ext.duo.classifier.task import LabelGenerator


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = random.Random(1)
    rows = [(" ".join(rng.choices("abcd", k=3)), rng.choice("xy")) for _ in range(12)]
    return write(tmp_path_factory.mktemp("texts"), {"train": rows, "valid": rows[:4]})


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    file = tmp_path_factory.mktemp("vectors") / "s.txt"
    file.write_text("a 1 2 3 4\nb 2 1 0 1\nd 0 1 1 1\n", encoding="utf-8")
    return file


def train(data, folder, *words):
    """Parameters and the run's configuration after its last update."""
    inprocess.train(
        *(data, *TASK, "--arch", "duo_classifier", "--embed-dim-p", 5, "--ffn-embed-dim", 4),
        *("--criterion", "label_cross_entropy", "--optimizer", "adam", "--lr", 0.1),
        *("--batch-size", 4, "--no-epoch-checkpoints", "--save-dir", folder, *words),
    )
    state = checkpoint_utils.load_checkpoint_to_cpu(str(folder / "checkpoint_last.pt"))
    return state["model"], state["cfg"]


@pytest.fixture(scope="module")
def frozen(data, vectors, tmp_path_factory):
    """(folder, parameters) of a run whose S is frozen."""
    folder = tmp_path_factory.mktemp("frozen")
    return folder, train(data, folder, "--embed-path-s", vectors, "--max-update", 1)[0]


def has_moved(before, after, name):
    return not torch.equal(before[f"classifier.{name}.weight"], after[f"classifier.{name}.weight"])


@pytest.mark.parametrize(
    "how", ["finetune-from-model", "restore-file", "continue-once", "resumed", "train"]
)
def test_what_a_checkpoint_has_frozen_stays_frozen(data, frozen, tmp_path, how):
    folder, before = frozen
    path = folder / "checkpoint_last.pt"
    words = ["--max-update", 2]
    if how == "resumed":
        (tmp_path / "checkpoint_last.pt").write_bytes(path.read_bytes())
    elif how == "train":
        words += ["--finetune-from-model", path, "--train-embeddings"]
    else:
        words += [f"--{how}", path]
    after, cfg = train(data, tmp_path, "--embed-dim-s", 4, *words)
    assert has_moved(before, after, "p")
    assert has_moved(before, after, "s") == (how == "train")
    assert cfg["model"]["frozen_embeddings"] == ("" if how == "train" else "s")
    again, _ = train(data, tmp_path, "--embed-dim-s", 4, "--max-update", 3)
    assert has_moved(after, again, "p")
    assert has_moved(after, again, "s") == (how == "train")


def test_the_transformer_freezes_what_its_checkpoint_has_frozen(build, data, vectors, tmp_path):
    words = [data, "--task", "translation", "-s", "text", "-t", "label", "--arch"]
    words += ["duo_transformer_tiny", "--layers", 1, "--freeze-embeddings", "--optimizer", "adam"]
    words += ["--criterion", "cross_entropy", "--batch-size", 4, "--no-epoch-checkpoints"]
    inprocess.train(
        *(*words, "--embed-path-s", vectors, "--max-update", 1, "--save-dir", tmp_path / "a")
    )
    path = tmp_path / "a" / "checkpoint_last.pt"
    words += ["--embed-dim-s", 4, "--finetune-from-model", path, "--lr", 0.1]
    inprocess.train(*words, "--max-update", 1, "--save-dir", tmp_path / "b")
    first, second = (inprocess.parameters(tmp_path / run / "checkpoint_last.pt") for run in "ab")
    name = "encoder.module.embedding.tables.{}.weight"
    assert torch.equal(first[name.format(0)], second[name.format(0)])
    assert not torch.equal(first[name.format(1)], second[name.format(1)])


def test_nothing_to_freeze_is_refused(duo):
    with pytest.raises(ValueError, match="--freeze-embeddings: no embedding comes from a file"):
        duo("--freeze-embeddings")


@pytest.mark.parametrize(
    "words", [("--arch", "duo_transformer", "--freeze-embeddings"), ("--arch", "duo_classifier",
              "--train-embeddings", "--criterion", "label_cross_entropy")],
)  # fmt: skip
def test_options_about_files_do_nothing_with_widths_alone(data, tmp_path, words, caplog):
    task = TASK if "duo_classifier" in words else ["--task", "translation", "-s", "text", "-t",
                                                   "label", "--layers", 1, "--embed-dim", 8,
                                                   "--ffn-embed-dim", 4]  # fmt: skip
    words = (*words, "--embed-dim-s", 4, "--max-update", 1, "--batch-size", 4)
    inprocess.train(data, *task, *words, "--optimizer", "adam", "--save-dir", tmp_path)
    assert "-embeddings does nothing: no embedding comes from a file" in caplog.text


@pytest.mark.parametrize("option", ["--embed-path-s", "--target-embed-path-p"])
def test_the_option_of_a_missing_file_is_named(duo, tmp_path, option):
    with pytest.raises(ValueError, match=f"{option} .*nofile: there is no such file"):
        duo(option, tmp_path / "nofile")
    with pytest.raises(ValueError, match=f"{option} .*: a folder; allowed: a file of word vectors"):
        duo(option, tmp_path)


@pytest.mark.parametrize("value", ["1", "s", "s,p"])
@pytest.mark.parametrize("arch", ["duo_classifier", "duo_transformer"])
def test_what_a_run_writes_is_not_given(data, tmp_path, arch, value):
    words = ["--arch", arch, "--frozen-embeddings", value, "--max-update", 1, "--batch-size", 4]
    message = f"--frozen-embeddings {value}: a run, into its checkpoints, writes it; allowed"
    with pytest.raises(OptionError, match=message):
        inprocess.train(data, *TASK, *words, "--save-dir", tmp_path)


class Logits(nn.Module):
    """A classifier whose scores are given: (1, L)."""

    def __init__(self, scores, positions=None):
        super().__init__()
        self.scores, self.positions = torch.tensor([scores]), positions

    def forward(self, *_inputs, **_named):
        if self.positions is None:
            return self.scores, {}
        padded = torch.full((1, 2, 4 + self.scores.size(1)), -1e4)
        padded[:, 0, 4 : 4 + self.scores.size(1)] = self.scores
        return padded, {}

    def get_normalized_probs(self, output, log_probs):
        scores = output[0].float().log_softmax(dim=-1)
        return scores if log_probs else scores.exp()


EXTREME = [-900.0, 700.0, -1200.0]


@pytest.mark.parametrize("search", [LabelGenerator, LabelSearch])
@pytest.mark.parametrize("models", [1, 2])
def test_labels_that_are_next_to_impossible_keep_their_order(search, models):
    """Sums over long texts: probabilities below the least float, whose logarithms differ."""
    dictionary = dictionary_with(*"xyz")
    positions = 2 if search is LabelSearch else None
    sample = {"net_input": {"src_tokens": torch.tensor([[5, 2]]), "src_lengths": torch.tensor([2])}}
    network = [Logits(EXTREME, positions) for _ in range(models)]
    generator = search(dictionary) if search is LabelGenerator else search(network, dictionary)
    (hypotheses,) = generator.generate(network, sample)
    assert [int(hypothesis["tokens"][0]) - 4 for hypothesis in hypotheses] == [1, 0, 2]
    scores = [float(hypothesis["score"]) for hypothesis in hypotheses]
    assert scores == pytest.approx([0, -1600, -1900], abs=1e-2)
