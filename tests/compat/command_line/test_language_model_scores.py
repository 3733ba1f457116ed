"""fairseq-eval-lm: the score of each word, and of all."""

import logging
import math
import sys

import pytest
import torch
from common.words import dictionary_with
from fairseq_cli.eval_lm import eval_lm

from fairseq_ext.compat.user_errors import OptionError

# P of a token, whatever comes before it
PROBABILITIES = {"lo@@": 0.25, "wer": 0.5, "low": 0.125, "never": 0.0, "never@@": 0.0}


class UnigramModel(torch.nn.Module):
    """A language model that does not read its input."""

    def __init__(self, log_probabilities):
        super().__init__()
        self.log_probabilities = torch.nn.Parameter(log_probabilities, requires_grad=False)

    def forward(self, src_tokens, src_lengths):
        return (self.log_probabilities.expand(*src_tokens.shape, -1),)

    def get_normalized_probs(self, outputs, log_probs, sample):
        return outputs[0]


@pytest.fixture(scope="module")
def dictionary():
    return dictionary_with(*PROBABILITIES)


@pytest.fixture
def evaluate(dictionary, caplog):
    """Function (blocks, options): the result of fairseq's function and the lines of its log."""
    values = torch.full((len(dictionary),), -20.0)
    for word, probability in PROBABILITIES.items():
        values[dictionary.index(word)] = math.log(probability) if probability else -math.inf
    model = UnigramModel(values)

    def evaluate(*blocks, **options):
        caplog.set_level(logging.INFO)
        caplog.clear()
        batches = [] if not blocks else [_batch(dictionary, blocks)]
        result = eval_lm([model], dictionary, batches, **options)
        lines = [record.getMessage() for record in caplog.records]
        return result, [line for line in lines if not line.startswith("Evaluated")]

    return evaluate


def _batch(dictionary, blocks):
    rows = [
        torch.tensor([dictionary.index(word) for word in block.split()], dtype=torch.long)
        for block in blocks
    ]
    targets = torch.nn.utils.rnn.pad_sequence(rows, True, dictionary.pad())
    inputs = {"src_tokens": targets, "src_lengths": torch.tensor([len(row) for row in rows])}
    count = sum(len(row) for row in rows)
    ids = torch.arange(7, 7 + len(rows))
    return {"id": ids, "net_input": inputs, "target": targets, "ntokens": count}


def test_tokens_are_words_unless_pieces_are_joined(evaluate):
    """P: 1/4, 1/2, 1/8 of three tokens; 1/8, 1/8 of two words."""
    result, _ = evaluate("lo@@ wer low")
    assert result["loss"] == pytest.approx((2 + 1 + 3) / 3)
    assert result["perplexity"] == pytest.approx(4)
    result, _ = evaluate("lo@@ wer low", post_process="@@ ")
    assert result["loss"] == pytest.approx(3)


def test_both_names_join_pieces(evaluate):
    result, lines = evaluate("lo@@ wer low", post_process="subword_nmt", output_word_probs=True)
    assert result["loss"] == pytest.approx(3)
    assert lines == [f"7 lower [{math.log(1 / 8):f}]\tlow [{math.log(1 / 8):f}]"]


def test_other_pieces_are_refused(evaluate):
    with pytest.raises(OptionError, match="--post-process 'sentencepiece' is not allowed"):
        evaluate("low", post_process="sentencepiece")


def test_words_keep_their_scores_after_an_infinite_one(evaluate):
    """It does not count; the words after it have their own score, and so have later blocks."""
    result, lines = evaluate("low never wer", "wer", output_word_probs=True)
    assert result["loss"] == pytest.approx((3 + 1 + 1) / 3)
    assert lines == [
        "block 7: words of infinite score do not count: ['never']",
        f"7 low [{math.log(1 / 8):f}]\tnever [-inf]\twer [{math.log(1 / 2):f}]",
        f"8 wer [{math.log(1 / 2):f}]",
    ]


def test_a_piece_of_infinite_score_makes_its_word_infinite(evaluate):
    result, lines = evaluate("never@@ wer low", post_process="@@ ")
    assert result["loss"] == pytest.approx(3)
    assert lines == ["block 7: words of infinite score do not count: ['neverwer']"]


def test_a_block_may_end_inside_a_word(evaluate, dictionary):
    """What there is of the word counts, but is not shown."""
    options = {"post_process": "@@ ", "output_word_probs": True}
    plain = evaluate("low lo@@ lo@@", **options)
    with_bos = evaluate("<s> low lo@@ lo@@", remove_bos_token=True, **options)
    assert with_bos == plain
    assert plain[0]["loss"] == pytest.approx((3 + 4) / 2)
    assert plain[1] == [f"7 low [{math.log(1 / 8):f}]"]


def test_statistics_of_words(evaluate):
    """Word, count, ln P, whether it has pieces, ln P of the words after it and how many."""
    _, lines = evaluate(
        "low lo@@ wer", "low never low", "low lo@@", post_process="@@ ", output_word_stats=True
    )
    eighth, quarter = math.log(1 / 8), math.log(1 / 4)
    rows = [line.split("\t") for line in lines if "\t" in line]
    assert [row[0] for row in rows] == ["low", "lower"]
    assert [row[1] for row in rows] == ["4", "1"]
    assert [float(row[2]) for row in rows] == pytest.approx([4 * eighth, eighth], abs=1e-5)
    assert [row[3] for row in rows] == ["False", "True"]
    assert [float(row[4]) for row in rows] == pytest.approx([eighth + quarter, 0], abs=1e-5)
    assert [row[5] for row in rows] == ["2", "0"]


@pytest.mark.parametrize("blocks", [(), ("never",)])
def test_no_score_is_no_perplexity(blocks, evaluate):
    result, lines = evaluate(*blocks)
    assert math.isnan(result["loss"]) and math.isnan(result["perplexity"])
    assert lines[-1] == "no word has a finite score: there is no perplexity"


def test_a_block_without_its_first_symbol_is_refused(evaluate):
    """--add-bos-token takes the first symbol away, and it must be that one."""
    with pytest.raises(ValueError, match="block 7 does not begin with <s>"):
        evaluate("low wer", remove_bos_token=True)


def test_the_perplexity_is_of_the_words_of_all_workers(evaluate, monkeypatch):
    workers = sys.modules["fairseq_cli.eval_lm"].distributed_utils
    others = torch.tensor([math.log(0.125), 1.0], dtype=torch.float64)  # log P, words
    monkeypatch.setattr(workers, "get_data_parallel_world_size", lambda: 2)
    monkeypatch.setattr(workers, "get_data_parallel_group", lambda: None)
    monkeypatch.setattr(workers, "all_reduce", lambda sums, group: sums.add_(others))
    result, _ = evaluate("wer")
    assert result["loss"] == pytest.approx((1 + 3) / 2)  # bits
