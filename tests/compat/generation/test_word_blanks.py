"""Which texts BLEU needs a tokeniser for, and who says so."""

import argparse

import pytest
import torch
from common import inprocess
from fairseq.data import Dictionary
from fairseq.scoring.bleu import SacrebleuConfig, SacrebleuScorer
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from sacrebleu.metrics import BLEU

from fairseq_ext.compat.generation.word_blanks import any_of, lacks_blanks, tokenisers_for


@pytest.mark.parametrize(
    "lines, expected",
    [
        (["一个男人在街上走路。", "两只狗在草地上玩耍，"], True),
        (["男の人が道を歩いています。"], True),
        (["ผู้ชายคนหนึ่งเดินอยู่บนถนน"], True),
        (["一个 男人 在 街上 走路 。"], False),  # cut into words
        (["A man walks down the street.", "北京"], False),
        (["Ein Donaudampfschifffahrtsgesellschaftskapitän"], False),
        (["Мужчина идёт по улице."], False),
        (["남자가 거리를 걷고 있다."], False),  # Korean has blanks
        (["123 !!"], False),
        ([], False),
    ],
)
def test_scripts(lines, expected):
    assert lacks_blanks(lines) is expected


@pytest.mark.parametrize(
    "line, names",
    [
        ("一个男人在街上走路。", "zh, char or flores200"),
        ("男の人が道を歩いています。", "ja-mecab, char or flores200"),
        ("ผู้ชายคนหนึ่งเดินอยู่บนถนน", "char or flores200"),
    ],
)
def test_tokenisers_that_are_named_cut_the_text(line, names):
    assert any_of(tokenisers_for([line])) == names
    metric = BLEU(tokenize=tokenisers_for([line])[0]) if "mecab" not in names else None
    assert metric is None or not lacks_blanks([metric.tokenizer(line)])


@pytest.mark.parametrize("tokenizer, warns", [("13a", True), ("zh", False), ("char", False)])
def test_the_scorer_of_fairseq_generate(tokenizer, warns):
    scorer = SacrebleuScorer(SacrebleuConfig(sacrebleu_tokenizer=tokenizer))
    scorer.add_string("一个男人在街上走路。", "两个男人在街上走路。")
    with inprocess.logged_lines() as lines:
        assert "BLEU = " in scorer.result_string()
    assert [line.split(",")[0] for line in lines] == (
        ["references have no blanks between words"] if warns else []
    )


@pytest.mark.parametrize(
    "word, tokenized, warns",
    [
        ("一个男人在街上走路", False, True),
        ("一个男人在街上走路", True, False),
        ("Mann", False, False),
    ],
)
def test_validations_of_the_stock_task_say_so_once(word, tokenized, warns):
    words = Dictionary()
    number = words.add_symbol(word)
    cfg = TranslationConfig(eval_bleu=True, eval_tokenized_bleu=tokenized)
    task = TranslationTask(cfg, words, words)
    task.tokenizer = None
    tokens = torch.tensor([number, words.eos()])
    task.inference_step = lambda *_, **__: [[{"tokens": tokens}]]
    sample = {"target": torch.stack([tokens])}
    with inprocess.logged_lines() as lines:
        for _ in range(2):
            score = task._inference_with_bleu(argparse.Namespace(), sample, None)
    assert score.sys_len == 1
    assert [line.split(",")[0] for line in lines] == (
        ["references have no blanks between words"] if warns else []
    )
