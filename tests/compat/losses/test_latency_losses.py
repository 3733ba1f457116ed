"""The weights of the losses of latency, in NumPy."""

from types import SimpleNamespace

import numpy
import pytest
import torch
from fairseq.criterions import label_smoothed_cross_entropy_latency_augmented as module

from fairseq_ext.compat.user_errors import OptionError

SENTENCES, LAYERS, HEADS, STEPS, POSITIONS, PAD = 2, 2, 3, 4, 5, 1


def mean_delay(delays, source_lengths, reference_lengths, target_padding_mask):
    """As the average proportion of SimulEval, (rows, T) to (rows,)."""
    assert reference_lengths is None
    words = (~target_padding_mask).sum(1)
    return delays.masked_fill(target_padding_mask, 0).sum(1) / words / source_lengths


def criterion_of(method):
    kind = module.LatencyAugmentedLabelSmoothedCrossEntropyCriterion
    criterion = kind.__new__(kind)
    torch.nn.Module.__init__(criterion)
    criterion.latency_avg_weight, criterion.latency_var_weight = 0.5, 0.2
    criterion.latency_avg_type, criterion.latency_gather_method = "mean_delay", method
    criterion.padding_idx = PAD
    return criterion


@pytest.mark.parametrize("method", ["average", "weighted_average", "max"])
def test_latency_and_variance_have_their_weights(method, monkeypatch):
    monkeypatch.setattr(module, "LATENCY_METRICS", {"mean_delay": mean_delay})
    torch.manual_seed(1)
    alphas = [torch.rand(SENTENCES, HEADS, STEPS, POSITIONS).double() for _ in range(LAYERS)]
    target = torch.tensor([[5, 6, 7, 2], [5, 2, PAD, PAD]])
    output = (None, SimpleNamespace(attn_list=[{"alpha": alpha} for alpha in alphas]))
    output += (SimpleNamespace(encoder_padding_mask=None),)
    model = SimpleNamespace(get_targets=lambda sample, net_output: target)
    sample = {"net_input": {"src_lengths": torch.tensor([5, 3])}}
    loss, latency, variance = criterion_of(method).compute_latency_loss(model, sample, output)

    alpha = numpy.concatenate([part.numpy() for part in alphas], axis=1)
    delays = (alpha * numpy.arange(1, POSITIONS + 1)).sum(-1)  # (B, H, T)
    words, lengths = (4, 2), (5, 3)
    of_heads = numpy.array(
        [delays[row, :, : words[row]].mean(1) / lengths[row] for row in range(SENTENCES)]
    )  # (B, H)
    weights = numpy.exp(of_heads) / numpy.exp(of_heads).sum(1, keepdims=True)
    expected = {
        "average": of_heads.mean(1),
        "weighted_average": (weights * of_heads).sum(1),
        "max": of_heads.max(1),
    }[method].sum()
    variances = delays.var(axis=1, ddof=1)  # (B, T)
    expected_variance = sum(variances[row, : words[row]].mean() for row in range(SENTENCES))
    assert latency.item() == pytest.approx(expected)
    assert variance.item() == pytest.approx(expected_variance)
    assert loss.item() == pytest.approx(0.5 * expected + 0.2 * expected_variance)


def lags(delays, source, name):
    """The latency of one sentence, word by word as its paper defines it."""
    target = len(delays)
    if name == "average_proportion":
        return sum(delays) / (source * target)
    pace = source / target
    if name == "average_lagging":
        complete = next((t for t in range(target) if delays[t] >= source), target - 1)
        return sum(delays[t] - t * pace for t in range(complete + 1)) / (complete + 1)
    total, before = 0.0, -numpy.inf
    for t in range(target):
        before = max(delays[t], before + pace)
        total += before - t * pace
    return total / target


@pytest.mark.parametrize(
    "name", ["average_lagging", "average_proportion", "differentiable_average_lagging"]
)
def test_latencies_are_those_of_their_papers(name):
    sentences = [([1.0, 2.5, 3.0, 5.0, 5.0], 5), ([3.0, 3.5], 4), ([2.0, 2.0, 6.0], 6)]
    longest = max(len(delays) for delays, _ in sentences)
    rows = [[*delays, *[9.0] * (longest - len(delays))] for delays, _ in sentences]
    padding = [[t >= len(delays) for t in range(longest)] for delays, _ in sentences]
    latencies = module.LATENCY_METRICS[name](
        torch.tensor(rows, dtype=torch.double),
        torch.tensor([source for _, source in sentences]),
        None,
        target_padding_mask=torch.tensor(padding),
    )
    assert latencies.tolist() == pytest.approx([lags(*pair, name) for pair in sentences])


def test_other_names_are_refused():
    task = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD))
    build = module.LatencyAugmentedLabelSmoothedCrossEntropyCriterion
    names = ["differentiable_average_lagging", "variance_delay", "weighted_average"]
    build(task, False, 0.1, 0, False, 1.0, 0.0, *names, 0)
    for place, message in (
        (0, "--latency-avg-type any: allowed: average_lag"),
        (2, "average, max"),
    ):
        other = [*names[:place], "any", *names[place + 1 :]]
        with pytest.raises(OptionError, match=message):
            build(task, False, 0.1, 0, False, 1.0, 0.0, *other, 0)
