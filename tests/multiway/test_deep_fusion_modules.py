"""Deep fusion: equations against the NumPy loops, properties, broken twins.

Legend: B sentences, T target positions, V words.
"""

import copy

import numpy as np
import pytest
import torch
from multiway.support import ALL, Case, fill, language_places
from multiway.test_modules import assert_gradients, close
from streams import directions
from streams.directions import (
    batch_mates,
    beam_reorder,
    causality,
    padding,
    randomise,
    sentences,
    stepwise,
)
from torch import nn
from toy_sentences import END, PAD

from fairseq_ext.common.decoding import reorder_cache
from fairseq_ext.multiway.deep_fusion import modules as fusion
from fairseq_ext.multiway.deep_fusion.modules import FusedDecoder, LanguageSize, LanguageState
from fairseq_ext.streams import direction as direction_file
from properties import collate
from reference import gradient, recurrent
from reference import multiway as reference

LENGTHS = [([1], [1]), ([4], [2]), ([2, 5, 1], [4, 1, 3]), ([3, 2], [2, 4], [1, 3])]


class FusedCase(Case):
    """A ``Case`` whose decoder reads a language model as well."""

    def __init__(self, seed, target_lengths, *source_lengths):
        super().__init__(seed, target_lengths, *source_lengths)
        arrays, places, rng = self.params["decoder"], self.places["decoder"], self.rng
        words = len(arrays["embedding"])
        size = LanguageSize(int(rng.integers(2, 6)), int(rng.integers(2, 6)))
        self.language = recurrent.random_language_model(
            words, size.embed_dim, size.hidden_size, rng
        )
        arrays.update(reference.random_fusion(size.hidden_size, self.shape, rng))
        places["fusion.weight"] = [("readout_language.weight", ALL)]
        places["fusion.gate"] = [("readout_gate.weight", None)]  # (L,) is a row of (1, L)
        places["fusion.bias"] = [("readout_gate.bias", ALL)]
        for name, place in language_places().items():
            arrays[f"language.{name}"], places[f"language.{name}"] = self.language[name], place
        decoder = FusedDecoder(self.size, size, words, PAD)
        self.modules["decoder"] = fill(decoder, arrays, places)

    def reference_logits(self, number):
        target, encoders = self.targets[number], self.encoders
        states = recurrent.language_model_states(target, self.language, END)
        annotations = [
            reference.encode(texts[number], encoder)
            for texts, encoder in zip(self.sources, encoders)
        ]
        decoder = self.params["decoder"]
        return reference.decode(annotations, target, self.params["shared"], decoder, states)[0]


# ---------------------------------------------------------------- equations


@pytest.mark.parametrize("path", ["fused", "literal", "stepwise"])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_fused_logits(lengths, path):
    """Of one source and of two, whole sequences and step by step."""
    case = FusedCase(7 + sum(lengths[0]), *lengths)
    with torch.no_grad():
        if path == "stepwise":
            logits = case.stepwise_logits(left=True)
        else:
            logits = case.logits(left=True, literal=path == "literal")
    for number, target in enumerate(case.targets):
        close(logits[number, : len(target)], case.reference_logits(number))


@pytest.mark.parametrize("lengths", [LENGTHS[0], LENGTHS[2]], ids=str)
def test_gradient_of_every_fused_parameter(lengths):
    """Those of the language model too: what is frozen is the model's affair, not the equations'."""
    case = FusedCase(11, *lengths)
    loss = case.loss(case.logits(left=True))
    assert loss.item() == pytest.approx(case.reference_loss(), rel=1e-10)
    loss.backward()
    assert_gradients(case)


def test_gradient_reaches_the_end_symbol_of_the_language_model():
    """It reads y_0 = the end symbol, where the translation model reads the zero vector."""
    case = FusedCase(12, [2, 3], [3, 1])
    case.loss(case.logits()).backward()
    array = case.language["embedding"]
    grads = case.modules["decoder"].language.embedding.weight.grad
    for word in range(len(array)):
        expected = gradient.central_difference(case.reference_loss, array, (word, 0))
        assert grads[word, 0].item() == pytest.approx(expected, rel=1e-5, abs=1e-8)
    assert grads[END].any()


def test_start_of_the_parameters():
    """W_s is zero, the controller mostly closed: sigmoid(-1) is 0.27."""
    decoder = FusedDecoder(Case(1, [1], [1]).size, LanguageSize(3, 4), 9, PAD)
    assert not decoder.readout_language.weight.any()
    assert decoder.readout_gate.bias.item() == -1.0
    assert decoder.readout_gate.weight.any()


