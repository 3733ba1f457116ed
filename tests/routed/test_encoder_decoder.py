"""The decoder and the whole model against the NumPy reference, value and gradient.

Legend: B sentences, S source positions, T target positions.
"""

import numpy as np
import pytest
import torch
from routed.support import KINDS, Case, assert_gradients, gradient, value
from toy_sentences import shifted

from fairseq_ext.routed.encoder_decoder import RoutedSize, decode

BATCHES = [([1], [1]), ([4], [1]), ([1], [4]), ([5, 2, 1], [1, 4, 3])]
LITERAL = pytest.mark.parametrize("literal", [False, True], ids=["fused", "literal"])


@LITERAL
@pytest.mark.parametrize("left", [False, True], ids=["right-padded", "left-padded"])
@pytest.mark.parametrize("lengths", BATCHES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_model_is_the_reference(kind, lengths, left, literal):
    case = Case(kind, 7, *lengths)
    logits, _ = case.outcome(left, literal)
    for number, target in enumerate(case.targets):
        expected = case.reference_logits(number)
        np.testing.assert_allclose(value(logits[number, : len(target)]), expected, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_reference(kind):
    """Of the fused paths; test_routed_gru.py compares them with the literal ones."""
    case = Case(kind, 8, [3], [2])
    loss = case.loss(case.outcome()[0])
    assert loss.item() == pytest.approx(case.reference_loss(), rel=1e-10)
    loss.backward()
    for arrays, gradients in zip(case.arrays(), case.arrays(gradient)):
        assert_gradients(case.reference_loss, arrays, gradients, case.rng, count=1)


@pytest.mark.parametrize("lengths", BATCHES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_one_step_of_the_decoder(kind, lengths):
    """Step by step with a cache: each step is the reference's."""
    case, cache = Case(kind, 9, *lengths), {}
    encoded = case.encode()
    with torch.no_grad():
        for t in range(min(lengths[1])):
            prev = torch.tensor([shifted(target)[: t + 1] for target in case.targets])
            readout, _ = decode(case.decoder, case.target, encoded, prev, case.task, cache)
            for number in range(len(case.targets)):
                np.testing.assert_allclose(
                    value(case.target.output(readout)[number, 0]),
                    case.reference_logits(number)[t],
                    atol=1e-10,
                )


@pytest.mark.parametrize(
    "option, number, message",
    [
        ("embed_dim", 0, "--embed-dim 0: must be at least 1"),
        ("hidden_size", -1, "--hidden-size -1"),
        ("router_size", -1, "--router-size -1: must be at least 0"),
        ("dropout", 1.0, r"--dropout 1.0: must be in \[0, 1\)"),
    ],
)
def test_sizes_out_of_range_name_the_option(option, number, message):
    with pytest.raises(ValueError, match=message):
        RoutedSize(**{option: number})
