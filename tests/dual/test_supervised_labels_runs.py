"""Dual supervised learning of texts and labels through fairseq's commands; bad input."""

import shutil

import pytest
import torch
from common.inprocess import (
    configuration,
    generate,
    hypotheses,
    interactive,
    parameters,
    train,
    validate,
)
from fairseq import options, tasks

FEW = ("--lr", 0.02, "--optimizer", "adam", "--batch-size", 20, "--no-epoch-checkpoints")
ARCHS = ("dual_supervised_lstm_classifier_tiny", "dual_lstm_classifier_tiny")
TASK = ("--task", "dual_translation")


class Runs:
    """A language model of the texts and what is trained with it, in the tests' process."""

    def __init__(self, folder, reviews):
        self.data, self.text = reviews / "bin", folder / "text"
        self.text.mkdir()
        shutil.copy(self.data / "dict.text.txt", self.text / "dict.txt")
        for split in ("train", "valid"):
            for ending in ("bin", "idx"):
                name = f"{split}.text-label.text.{ending}"
                shutil.copy(self.data / name, self.text / f"{split}.{ending}")
        words = [self.text, "--task", "language_modeling", "--arch", "gru_lm", "--embed-dim", 8]
        words += ["--hidden-size", 8, "--sample-break-mode", "eos", *FEW, "--max-update", 30]
        train(*words, "--save-dir", folder / "lm")
        self.path = folder / "lm" / "checkpoint_last.pt"

    def words(self, *more, arch=ARCHS[0]):
        words = [self.data, *TASK, "-s", "text", "-t", "label", "--arch", arch, *FEW, "--seed", 1]
        return [*words, "--criterion", "dual_supervised", *more]

    def given(self, **more):
        return ",".join(f"{lang}={path}" for lang, path in {"text": self.path, **more}.items())

    def build(self, *more, models=None):
        """(task, model, criterion) that fairseq-train would begin with."""
        words = self.words("--language-models", models or self.given(), *more)
        cfg = configuration(options.get_training_parser(), words)
        task = tasks.setup_task(cfg.task)
        return task, task.build_model(cfg.model), task.build_criterion(cfg.criterion)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, reviews):
    return Runs(tmp_path_factory.mktemp("dsl"), reviews)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_all_commands(runs, reviews, tmp_path, arch):
    """Train, resume, then, without the language model, validate, label, rank and write."""
    copy = shutil.copy(runs.path, tmp_path / "lm.pt")
    supervised = ["--language-models", f"text={copy}", "--dsl-weight", 0.25]
    words = [*runs.words(*supervised, arch=arch), "--save-dir", tmp_path]
    train(*words, "--max-update", 6)
    log = train(*words, "--max-update", 80)
    trained = [entry for entry in log if "train_l_duality" in entry]
    for name in ("l_duality", "lm_nll_loss", "text-label_error", "label-text_ppl"):
        assert trained[0][f"train_{name}"] > 0
    assert trained[0]["train_text-label_l_duality"] == trained[0]["train_label-text_l_duality"]
    assert trained[0]["train_lm_nll_loss"] == trained[0]["train_label-text_lm_nll_loss"]
    copy.unlink()
    last = tmp_path / "checkpoint_last.pt"
    logged = [entry for entry in log if "valid_loss" in entry][-1]
    assert logged["valid_text-label_error"] <= 25
    for source, target, name in (("text", "label", "error"), ("label", "text", "ppl")):
        search = [runs.data, *TASK, "-s", source, "-t", target, "--path", last, "--batch-size", 20]
        (record,) = validate(*search, "--valid-subset", "valid")
        name = f"valid_{source}-{target}_{name}"
        assert record[name] == logged[name]
        plain = hypotheses(generate(*search, "--nbest", 2))
        typing = ["--input", reviews / f"test.{source}", "--buffer-size", 20]
        typed = hypotheses(interactive(*search, *typing))
        ranked = hypotheses(generate(*search, "--nbest", 2, "--dual-alpha", 0.3))
        assert len(plain) == len(typed) == len(ranked) == 20
        assert plain != ranked


@pytest.mark.slow
def test_the_gap_is_what_the_weight_makes_small(runs, tmp_path):
    gaps = {}
    for weight in (1e-6, 5):
        words = runs.words("--language-models", runs.given(), "--dsl-weight", weight)
        log = train(*words, "--max-update", 60, "--save-dir", tmp_path / str(weight))
        gaps[weight] = [record["train_l_duality"] for record in log if "train_l_duality" in record][
            -1
        ]
    assert gaps[5] < 0.5 * gaps[1e-6]


@pytest.mark.parametrize("arch", ARCHS)
def test_weight_0_is_the_plain_criterion(runs, tmp_path, arch):
    """To the last bit, without any language model."""
    words = runs.words("--max-update", 3, "--disable-validation", arch=arch)
    train(*words, "--dsl-weight", 0, "--save-dir", tmp_path / "zero")
    plain = ["--criterion", "dual_label_cross_entropy", "--save-dir", tmp_path / "plain"]
    train(*words, *plain)
    supervised = ["--language-models", runs.given(), "--dsl-weight", 0.5]
    train(*words, *supervised, "--save-dir", tmp_path / "dsl")
    zero, plain, dsl = (
        parameters(tmp_path / name / "checkpoint_last.pt") for name in ("zero", "plain", "dsl")
    )
    assert set(zero) == set(plain) == set(dsl)  # neither language model nor shares of labels
    assert all(torch.equal(zero[name], plain[name]) for name in zero)
    assert not all(torch.equal(zero[name], dsl[name]) for name in zero)


@pytest.mark.parametrize(
    "flags, models, message",
    [
        ((), "label=a.pt", "label=a.pt: has no model of text; needed: text=FILE"),
        ((), "{given},label=a.pt", r"P\(label\) is the share .* dict.label.txt; allowed: without"),
        ((), "{given},other=a.pt", "'other' is no language of the run: text"),
        (("--label-smoothing", 0.1), None, "--label-smoothing 0.1: allowed with labels: 0"),
        (("--one-way",), None, "--one-way: .* both directions .*; allowed: leave it out"),
    ],
)
def test_bad_options(runs, flags, models, message):
    with pytest.raises(ValueError, match=message):
        runs.build(*flags, models=models and models.format(given=runs.given()))


def test_the_language_model_must_reach_the_longest_text(runs):
    with pytest.raises(ValueError, match="reads 1024 tokens at most, .* up to 2800: give --max-so"):
        runs.build("--max-source-positions", 2800)
