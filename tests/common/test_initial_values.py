"""What recurrent layers and attention start from: no test of values or gradients sees it.

Legend: H units, gates stand one below the other in U.
"""

import pytest
import torch

from fairseq_ext.common.lstm import LSTM
from fairseq_ext.common.recurrent import GRU
from fairseq_ext.duo.classifier.modules import DuoSentence
from fairseq_ext.multiway.modules import MultiwayDecoder, MultiwaySize, SharedAttention
from fairseq_ext.routed import encoder_decoder
from fairseq_ext.routed.modules import Blocks, RoutedUnit

UNITS = 12
WIDE = 4000


def block():
    return Blocks(2, 5, UNITS)


# name: (recurrent matrix of all gates (N H, H) or (K, N H, H), number of gates)
RECURRENT = {
    "gru": lambda: (GRU(5, UNITS).weight_hh_l0, 3),
    "lstm": lambda: (LSTM(5, UNITS).weight_hh_l0, 4),
    "decoder": lambda: (
        MultiwayDecoder(MultiwaySize(hidden_size=UNITS), 9, 1).gates_state.weight,
        3,
    ),
    "block": lambda: (block().weight_state, 3),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrence_is_orthogonal_gate_by_gate(name):
    torch.manual_seed(1)
    weight, gates = RECURRENT[name]()
    for rows in weight.reshape(-1, gates * UNITS, UNITS):
        parts = list(rows.chunk(gates))
        for part in parts:
            torch.testing.assert_close(part @ part.t(), torch.eye(UNITS), atol=1e-4, rtol=0)
        assert not torch.equal(parts[0], parts[1])


def test_inputs_are_xavier_gate_by_gate():
    """Uniform within sqrt(6 / (I + H)) of a gate, not of all gates together."""
    torch.manual_seed(1)
    bound = (6 / (50 + 50)) ** 0.5
    for part in GRU(50, 50).weight_ih_l0.chunk(3):
        assert 0.97 * bound < part.abs().max() <= bound
    for rows in Blocks(2, 50, 50).weight_input:
        for part in rows.chunk(3):
            assert 0.97 * bound < part.abs().max() <= bound


def test_biases_of_blocks_are_zero():
    assert not block().bias.any()


@pytest.mark.parametrize("system", ["multiway", "routed"])
def test_energy_has_the_deviation_of_a_row(system):
    """v ~ N(0, 1 / A): the scores then have the size of the keys."""
    torch.manual_seed(1)
    if system == "multiway":
        energy = SharedAttention(MultiwaySize(8, 8, WIDE, 8, 8, 8)).energy
    else:
        size = encoder_decoder.RoutedSize(4, 4, WIDE, 0, 0.0)
        energy = encoder_decoder.Decoder(size, [RoutedUnit(8, 4)], 4).energy
    assert energy.std().item() == pytest.approx(WIDE**-0.5, rel=0.05)
    assert abs(energy.mean().item()) < 4 / WIDE


def test_queries_of_the_duo_classifier_have_the_deviation_of_a_row():
    """w_S ~ N(0, 1 / d1), w_P ~ N(0, 1 / d2)."""
    torch.manual_seed(1)
    sentence = DuoSentence(WIDE, 2 * WIDE, 3, "softmax", 0.0)
    assert sentence.w_s.std().item() == pytest.approx(WIDE**-0.5, rel=0.05)
    assert sentence.w_p.std().item() == pytest.approx((2 * WIDE) ** -0.5, rel=0.05)
