"""adaptive_span (fairseq_ext/compat/examples/adaptive_spans.py)."""

import math

import pytest
import torch
from common.words import numbered_words


@pytest.fixture
def task(example):
    """A task of truncated backpropagation, without data."""
    task_class = example("adaptive_span", "truncated_bptt_lm_task").TruncatedBPTTLMTask
    task = task_class.__new__(task_class)
    task.dictionary = numbered_words(46)  # 50 symbols
    return task


def test_predicted_words_are_counted(task):
    batch = task._collate_fn([(0, [torch.tensor([4, 5, 6]), torch.tensor([7, 8])])])
    assert batch["ntokens"] == 3
    assert task._collate_fn([(0, [torch.tensor([4])])])["ntokens"] == 1


@pytest.mark.parametrize("sentence_avg", [False, True])
def test_perplexity_is_of_the_predicted_words(example, task, sentence_avg):
    from fairseq.logging import metrics

    class Uniform(torch.nn.Module):
        def forward(self, src_tokens):
            return (torch.full((*src_tokens.shape, 50), -math.log(50)),)

        def get_normalized_probs(self, net_output, log_probs):
            return net_output[0]

        def get_targets(self, sample, net_output):
            return sample["target"]

        get_aux_loss = get_current_avg_span = get_current_max_span = lambda self: 1.0

    module = example("adaptive_span", "adaptive_span_loss")
    criterion = module.AdaptiveSpanCriterion(task, sentence_avg)
    logs = []
    for lengths in ((9, 9), (9, 4)):
        rows = [torch.arange(4, 4 + length) for length in lengths]
        batch = task._collate_fn([(0, rows)])
        loss, sample_size, log = criterion(Uniform(), batch)
        words = sum(lengths) - len(lengths)
        mean = math.log(50) * (words / 2 if sentence_avg else 1)
        assert (float(loss), sample_size) == (pytest.approx(mean + 1), 1)
        logs.append(log)
    with metrics.aggregate() as logged:
        criterion.reduce_metrics(logs)
    values = logged.get_smoothed_values()
    assert values["ppl"] == pytest.approx(50)
    words = 27 / 4 if sentence_avg else 1
    assert values["loss"] == pytest.approx(math.log2(50) * words, abs=1e-3)
    assert values["avg_span"] == values["max_span"] == 1
