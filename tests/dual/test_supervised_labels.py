"""Dual supervised learning of texts and labels: both losses against NumPy loops, and properties."""

import copy
import inspect

import numpy as np
import pytest
import torch
from dual.lstm_support import (
    END,
    FIRST,
    NAMES,
    SEEN,
    build,
    fill,
    gradient_of,
    write_dictionaries,
)
from dual.supervised import Bigrams, PaddingCounts, sample_of

from fairseq_ext.dual.supervised.duality import DualityGap
from fairseq_ext.dual.supervised.labels import DualSupervisedLabels
from fairseq_ext.dual.supervised.marginals import LabelFrequencies, Marginals
from reference import dual_lstm as reference
from reference.gradient import central_difference, random_entries

WORDS, LABELS = 15, 3
PAIRS = ("text-label", "label-text")
LENGTHS = (2, 5, 1, 4)
KINDS = {"two": "dual_supervised_lstm_classifier", "dual": "dual_lstm_classifier"}


class Case:
    """A model in float64, a bigram model, counts of labels and pairs, as arrays and as tensors.

    kind: "two", a classifier and a generator; "dual", one network in both roles.
    """

    def __init__(self, data, kind):
        rng = np.random.default_rng(17)
        self.task, self.model, _ = build(data, "--arch", KINDS[kind])
        self.model.double()
        self.f = reference.random_parameters(WORDS, LABELS, 5, 6, rng)
        self.g = self.f if kind == "dual" else reference.random_parameters(WORDS, LABELS, 5, 6, rng)
        if kind == "dual":
            self.networks = [self.model.network] * 2
            fill(self.model.network, self.f)
        else:
            self.networks = [self.model.models[pair].network for pair in PAIRS]
            without_output = {
                name: array for name, array in self.f.items() if name not in ("P", "W_o", "b_o")
            }
            for network, params in zip(self.networks, (without_output, self.g)):
                fill(network, params)
        self.table = rng.normal(size=(WORDS, WORDS))
        self.texts = [[int(w) for w in rng.integers(FIRST, WORDS, size=n)] for n in LENGTHS]
        self.labels = [2, 0, 1, 2]

    @property
    def pairs(self):
        return list(zip(self.texts, self.labels))

    def expected(self, weight, f=None, g=None):
        """[loss of f, loss of g] by loops."""
        marginals, params = (self.table, SEEN), (f or self.f, g or self.g)
        return reference.supervised_losses(self.pairs, marginals, *params, END, weight)

    def criterion(self, weight, label_weight="text", kind=Marginals):
        frequencies = LabelFrequencies(self.task.dictionaries["label"], "label")
        marginals = kind({"text": Bigrams(self.table), "label": frequencies})
        return DualSupervisedLabels(self.task, label_weight, weight, marginals)

    def sample(self, rows=(0, 1, 2, 3)):
        """{pair: batch} of some of the pairs."""
        texts = [[*self.texts[row], END] for row in rows]
        labels = [[FIRST + self.labels[row], END] for row in rows]
        sides = (texts, labels), (labels, texts)
        return {pair: {**sample_of(*both, list(rows), pair)} for pair, both in zip(PAIRS, sides)}

    def found(self, weight, label_weight="text"):
        """(loss, {pair: log}) of the criterion on one batch."""
        loss, _, logs = self.criterion(weight, label_weight)(self.model, self.sample())
        return loss, logs


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_dictionaries(tmp_path_factory.mktemp("dictionaries"))


@pytest.fixture(scope="module", params=KINDS)
def case(request, data):
    return Case(data, request.param)


# ---------------------------------------------------------------- the equations


TOKENS = sum(LENGTHS) / len(LENGTHS) + 1  # of a text, its end included


def test_the_term_is_off_by_default():
    assert inspect.signature(DualSupervisedLabels).parameters["weight"].default == 0


@pytest.mark.parametrize("label_weight, times", [("text", TOKENS), ("token", 1)])
def test_both_losses_are_those_of_the_reference(case, label_weight, times):
    loss, logs = case.found(0.5, label_weight)
    f, g = case.expected(0.5)
    assert logs["text-label"]["loss"].item() == pytest.approx(times * f, rel=1e-6)
    assert logs["label-text"]["loss"].item() == pytest.approx(g, rel=1e-6)
    assert loss.item() == pytest.approx(times * f + g, rel=1e-6)
    plain, term = case.expected(0.0), case.expected(1.0)[0] - case.expected(0.0)[0]
    assert term > 1  # the term is not a matter of rounding
    for log in logs.values():
        assert log["l_duality"].item() == pytest.approx(term, rel=1e-6)
        assert log["sample_size"] == (times * 4 if log["labels"] else sum(LENGTHS) + 4)
    assert logs["label-text"]["text_nll"].item() == pytest.approx(plain[1], rel=1e-6)
    assert logs["label-text"]["lm_tokens"] == sum(LENGTHS) + 4
    assert logs["text-label"]["lm_tokens"] == logs["text-label"]["lm_nll_loss"] == 0


