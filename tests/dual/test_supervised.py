"""Dual supervised learning: the term against NumPy loops, its gradient, what it must not see."""

import numpy as np
import pytest
import torch
from dual.supervised import PaddingCounts, couple, criterion_of
from dual.support import fill, gradient_of
from toy_sentences import PAD, random_sentence

from fairseq_ext.common.criterion import ChunkedLabelSmoothedCrossEntropy
from fairseq_ext.dual.supervised.criterion import DualSupervisedConfig, DualSupervisedCriterion
from fairseq_ext.dual.supervised.marginals import Marginals
from reference import dual as reference
from reference.gradient import central_difference, random_entries

SHAPE = reference.Shape(12, 20, 3, 1)
LANGS = ("xx", "yy")
# the orders by the lengths of x and of y are different
X_LENGTHS, Y_LENGTHS = (5, 1, 3, 2), (2, 4, 1, 6)


class Case:
    """A dual model in float64, bigram models and sentence pairs, as arrays and as tensors."""

    def __init__(self, dual_task):
        self.task, model = dual_task("--dropout", 0, "--layers", 1)
        self.model, rng = model.double(), np.random.default_rng(31)
        self.words = len(self.task.dictionaries["xx"])
        self.params, self.tables = {}, {}
        for lang in LANGS:
            self.params[lang] = reference.random_parameters(SHAPE, self.words, rng)
            self.tables[lang] = rng.normal(size=(self.words, self.words))
        self.refill()
        self.x, self.y = (
            [random_sentence(rng, length, self.words) for length in lengths]
            for lengths in (X_LENGTHS, Y_LENGTHS)
        )

    def refill(self):
        for lang in LANGS:
            fill(self.model.components[lang], self.params[lang], SHAPE)

    def expected(self, smoothing, weight):
        """The objective by loops."""
        both = [[side[lang] for lang in LANGS] for side in (self.tables, self.params)]
        pairs = list(zip(self.x, self.y))
        return reference.dual_supervised_loss(pairs, *both, SHAPE, PAD, smoothing, weight)

    def found(self, smoothing, weight, **options):
        """(loss, {pair: log}) of the criterion on one batch."""
        criterion = criterion_of(self.task, weight, self.tables, smoothing, **options)
        loss, _, logs = criterion(self.model, couple(self.x, self.y))
        return loss, logs


@pytest.fixture(scope="module")
def case(dual_task):
    return Case(dual_task)


# ---------------------------------------------------------------- the equation


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weight", [0.01, 1.5])
def test_value_equals_the_reference(case, smoothing, weight):
    loss, logs = case.found(smoothing, weight)
    assert loss.item() == pytest.approx(case.expected(smoothing, weight), rel=1e-6)
    # the broken twin: the term is not a matter of rounding
    assert abs(loss.item() - case.expected(smoothing, 0)) > 1e-3
    term = (case.expected(smoothing, 1) - case.expected(smoothing, 0)) / len(case.x)
    for log in logs.values():
        assert log["l_duality"].item() / log["nsentences"] == pytest.approx(term, rel=1e-5)
    assert sum(log["loss"].item() for log in logs.values()) == pytest.approx(loss.item())
    likelihood = sum(log["nll_loss"].item() for log in logs.values())
    assert likelihood == pytest.approx(case.expected(0.0, 0), rel=1e-6)
    marginal = sum(reference.bigram_log_probability(y, case.tables["yy"]) for y in case.y)
    assert logs["xx-yy"]["lm_nll_loss"].item() == pytest.approx(-marginal, rel=1e-6)


def test_the_gradient_is_divided_by_what_both_directions_count(case):
    criterion = criterion_of(case.task, 1.0, case.tables)
    assert criterion(case.model, couple(case.x, case.y))[1] == sum(map(len, case.x + case.y))
    criterion.sentence_avg = True
    assert criterion(case.model, couple(case.x, case.y))[1] == 2 * len(case.x)


def test_options_reach_the_criterion(case):
    cfg = DualSupervisedConfig(dsl_weight=0.0, label_smoothing=0.1, sentence_avg=True)
    criterion = DualSupervisedCriterion.build_criterion(cfg, case.task)
    assert (criterion.weight, criterion.eps, criterion.sentence_avg) == (0.0, 0.1, True)


