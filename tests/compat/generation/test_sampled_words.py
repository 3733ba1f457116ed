"""What --sampling draws from, and the scores of it."""

import math
from argparse import Namespace

import pytest
import torch
from common.words import numbered_words
from fairseq.search import Sampling
from fairseq_cli import generate

from fairseq_ext.compat.command_line import interactive_command
from fairseq_ext.compat.user_errors import OptionError


def test_more_words_than_there_are_are_refused():
    with pytest.raises(ValueError, match="^--sampling-topk 10: .* has 9 symbols; allowed: at most"):
        Sampling(numbered_words(9), 10)
    assert Sampling(numbered_words(9), 9).sampling_topk == 9
    assert Sampling(numbered_words(9), -1, 0.5).sampling_topp == 0.5


@pytest.mark.parametrize("beam, nbest", [(5, 1), (2, 5)])
@pytest.mark.parametrize("command", [generate.main, interactive_command.check_batch])
def test_samples_that_are_not_printed_are_refused(command, beam, nbest):
    cfg = Namespace(generation=Namespace(sampling=True, beam=beam, nbest=nbest))
    cfg.dataset, cfg.interactive = Namespace(batch_size=1), Namespace(buffer_size=1)
    message = f"^--sampling with --nbest {nbest} and --beam {beam}, .* as --beam {nbest} --nbest"
    with pytest.raises(OptionError, match=message):
        command(cfg)


def log_p_without_the_end():
    """ln P of six words, (2, 1, 6), of which the end, 2, is not allowed."""
    log_p = torch.tensor([0.02, 0.02, 0.9, 0.03, 0.02, 0.01]).log().expand(2, 1, 6).clone()
    log_p[:, :, 2] = -math.inf
    return log_p


@pytest.mark.parametrize("step", [0, 1])
def test_the_likeliest_of_the_words_that_are_allowed(step):
    """0.03 / 0.1 is below 0.45, 0.05 / 0.1 above: two words are left of those behind --min-len."""
    torch.manual_seed(1)
    before = torch.full((2, 1, step), -1.0)
    sampling = Sampling(numbered_words(6), -1, 0.45)
    words = [sampling.step(step, log_p_without_the_end(), before)[1] for _ in range(100)]
    drawn = torch.stack(words).flatten()
    assert 3 in drawn and len(drawn.unique()) == 2


@pytest.mark.parametrize("limits", [(-1, -1.0), (3, -1.0), (-1, 0.5)])
@pytest.mark.parametrize("step", [0, 1])
def test_scores_are_of_the_model(limits, step):
    torch.manual_seed(1)
    log_p, before = log_p_without_the_end(), torch.tensor([[[-2.0]], [[-3.0]]])[:, :, :step]
    sampling = Sampling(numbered_words(6), *limits)
    sums, words, rows = sampling.step(step, log_p.clone(), before)
    expected = log_p[:, 0].gather(1, words) + (before[:, :, 0] if step else 0)
    assert torch.allclose(sums, expected) and not rows.any()


@pytest.mark.parametrize("limits", [(-1, -1.0), (1, -1.0), (-1, 0.5)])
def test_the_only_word_is_drawn(limits):
    """The end at the greatest length, of ln P -300; exp(-300) is 0 in float32."""
    log_p = torch.full((2, 3, 6), -math.inf)
    log_p[:, :, 2] = -300.0
    sampling = Sampling(numbered_words(6), *limits)
    sums, words, rows = sampling.step(1, log_p, torch.full((2, 3, 1), -1.0))
    assert words.eq(2).all() and sums.eq(-301).all() and rows.tolist() == [[0, 1, 2]] * 2


def test_samples_of_a_seed_are_those_of_plain_fairseq():
    """Where all words are allowed; `search.step` is the patch, of which plain fairseq is behind."""
    log_p = torch.randn(4, 5, 30).log_softmax(2)
    for limits in ((-1, -1.0), (7, -1.0), (-1, 0.8)):
        sampling = Sampling(numbered_words(30), *limits)
        for step in (0, 1):
            lists = []
            for search in (Sampling.step, Sampling.step.__wrapped__):
                torch.manual_seed(3)
                lists.append(search(sampling, step, log_p.clone(), torch.zeros(4, 5, step)))
            (sums, *places), (stock_sums, *stock_places) = lists
            assert all(torch.equal(*pair) for pair in zip(places, stock_places))
            assert torch.allclose(sums, stock_sums, atol=1e-5)
