"""--eval-bleu: which lines are scored, and what is logged of them."""

from types import SimpleNamespace

import pytest
import torch
from common import inprocess
from common.words import dictionary_with
from fairseq.data import encoders

from fairseq_ext.streams.bleu import PairBleu

OPTIONS = {
    "eval_bleu_args": '{"beam": 2}',
    "eval_bleu_detok": "space",
    "eval_bleu_detok_args": "{}",
    "eval_bleu_remove_bpe": "@@ ",
    "eval_tokenized_bleu": False,
    "eval_bleu_print_samples": False,
}


class Generator:
    """Writes the same hypotheses for every batch, the best of each beam first."""

    def __init__(self, lines):
        self.lines = lines

    def generate(self, models, sample):
        assert "pair" not in sample["net_input"]
        return [[{"tokens": line}, {"tokens": line[-1:]}] for line in self.lines]


class Capitals:
    """A tokeniser whose effect one sees."""

    def decode(self, line):
        return line.upper()


@pytest.fixture
def dictionary():
    return dictionary_with("a", "b", "c@@", "d")


def scored(dictionary, hypotheses, references, **options):
    """The task's part, with a generator that writes ``hypotheses``; and a batch."""
    bleu = PairBleu(SimpleNamespace(**{**OPTIONS, **options}), {"xx": dictionary, "yy": dictionary})
    lines = [dictionary.encode_line(line, add_if_not_exist=False) for line in hypotheses]
    bleu.generators["xx-yy"] = Generator(lines)
    targets = [dictionary.encode_line(line, add_if_not_exist=False).long() for line in references]
    target = torch.nn.utils.rnn.pad_sequence(targets, True, dictionary.pad())
    return bleu, {"net_input": {"pair": "xx-yy"}, "target": target}


def test_lines_are_joined_and_detokenised(dictionary, monkeypatch):
    built = {"space": Capitals()}
    monkeypatch.setattr(encoders, "build_tokenizer", lambda cfg: built[cfg.tokenizer])
    bleu, batch = scored(dictionary, ["a c@@ d", "b"], ["a b", "c@@ c@@ d z"])
    hypotheses, references = bleu.texts("xx-yy", batch)
    assert hypotheses == ["A CD", "B"]
    assert references == ["A B", "CCD UNKNOWNINREFERENCE"]


def test_each_target_is_detokenised_as_its_language(dictionary, monkeypatch):
    class Moses:
        def __init__(self, cfg):
            self.mark = cfg.target_lang

        def decode(self, line):
            return f"{line} ({self.mark})"

    monkeypatch.setitem(encoders.TOKENIZER_REGISTRY, "moses", Moses)
    bleu, _ = scored(dictionary, ["a"], ["a"], eval_bleu_detok="moses")
    lines = [bleu.detokenize(pair, "a") for pair in ("xx-yy", "yy-xx")]
    assert lines == ["a (yy)", "a (xx)"]
    moses = {"eval_bleu_detok": "moses", "eval_bleu_detok_args": '{"target_lang": "zz"}'}
    bleu, _ = scored(dictionary, ["a"], ["a"], **moses)
    assert bleu.detokenize("xx-yy", "a") == "a (zz)"


def test_without_a_tokeniser_lines_stay(dictionary, monkeypatch):
    monkeypatch.setattr(encoders, "build_tokenizer", lambda cfg: None)
    bleu, batch = scored(dictionary, ["a z"], ["z a"])
    hypotheses, references = bleu.texts("xx-yy", batch)
    # an unknown word of a hypothesis is none of a reference
    assert (hypotheses, references) == (["a UNKNOWNINHYPOTHESIS"], ["UNKNOWNINREFERENCE a"])


@pytest.mark.parametrize("printed", [False, True])
def test_the_first_sentence_is_printed_when_asked_for(dictionary, printed):
    bleu, batch = scored(dictionary, ["a", "b"], ["b", "d"], eval_bleu_print_samples=printed)
    with inprocess.logged_lines() as lines:
        bleu("xx-yy", batch)
    expected = ["xx-yy example hypothesis: a", "xx-yy example reference: b"]
    assert lines == (expected if printed else [])


@pytest.mark.parametrize("tokenized", [False, True])
def test_references_without_blanks_are_named_once(tokenized):
    words = dictionary_with("一个男人在街上走路")
    more = {"eval_tokenized_bleu": tokenized}
    bleu, batch = scored(words, ["一个男人在街上走路"], ["一个男人在街上走路"], **more)
    with inprocess.logged_lines() as lines:
        bleu("xx-yy", batch)
        bleu("xx-yy", batch)
    expected = ["xx-yy: references have no blanks between words, which BLEU counts"]
    assert [line.split(";")[0] for line in lines] == ([] if tokenized else expected)


def test_sums_of_a_batch(dictionary):
    bleu, batch = scored(dictionary, ["a b a", "d"], ["a b b", "d d"])
    sums = bleu("xx-yy", batch)
    assert (sums["_bleu_sys_len"], sums["_bleu_ref_len"]) == (4, 5)
    # words: 2 of 3 and 1 of 1; pairs: "a b" of "a b", "b a"; triples: none of 1
    assert [sums[f"_bleu_counts_{order}"] for order in range(4)] == [3, 1, 0, 0]
    assert [sums[f"_bleu_totals_{order}"] for order in range(4)] == [4, 2, 1, 0]


@pytest.mark.parametrize("tokenized, words", [(False, 4), (True, 2)])
def test_words_are_those_of_the_data_or_of_sacrebleu(tokenized, words):
    """sacrebleu takes "a, b!" for four words."""
    marks = dictionary_with("a,", "b!")
    bleu, batch = scored(marks, ["a, b!"], ["a, b!"], eval_tokenized_bleu=tokenized)
    sums = bleu("xx-yy", batch)
    assert sums["_bleu_sys_len"] == sums["_bleu_ref_len"] == sums["_bleu_counts_0"] == words
