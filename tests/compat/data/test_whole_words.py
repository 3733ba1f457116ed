"""--mask-whole-words masks all sub-words of a word, or none."""

import shutil
from argparse import Namespace

import pytest
from common import inprocess
from common.words import numbered_words
from fairseq import options, tasks
from fairseq.data.encoders.gpt2_bpe import GPT2BPE
from fairseq.data.encoders.subword_nmt_bpe import SubwordNMTBPE
from fairseq.tasks import multilingual_denoising
from fairseq.tasks.multilingual_masked_lm import MultiLingualMaskedLMTask

from fairseq_ext.compat.user_errors import OptionError


@pytest.fixture
def load(toy_corpus, tmp_path):
    """Function (options...) -> the training set of masked_lm."""
    shutil.copy(f"{toy_corpus.two}/dict.xx.txt", tmp_path / "dict.txt")
    for name in ("bin", "idx"):
        shutil.copy(f"{toy_corpus.two}/train.xx-yy.xx.{name}", tmp_path / f"train.{name}")
    words = [tmp_path, "--task", "masked_lm", "--arch", "roberta_base", "--max-tokens", 99]
    words += ["--sample-break-mode", "eos", "--mask-prob", 0.3]

    def load(*more):
        cfg = inprocess.configuration(options.get_training_parser(), [*words, *more])
        task = tasks.setup_task(cfg.task)
        task.load_dataset("train")
        return task, task.datasets["train"]

    return load


def test_sub_words_are_masked_together(load, monkeypatch):
    """Verbs, `av0` and so on, belong to the word before them here."""
    monkeypatch.setattr(GPT2BPE, "__init__", lambda self, cfg: None)  # its files are not here
    monkeypatch.setattr(GPT2BPE, "is_beginning_of_word", lambda self, word: word[:2] != "av")
    task, dataset = load("--mask-whole-words", "--bpe", "gpt2")
    pad, masked = task.source_dictionary.pad(), []
    for index in range(len(dataset)):
        chosen = dataset[index]["target"].ne(pad).tolist()
        assert chosen[1] == chosen[2]  # behind <s>
        masked.append(chosen[1])
    assert any(masked) and not all(masked)


def test_without_sub_words_tokens_are_words(load):
    rows = [
        [dataset[index]["target"].tolist() for index in range(9)]
        for _, dataset in (load("--mask-whole-words"), load())
    ]
    assert rows[0] == rows[1]


def test_languages_have_words_of_tokens_or_of_bpe(monkeypatch):
    monkeypatch.setattr(GPT2BPE, "__init__", lambda self, cfg: None)
    monkeypatch.setattr(GPT2BPE, "is_beginning_of_word", lambda self, word: word[-1] != "7")
    args = Namespace(seed=1, mask_whole_words=True, bpe=None)
    task = MultiLingualMaskedLMTask(args, numbered_words(12))
    assert task._get_whole_word_mask() is None
    args.bpe = "gpt2"
    beginnings = task._get_whole_word_mask().tolist()
    assert beginnings.count(0) == 1 and len(beginnings) == len(task.source_dictionary)


@pytest.mark.parametrize("name", ["characters", "bytes", "subword_nmt"])
def test_coders_that_know_no_words_are_refused(name, load, monkeypatch):
    """Their sub-words do not tell by themselves whether they begin a word."""
    monkeypatch.setattr(SubwordNMTBPE, "__init__", lambda self, cfg: None)
    with pytest.raises(OptionError, match=f"--bpe {name} does not tell where words begin"):
        load("--mask-whole-words", "--bpe", name)
    load("--bpe", name)
    args = Namespace(seed=1, mask_whole_words=True, bpe=name)
    task = MultiLingualMaskedLMTask(args, numbered_words(12))
    with pytest.raises(OptionError, match=f"--bpe {name} "):
        task._get_whole_word_mask()


@pytest.mark.parametrize("length, has_words", [("subword", False), ("span-poisson", True)])
def test_denoising_masks_sub_words_when_asked(length, has_words, monkeypatch):
    monkeypatch.setattr(GPT2BPE, "__init__", lambda self, cfg: None)
    monkeypatch.setattr(GPT2BPE, "is_beginning_of_word", lambda self, word: word[-1] != "7")
    args = Namespace(bpe="gpt2", mask_length=length)
    mask = multilingual_denoising.get_whole_word_mask(args, numbered_words(12))
    assert (mask is not None) == has_words
