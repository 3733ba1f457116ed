"""A training that validates on its training set is the training that does not."""

import importlib
from types import SimpleNamespace

import pytest
from common import inprocess
from common.checkpoints import compared, differences
from fairseq.data import data_utils

from fairseq_ext.compat.validation.validated_sets import TASKS_OF_LANGUAGES, languages_are_validated

SMALL = ("--max-tokens", 300, "--max-epoch", 2, "--validate-interval-updates", 2, "--seed", 1)
STREAMS = ["--task", "multiway_translation", "--arch", "multiway_gru", "--embed-dim", 8]
STREAMS += ["--hidden-size", 8, "--context-size", 8, "--readout-size", 8, "--init-hidden-size", 8]
STREAMS += ["--init-size", 8, "--lang-pairs", "xx-yy,xx-zz", "--criterion", "cross_entropy"]
MODULES = {
    "MultiLingualMaskedLMTask": "multilingual_masked_lm",
    "MultilingualDenoisingTask": "multilingual_denoising",
    "MultilingualLanguageModelingTask": "multilingual_language_modeling",
}


@pytest.fixture(params=["stock", "joint", pytest.param("temperature", marks=pytest.mark.slow)])
def words(request, tiny_training, toy_corpus):
    if request.param == "stock":
        return tiny_training
    return [toy_corpus.three, *STREAMS, "--schedule", request.param, "--lr", 0.01]


def test_the_training_is_the_same(words, tmp_path):
    subsets = {"one": "valid", "two": "valid,train"}
    for name, subset in subsets.items():
        inprocess.train(*words, *SMALL, "--valid-subset", subset, "--save-dir", tmp_path / name)
    single, double = (compared(tmp_path / name / "checkpoint_last.pt") for name in subsets)
    assert single["history"]["num_updates"] > 4
    for end in (single, double):
        end["extra"].pop("best", None)
    assert differences(single, double) == []


@pytest.mark.parametrize("steps", [1, 2])
def test_validation_has_so_many_steps(tiny_training, tmp_path, monkeypatch, steps):
    from fairseq.trainer import Trainer

    seen = []
    step = Trainer.valid_step
    monkeypatch.setattr(
        Trainer, "valid_step", lambda self, sample: seen.append(1) or step(self, sample)
    )
    limits = ("--max-update", 1, "--batch-size-valid", 2, "--max-valid-steps", steps)
    inprocess.train(*tiny_training, *limits, "--save-dir", tmp_path)
    assert len(seen) == steps


def test_further_sets_may_be_named(tmp_path):
    for name in ("valid.xx-yy.xx", "valid1.xx-yy.xx", "valid1.xx-yy.yy", "train.xx-yy.xx"):
        (tmp_path / f"{name}.bin").touch()

    def check(subset):
        dataset = SimpleNamespace(
            ignore_unused_valid_subsets=False,
            combine_valid_subsets=None,
            disable_validation=False,
            valid_subset=subset,
        )
        cfg = SimpleNamespace(dataset=dataset, task=SimpleNamespace(data=str(tmp_path)))
        data_utils.raise_if_valid_subsets_unintentionally_ignored(cfg)

    check("valid,valid1")
    with pytest.raises(ValueError, match=r"\['valid1'\] will be ignored"):
        check("valid")


@pytest.mark.parametrize("name", TASKS_OF_LANGUAGES)
def test_languages_are_validated_behind_the_others(name):
    """Their losses are not among those that choose the best checkpoint."""
    module = importlib.import_module(f"fairseq.tasks.{MODULES[name]}")
    task = getattr(module, name).__new__(getattr(module, name))
    task.datasets = dict.fromkeys(["train", "valid", "valid_xx", "valid_yy", "valid1", "valid1_xx"])
    seen = []

    def validate(cfg, trainer, task, epoch_itr, subsets):
        seen.extend(subsets)
        return subsets

    fake = SimpleNamespace(validate=validate)
    languages_are_validated(fake)
    assert fake.validate(None, None, task, None, ["valid", "valid1"]) == ["valid", "valid1"]
    assert seen == ["valid", "valid1", "valid_xx", "valid_yy", "valid1_xx"]
    seen.clear()
    other = SimpleNamespace(datasets=task.datasets)
    assert fake.validate(None, None, other, None, ["valid"]) == seen == ["valid"]
