"""The GRU language model against the NumPy loops, and the properties of a decoder."""

import numpy as np
import pytest
import torch
from multiway.support import ALL, fill, language_places
from multiway.test_modules import close
from streams.directions import FEWEST, randomise, sentences
from torch import nn
from toy_sentences import END, PAD, WithTargets, previous, random_sentence

from fairseq_ext.multiway.deep_fusion.language_model import LanguageModelDecoder
from fairseq_ext.multiway.deep_fusion.modules import LanguageSize, LanguageState
from properties import (
    check_beam_reorder,
    check_causality,
    check_padding_invariance,
    check_stepwise,
    collate,
    shift,
)
from reference import gradient, recurrent


class Language(WithTargets):
    """A language model in both forms; with ``shared`` the softmax's matrix is the embedding."""

    def __init__(self, seed, lengths, shared):
        self.rng = rng = np.random.default_rng(seed)
        words, units = int(rng.integers(6, 9)), int(rng.integers(2, 5))
        width = units if shared else units + 1
        self.params = recurrent.random_language_model(words, width, units, rng)
        language = LanguageState(LanguageSize(width, units), words, PAD)
        self.decoder = LanguageModelDecoder(language, nn.Linear(units, words), None, 100)
        self.places = language_places()
        self.places["output.bias"] = [("output.bias", ALL)]
        arrays = dict(self.params)
        if shared:
            self.decoder.output.weight = language.embedding.weight
            self.params["output.weight"] = self.params["embedding"]  # one array, two uses
            del arrays["output.weight"]
        else:
            self.places["output.weight"] = [("output.weight", ALL)]
        fill(self.decoder, arrays, self.places)
        self.arrays = arrays
        self.targets = [random_sentence(rng, length, words) for length in lengths]

    def reference_logits(self, number):
        """(T, V) of sentence ``number``."""
        return recurrent.language_model_logits(self.targets[number], self.params, END)


@pytest.mark.parametrize("shared", [False, True], ids=["own matrix", "shared matrix"])
@pytest.mark.parametrize("lengths", [[1], [2, 5, 1]], ids=str)
def test_language_model(lengths, shared):
    """Logits, loss and its gradient."""
    case = Language(21, lengths, shared)
    logits = case.decoder(previous(case.targets))[0]
    for number, target in enumerate(case.targets):
        close(logits[number, : len(target)], case.reference_logits(number))
    loss = case.loss(logits)
    assert loss.item() == pytest.approx(case.reference_loss(), rel=1e-10)
    loss.backward()
    named = dict(case.decoder.named_parameters())
    for name, array in case.arrays.items():
        [(parameter, _)] = case.places[name]
        for index in gradient.random_entries(array, 4, case.rng):
            if name == "embedding":
                index = (case.targets[-1][0], index[1])
            expected = gradient.central_difference(case.reference_loss, array, index)
            computed = named[parameter].grad[index].item()
            assert computed == pytest.approx(expected, rel=1e-5, abs=1e-8), name


class NoSource(nn.Module):
    """What stands in for an encoder where only the target matters."""

    def forward(self, tokens, src_lengths=None):
        return None

    def reorder_encoder_out(self, encoder_out, new_order):
        return None


@pytest.fixture
def alone():
    """A language model as the checks of a direction want it."""
    language = LanguageState(LanguageSize(6, 8), FEWEST, PAD)
    model = nn.Module()
    model.encoder = NoSource()
    model.decoder = LanguageModelDecoder(language, nn.Linear(8, FEWEST), None, 100)
    return randomise(model, seed=5)


def language_stepwise(model):
    check_stepwise(model, torch.ones(2, 1), collate(shift(sentences([5, 5], 4)), PAD), PAD)


def language_reorder(model):
    check_beam_reorder(model, torch.ones(3, 1), END, PAD, words=FEWEST)


def language_padding(model):
    ones = [torch.ones(1)] * 3
    check_padding_invariance(model, ones, sentences([4, 2, 6], 2), PAD, left_pad_source=False)


def language_causality(model):
    prev = collate(shift(sentences([5, 5], 4)), PAD)
    check_causality(model, torch.ones(2, 1), prev, PAD, words=FEWEST)


@pytest.mark.parametrize(
    "check",
    [language_stepwise, language_reorder, language_padding, language_causality],
    ids=lambda check: check.__name__,
)
def test_language_model_alone(alone, check):
    check(alone)


def test_language_model_reorder_can_fail(alone, monkeypatch):
    monkeypatch.setattr(
        LanguageModelDecoder,
        "reorder_incremental_state",
        lambda self, state, order: state["language"].update(
            {name: rows[: len(order)] for name, rows in state["language"].items()}
        ),
    )
    with pytest.raises(AssertionError, match="after re-ordering: differs"):
        language_reorder(alone)