def test_sentences_have_to_be_matched(case, monkeypatch):
    """The broken twin: rows in the order of the batches."""
    monkeypatch.setattr(torch.Tensor, "argsort", lambda ids: torch.arange(len(ids)))
    loss, _ = case.found(0.0, 1.0)
    assert abs(loss.item() / case.expected(0.0, 1.0) - 1) > 1e-2


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradient_equals_the_reference(case, smoothing):
    case.model.zero_grad()
    case.found(smoothing, 0.5)[0].backward()
    rng = np.random.default_rng(5)
    for lang, name in (
        ("xx", "embedding"),
        ("yy", "embedding"),
        ("xx", "blocks.0.context.value.weight"),
        ("yy", "blocks.0.inner.bias"),
    ):
        array = case.params[lang][name]
        case.params[lang]["softmax"] = case.params[lang]["embedding"]
        grad = gradient_of(case.model.components[lang], SHAPE, name)
        for index in random_entries(array, 2, rng):
            derivative = central_difference(lambda: case.expected(smoothing, 0.5), array, index)
            assert grad[index].item() == pytest.approx(derivative, rel=1e-4, abs=1e-6)
    # the broken twin: the gradient without the term
    plain = central_difference(lambda: case.expected(smoothing, 0.0), array, index)
    assert abs(derivative - plain) > 1e-2


def test_the_marginals_have_no_gradient_and_no_place_in_a_checkpoint(case):
    criterion = criterion_of(case.task, 1.0, case.tables)
    criterion(case.model, couple(case.x, case.y))[0].backward()
    models = criterion.marginals.models.values()
    assert all(parameter.grad is None for model in models for parameter in model.parameters())
    assert not list(criterion.parameters()) and not criterion.state_dict()


# ---------------------------------------------------------------- batches


@pytest.mark.parametrize("kind, same", [(Marginals, True), (PaddingCounts, False)])
def test_mates_and_padding_change_nothing(case, kind, same):
    """The term of a batch is the sum of the terms of its pairs alone."""
    criterion = criterion_of(case.task, 1.0, case.tables, kind=kind)

    def term(x, y):
        return criterion(case.model, couple(x, y))[2]["xx-yy"]["l_duality"].item()

    alone = sum(term([x], [y]) for x, y in zip(case.x, case.y))
    assert (term(case.x, case.y) == pytest.approx(alone, rel=1e-6)) is same


def test_one_direction_is_the_plain_criterion(case):
    criterion = criterion_of(case.task, 1.0, case.tables, smoothing=0.1)
    plain = ChunkedLabelSmoothedCrossEntropy(case.task, False, 0.1)
    for sample in couple(case.x, case.y).values():
        (ours, size, log), (theirs, *rest) = (
            objective(case.model, sample) for objective in (criterion, plain)
        )
        assert ours == theirs and [size, log] == rest


def test_a_pair_has_no_losses_of_single_tokens(case):
    criterion = criterion_of(case.task, 1.0, case.tables)
    with pytest.raises(ValueError, match="^criterion dual_supervised: reduce=False with a pair"):
        criterion(case.model, couple(case.x, case.y), reduce=False)


@pytest.mark.parametrize("pairs", [["xx-yy", "yy-xx"], ["yy-xx", "xx-yy", "xx-zz", "zz-xx"]])
def test_the_task_puts_directions_together(dual_task, pairs):
    task, _ = dual_task()
    sample = {pair: {"name": pair} for pair in pairs}
    assert task.criterion_calls(sample) is sample
    task.couple_directions()
    calls = list(task.criterion_calls(sample).values())
    assert [list(call) for call in calls] == [pairs[:2], pairs[2:]][: len(pairs) // 2]
    assert all(part is sample[pair] for call in calls for pair, part in call.items())


class Rounded(torch.nn.Module):
    """A model whose logits are of another type."""

    def __init__(self, model, dtype):
        super().__init__()
        self.model, self.dtype, self.get_targets = model, dtype, model.get_targets

    def forward(self, **inputs):
        logits, extra = self.model(**inputs)
        return logits.to(self.dtype), extra


def test_low_precision_is_summed_in_float32(case):
    """Logits in half precision: the gap is no worse than their rounding."""
    criterion, gaps = criterion_of(case.task, 1.0, case.tables, smoothing=0.1), {}
    for dtype in (torch.float64, torch.float16):
        loss, _, logs = criterion(Rounded(case.model, dtype), couple(case.x, case.y))
        gaps[dtype] = logs["xx-yy"]["l_duality"].item()
        assert loss.dtype != torch.float16 and torch.isfinite(loss)
    assert gaps[torch.float16] == pytest.approx(gaps[torch.float64], rel=1e-2)
