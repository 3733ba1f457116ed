"""The losses of a label and of a text, and what is logged of them."""

import math

import numpy as np
import pytest
import torch
from dual.lstm_support import (
    END,
    LABELS,
    WORDS,
    builder,
    fill,
    random_pairs,
    sample_of,
    write_dictionaries,
)
from fairseq.logging import metrics

from reference import dual_lstm as reference


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Function (options...) -> (task, model, criterion)."""
    return builder(write_dictionaries(tmp_path_factory.mktemp("dictionaries")))


@pytest.mark.parametrize("weight", ["text", "token"])
def test_losses_error_and_perplexity(built, weight):
    task, model, criterion = built("--label-weight", weight)
    rng = np.random.default_rng(6)
    params = reference.random_parameters(WORDS, LABELS, 5, 6, rng)
    fill(model.network, params)
    pairs, logs = random_pairs([4, 4, 2], rng), {}
    likely = max(range(LABELS), key=lambda y: reference.log_label(pairs[0][0], y, params, END))
    pairs[0] = (pairs[0][0], likely)
    primal = [-reference.log_label(*pair, params, END) for pair in pairs]
    words = [-reference.log_words(*pair, params, END).sum() for pair in pairs]
    times = 13 / 3 if weight == "text" else 1  # tokens of a text, its end included
    for pair, nll, count, times_nll in (
        ("text-label", primal, times * 3, times),
        ("label-text", words, 13, 1),
    ):
        loss, size, logs[pair] = criterion(model, sample_of(pairs, pair))
        assert float(size) == pytest.approx(count)
        assert loss.item() == pytest.approx(times_nll * sum(nll), rel=1e-5)
        losses, *_ = criterion(model, sample_of(pairs, pair), reduce=False)
        assert losses.tolist() == pytest.approx([times_nll * value for value in nll], rel=1e-5)
    wrong = [
        max(range(LABELS), key=lambda y: reference.log_label(text, y, params, END)) != label
        for text, label in pairs
    ]
    assert 0 < sum(wrong) < 3
    with metrics.aggregate(new_root=True) as logged:
        criterion.reduce_metrics(list(logs.values()))
    values = logged.get_smoothed_values()
    assert values["error"] == pytest.approx(100 * sum(wrong) / 3, abs=0.01)
    assert values["ppl"] == pytest.approx(reference.perplexity(pairs, params, END), abs=0.01)
    total = (times * sum(primal) + sum(words)) / (times * 3 + 13) / math.log(2)
    assert values["loss"] == pytest.approx(total, abs=1e-4)


def test_means_over_batches_count_labels_and_tokens(built):
    """A validation logs batch by batch: three pairs, then one, as if they were one batch."""
    _, model, criterion = built()
    rng = np.random.default_rng(9)
    params = reference.random_parameters(WORDS, LABELS, 5, 6, rng)
    fill(model.network, params)
    parts = random_pairs([4, 4, 2], rng), random_pairs([1], rng)
    pairs = [*parts[0], *parts[1]]

    def rank(text, label):  # 0: the label is the most probable one
        scores = [reference.log_label(text, y, params, END) for y in range(LABELS)]
        return sum(score > scores[label] for score in scores)

    with metrics.aggregate(new_root=True) as logged:
        for part in parts:
            for pair in ("text-label", "label-text"):
                criterion.reduce_metrics([criterion(model, sample_of(part, pair))[2]])
    values = logged.get_smoothed_values()
    wrong = [rank(*pair) > 0 for pair in pairs]
    assert values["error"] == pytest.approx(100 * sum(wrong) / 4, abs=0.01)
    assert wrong[3] != (sum(wrong[:3]) / 3), "the batches must differ"
    assert values["ppl"] == pytest.approx(reference.perplexity(pairs, params, END), abs=0.01)
    # 15 tokens of texts stand for the four labels
    labels = -sum(reference.log_label(*pair, params, END) for pair in pairs) / 4 * 15
    texts = -sum(reference.log_words(*pair, params, END).sum() for pair in pairs)
    assert values["loss"] == pytest.approx((labels + texts) / 30 / math.log(2), abs=1e-4)


@pytest.mark.parametrize("pair", ["text-label", "label-text"])
def test_batches_of_one_direction_are_logged(built, pair):
    """In training an update may hold one direction alone; what is logged holds no graph."""
    _, model, criterion = built("--label-weight", "token")
    criterion.train()
    batch = sample_of(random_pairs([3, 2], np.random.default_rng(1)), pair)
    loss, size, log = criterion(model, batch)
    values = [value for value in log.values() if torch.is_tensor(value)]
    assert values and not any(value.requires_grad for value in values)
    assert criterion.logging_outputs_can_be_summed()
    with metrics.aggregate(new_root=True) as aggregator:
        criterion.reduce_metrics([log])
    expected = loss.item() / float(size) / math.log(2)
    assert aggregator.get_smoothed_values()["loss"] == pytest.approx(expected, abs=1e-3)


def test_a_line_of_the_log_without_texts_has_no_perplexity(built):
    """Updates may be of one direction: --schedule cycle with --log-interval 1, --pair-patience."""
    _, model, criterion = built()
    pairs = random_pairs([3, 2], np.random.default_rng(1))
    logs = [criterion(model, sample_of(pairs, pair))[2] for pair in ("label-text", "text-label")]
    with metrics.aggregate(new_root=True) as aggregator:
        for log, is_measured in zip([*logs, logs[0]], (True, False, True)):
            aggregator.reset()  # fairseq does so behind each line
            criterion.reduce_metrics([log])
            assert (aggregator.get_smoothed_values()["ppl"] is not None) == is_measured
