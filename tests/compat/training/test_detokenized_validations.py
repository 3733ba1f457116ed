"""The language by whose rules --eval-bleu-detok joins words."""

import pytest
from common.words import dictionary_with
from fairseq.data import encoders
from fairseq.tasks.translation import TranslationConfig, TranslationTask


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
