"""--amp on CPUs with and without products in bfloat16: LSTMs run, near to single precision."""

import pytest
import torch
from twin.support import built, configured, write_dictionaries

from fairseq_ext.common.autocast import has_bfloat16, lstm_precision
from fairseq_ext.common.lstm import LSTM, BidirectionalLSTM
from fairseq_ext.dual.lstm_classifier.modules import DualLSTM, DualLSTMSize
from fairseq_ext.twin.stock.lstm import unroll

ROWS, STEPS = 4, 7


def check(run, parameters):
    """``run`` and its gradients under autocast are near to those in single precision."""
    results = []
    for enabled in (False, True):
        with torch.autocast("cpu", enabled=enabled):
            states = run()
        gradients = torch.autograd.grad(states.float().square().sum(), parameters)
        results.append([states.float(), *gradients])
    for single, mixed in zip(*results):
        torch.testing.assert_close(mixed, single, rtol=0.1, atol=0.05 * float(single.abs().max()))


def trained(module):
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layers(dtype):
    """bfloat16: what a product under autocast hands over."""
    torch.manual_seed(0)
    inputs, padding = torch.randn(ROWS, STEPS, 5).to(dtype), torch.zeros(ROWS, STEPS).bool()
    if dtype == torch.float32:
        layer, bidirectional = LSTM(5, 6), BidirectionalLSTM(5, 6)
        check(lambda: layer(inputs), trained(layer))
        check(lambda: bidirectional(inputs, padding), trained(bidirectional))
    with torch.autocast("cpu"):
        _, (state, memory) = LSTM(5, 6).carry(inputs)
    assert state.shape == memory.shape == (1, ROWS, 6)


@pytest.mark.parametrize("reads_label", [False, True])
def test_dual_lstm(reads_label):
    torch.manual_seed(0)
    network = DualLSTM(DualLSTMSize(5, 6), 20, 3, 1)
    tokens = torch.randint(4, 20, (ROWS, STEPS))
    y = torch.eye(3)[torch.arange(ROWS) % 3] if reads_label else None
    used = [network.embedding.weight, network.lstm.weight_ih_l0, network.lstm.weight_hh_l0]
    check(lambda: network.states(tokens, y)[0], used)


def test_language_model(tmp_path):
    torch.manual_seed(0)
    cfg = configured(write_dictionaries(tmp_path), "twin_lstm_lm", "--dropout", 0)
    decoder = built(cfg)[1].decoder
    tokens = torch.randint(4, 15, (ROWS, STEPS))
    check(lambda: unroll(decoder, tokens, None)[1], [decoder.embed_tokens.weight])


def test_the_precision_is_that_of_weights_only_where_autocast_would_fail():
    inputs = torch.zeros(2, dtype=torch.bfloat16)
    with lstm_precision(torch.zeros(2)) as converted:
        assert converted(inputs) is inputs  # no autocast: nothing to do
    with torch.autocast("cpu"), lstm_precision(torch.zeros(2)) as converted:
        assert converted(inputs).dtype == (torch.bfloat16 if has_bfloat16() else torch.float32)