def without_controller(case, monkeypatch):
    decoder = case.modules["decoder"]

    def twin(tokens, cache=None):
        return decoder.readout_language(decoder.language(tokens))

    monkeypatch.setattr(decoder, "extra_readout_term", twin)


def language_model_reads_the_token_itself(case, monkeypatch):
    real = case.modules["decoder"].extra_readout_term
    monkeypatch.setattr(
        case.modules["decoder"],
        "extra_readout_term",
        lambda tokens, cache=None: real(torch.cat([tokens[:, 1:], tokens[:, :1]], dim=1)),
    )


def language_model_starts_with_zeros(case, monkeypatch):
    """As the translation model does for y_0."""
    embed = case.modules["decoder"].language.embedding
    weight = embed.weight.detach().clone()
    weight[END] = 0.0
    embed.weight.data.copy_(weight)


def controller_without_bias(case, monkeypatch):
    nn.init.zeros_(case.modules["decoder"].readout_gate.bias)


TWINS = [
    without_controller,
    language_model_reads_the_token_itself,
    language_model_starts_with_zeros,
    controller_without_bias,
]


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_fused_logits_are_not_those_of_the_twin(monkeypatch, twin):
    case = FusedCase(13, [3], [4])
    expected = case.reference_logits(0)
    close(case.logits()[0], expected)
    twin(case, monkeypatch)
    assert np.abs(case.logits()[0].detach().numpy() - expected).max() > 1e-4


# ---------------------------------------------------------------- language model alone


# ---------------------------------------------------------------- directions of the fused model


@pytest.fixture(scope="module")
def built(multiway_task):
    """From sizes alone, as from a checkpoint."""
    flags = ["--language-model-size", "5,7", "--dropout", 0]
    return multiway_task(*flags, pairs="xx-yy,zz-yy", arch="deep_fusion_gru")[1]


@pytest.fixture
def model(built):
    model = copy.deepcopy(built)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("bias_hh" not in name)
    return randomise(model)


@pytest.mark.parametrize(
    "check", [padding, batch_mates, causality, stepwise, beam_reorder], ids=lambda c: c.__name__
)
@pytest.mark.parametrize("pair", ["xx-yy", "xx+zz-yy"])
def test_fused_direction(model, pair, check):
    check(model.direction(pair))


def test_language_state_is_per_hypothesis(model):
    """The state has a row for each hypothesis; what is the source's is kept once."""
    direction, state = model.direction("xx-yy").eval(), {}
    source = collate(sentences([4, 2], 3), PAD)
    rows = torch.tensor([0, 0, 0, 1, 1, 1])
    out = direction.encoder.reorder_encoder_out(direction.encoder(source), rows)
    direction.decoder(torch.full((6, 1), END), encoder_out=out, incremental_state=state)
    [cache] = state.values()
    sizes = {name: tensor.size(0) for name, tensor in cache.items()}
    assert sizes.pop("state") == sizes.pop("language_state") == 6
    assert set(sizes.values()) == {2}


def language_state_is_not_reordered(monkeypatch):
    def twin(cache, new_order):
        state = cache[fusion.STATE]
        reorder_cache(cache, new_order)
        cache[fusion.STATE] = state[: new_order.numel()]

    monkeypatch.setattr(direction_file, "reorder_cache", twin)


def language_state_is_stored_with_the_source(monkeypatch):
    monkeypatch.setattr(fusion, "STATE", "context_language")


def language_state_is_not_kept(monkeypatch):
    real = LanguageState.forward

    def twin(self, tokens, cache=None):
        if cache is not None:
            cache.pop(fusion.STATE, None)
        return real(self, tokens, cache)

    monkeypatch.setattr(LanguageState, "forward", twin)


def language_model_reads_the_next_token(monkeypatch):
    real = LanguageState.forward

    def twin(self, tokens, cache=None):
        return real(self, torch.cat([tokens[:, 1:], tokens[:, :1]], dim=1), cache)

    monkeypatch.setattr(LanguageState, "forward", twin)


BROKEN = [
    (beam_reorder, language_state_is_not_reordered, "after re-ordering: differs"),
    (beam_reorder, language_state_is_stored_with_the_source, "after re-ordering: differs"),
    (stepwise, language_state_is_not_kept, "first pass, step 1: differs"),
    (causality, language_model_reads_the_next_token, "before changed input 1: differs"),
]


@pytest.mark.parametrize("check, twin, message", **directions.each_with_name(BROKEN))
def test_broken_fusion_fails(model, monkeypatch, check, twin, message):
    directions.assert_broken(model.direction("xx-yy"), monkeypatch, check, twin, message)