@pytest.mark.parametrize("number, pair", list(enumerate(PAIRS)))
def test_gradient_equals_the_reference(case, number, pair):
    """Of f's parameters that of f's loss with g as it is, and the other way round."""
    case.model.zero_grad()
    case.found(0.5)[0].backward()
    fixed, rng = [copy.deepcopy(case.f), copy.deepcopy(case.g)], np.random.default_rng(5)
    params, times = (case.f, case.g)[number], (TOKENS, 1)
    shared = case.f is case.g

    def objective(weight=0.5):
        losses = []
        for role in {number, 0, 1} if shared else {number}:
            both = [*fixed]
            both[role] = params
            losses.append(times[role] * case.expected(weight, *both)[role])
        return sum(losses)

    names = [name for name in NAMES if name in ("W_a", "U_a", "E_y") or pair == "label-text"]
    used, differences = sorted({END, *sum(case.texts, [])}), []
    for name in names:
        grad = gradient_of(case.networks[number], name)
        for index in random_entries(params[name], 2, rng):
            if name == "embedding":
                index = (used[index[0] % len(used)], index[1])
            derivative = central_difference(objective, params[name], index)
            assert grad[index].item() == pytest.approx(derivative, rel=1e-4, abs=1e-6), (
                name,
                index,
            )
            plain = central_difference(lambda: objective(0.0), params[name], index)
            differences.append(abs(derivative - plain))
    assert max(differences) > 1e-2  # the broken twin: the gradient without the term


def test_a_single_sum_would_move_the_models_otherwise(case, monkeypatch):
    """The broken twin: the penalty of each direction reaches both."""
    gradients = []
    for twin in (DualSupervisedLabels.penalties, DualityGap.penalties):
        monkeypatch.setattr(DualSupervisedLabels, "penalties", twin)
        case.model.zero_grad()
        case.found(0.5)[0].backward()
        gradients.append(case.networks[0].label_embedding.grad.clone())
    assert (gradients[0] - gradients[1]).abs().max() > 1e-2


def test_sentences_have_to_be_matched(case, monkeypatch):
    """The broken twin: rows in the order of the batches."""
    monkeypatch.setattr(torch.Tensor, "argsort", lambda ids: torch.arange(len(ids)))
    loss, _ = case.found(1.0)
    f, g = case.expected(1.0)
    assert abs(loss.item() / ((max(LENGTHS) + 1) * f + g) - 1) > 1e-2


def test_each_term_is_divided_by_the_length_of_its_own_text(case):
    """fairseq orders a batch by the lengths of its sources: of labels, in any order."""
    sample, other = case.sample(), case.sample((2, 0, 3, 1))
    assert other["label-text"]["id"].tolist() == [2, 0, 3, 1]
    losses = [
        case.criterion(1.0)(case.model, {**sample, "label-text": part["label-text"]})[0].item()
        for part in (sample, other)
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-9)


@pytest.mark.parametrize("kind, same", [(Marginals, True), (PaddingCounts, False)])
def test_mates_and_padding_change_nothing(case, kind, same):
    """The term of a batch is the sum of the terms of its pairs alone."""
    criterion = case.criterion(1.0, kind=kind)

    def term(rows):
        return criterion(case.model, case.sample(rows))[2]["label-text"]["l_duality"].item()

    alone = sum(term([row]) for row in range(4))
    assert (term(range(4)) == pytest.approx(alone, rel=1e-6)) is same


def test_one_direction_is_the_plain_criterion(case, data):
    _, _, plain = build(data)
    for sample in case.sample().values():
        ours, theirs = (objective(case.model, sample) for objective in (case.criterion(1.0), plain))
        assert ours == theirs


# ---------------------------------------------------------------- two models


def test_two_models_are_a_classifier_and_a_generator(data):
    """Function, gradient and number of parameters of what --one-way trains."""
    case = Case(data, "two")
    count = 0
    for pair, sample in case.sample().items():
        sides = ("-s", pair.split("-")[0], "-t", pair.split("-")[1])
        _, alone, plain = build(data, "--one-way", sides=sides)
        alone.double().load_state_dict(case.model.models[pair].state_dict(), strict=True)
        case.model.zero_grad()
        losses = [plain(model, sample)[0] for model in (case.model, alone)]
        assert losses[0] == losses[1]
        for loss in losses:
            loss.backward()
        theirs = dict(alone.named_parameters())
        moved = {
            n: parameter.grad
            for n, parameter in case.model.named_parameters()
            if parameter.grad is not None
        }
        moved = {name: grad for name, grad in moved.items() if grad.any()}
        assert set(moved) == set(case.model.pair_parameters(pair))
        for name, grad in moved.items():
            torch.testing.assert_close(grad, theirs[name[len(f"models.{pair}.") :]].grad)
        count += sum(parameter.numel() for parameter in alone.parameters())
    assert sum(parameter.numel() for parameter in case.model.parameters()) == count
    with pytest.raises(ValueError, match="'text-other': the model has text-label, label-text"):
        case.model.direction("text-other")
