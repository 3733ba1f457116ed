"""The language by whose rules --eval-bleu-detok joins words."""

from dataclasses import dataclass

import pytest
import torch
from common.words import dictionary_with
from fairseq import checkpoint_utils, models
from fairseq.data import encoders
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import OmegaConf


class Moses:
    """A tokeniser that shows its language."""

    def __init__(self, cfg):
        self.language = cfg.target_lang

    def decode(self, line):
        return f"{line} ({self.language})"


@pytest.mark.parametrize("options, language", [("{}", "fr"), ('{"target_lang": "it"}', "it")])
def test_words_are_joined_as_those_of_the_target(monkeypatch, options, language):
    monkeypatch.setitem(encoders.TOKENIZER_REGISTRY, "moses", Moses)
    monkeypatch.setattr("fairseq.tasks.FairseqTask.build_model", lambda *_: None)
    words = dictionary_with("a")
    cfg = TranslationConfig(source_lang="de", target_lang="fr", eval_bleu=True)
    cfg.eval_bleu_detok, cfg.eval_bleu_detok_args = "moses", options
    task = TranslationTask(cfg, words, words)
    monkeypatch.setattr(task, "build_generator", lambda *_: None)
    task.build_model(None)
    assert task.tokenizer.decode("a") == f"a ({language})"


@dataclass
class OneOption(FairseqDataclass):
    """The options of a model today."""

    width: int = 2


class OneLayer(models.BaseFairseqModel):
    """A model with a dataclass."""

    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(width, width)

    @classmethod
    def build_model(cls, cfg, task):
        return cls(cfg.width)


def test_checkpoints_may_have_options_that_the_model_had_once(monkeypatch):
    monkeypatch.setitem(models.MODEL_DATACLASS_REGISTRY, "one_layer", OneOption)
    monkeypatch.setitem(models.MODEL_REGISTRY, "one_layer", OneLayer)
    words = dictionary_with("a")
    task = TranslationTask(TranslationConfig(source_lang="de", target_lang="fr"), words, words)
    model = {"_name": "one_layer", "width": 3, "option_of_another_version": 1}
    cfg = OmegaConf.create({"task": {"_name": "translation"}, "model": model})
    state = {"cfg": cfg, "model": OneLayer(3).state_dict()}
    load = checkpoint_utils.load_model_ensemble_and_task
    (loaded,), _, _ = load([__file__], task=task, state=state)  # a file that is not read
    assert loaded.layer.weight.equal(state["model"]["layer.weight"])
