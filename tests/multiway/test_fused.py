"""The fast paths are the literal ones: torch's GRU in the encoder, the fused loop in the decoder.

Legend: B sentences, S source positions, T target positions.
"""

import pytest
import torch
from multiway.support import PAD, previous, rows

from fairseq_ext.multiway.modules import Decoder, Encoder, SharedAttention, Size, decode
from properties import check_same_numbers, random_sentences

WORDS = 23
SIZE = Size(
    embed_dim=12,
    hidden_size=20,
    context_size=24,
    readout_size=16,
    init_hidden_size=10,
    init_size=14,
)
BATCHES = [([1], [1]), ([6], [1]), ([1], [7]), ([8, 3, 1, 8], [5, 9, 2, 1])]
# in single precision the numbers inside the attention are rounded at 6e-8, gradients here are small
PRECISIONS = [(torch.float64, 1e-6), (torch.float32, 3e-5)]


@pytest.fixture(params=BATCHES, ids=str)
def lengths(request):
    return request.param


@pytest.fixture(params=PRECISIONS, ids=["double", "single"])
def precision(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["right-padded", "left-padded"])
def left(request):
    return request.param


class Batch:
    """Modules with random weights and a batch of sentences; everything that has a gradient."""

    def __init__(self, lengths, dtype, left=True):
        torch.manual_seed(0)
        self.encoder = Encoder(SIZE, 11, WORDS, PAD)
        self.shared, self.decoder = SharedAttention(SIZE), Decoder(SIZE, WORDS, PAD)
        self.modules = torch.nn.ModuleList([self.encoder, self.shared, self.decoder]).to(dtype)
        # biases that are not zero, and an attention that is far from the mean of the source, whose
        # gradient would be the small difference of large numbers
        for name, parameter in self.modules.named_parameters():
            if "bias" in name and parameter.requires_grad:
                torch.nn.init.normal_(parameter, std=0.3)
            if "energy" in name or "embedding.weight" in name:
                torch.nn.init.normal_(parameter)
        sources = random_sentences(lengths[0], WORDS, 2, seed=1)
        self.targets = [t.tolist() for t in random_sentences(lengths[1], WORDS, 2, seed=2)]
        self.source = rows([sentence.tolist() for sentence in sources], left)
        self.prev, self.target = previous(self.targets), rows(self.targets)

    def outcome(self, literal_encoder, literal_decoder):
        """Logits of real positions (N, V), attention, and gradients by name."""
        self.modules.zero_grad()
        encoded = [self.encoder.encode(self.source, literal=literal_encoder)]
        readout, [weights] = decode(
            self.decoder, self.shared, encoded, self.prev, literal=literal_decoder
        )
        real = self.target.ne(PAD)
        logits = self.decoder.logits(readout)[real]  # (N, V)
        loss = torch.nn.functional.cross_entropy(logits, self.target[real], reduction="sum")
        loss.backward()
        named = self.modules.named_parameters()
        grads = {name: p.grad.clone() for name, p in named if p.requires_grad}
        return {"loss": loss, "logits": logits, "weights": weights[real], **grads}


@pytest.mark.parametrize("literal_encoder", [False, True], ids=["torch-encoder", "literal-encoder"])
@pytest.mark.parametrize("literal_decoder", [False, True], ids=["fused", "literal-decoder"])
def test_paths_agree(lengths, precision, left, literal_encoder, literal_decoder):
    dtype, tolerance = precision
    batch = Batch(lengths, dtype, left)
    expected = batch.outcome(True, True)
    check_same_numbers(batch.outcome(literal_encoder, literal_decoder), expected, tolerance)


def test_every_trained_parameter_has_a_gradient(left):
    batch = Batch(([5, 3], [4, 2]), torch.float64, left)
    for name, grad in batch.outcome(False, False).items():
        assert grad.abs().max() > 1e-9, name


def test_no_gradient_reaches_padding(left):
    """Neither the padding symbol's embeddings nor the annotations at padded positions."""
    batch = Batch(([5, 2, 1], [2, 4, 3]), torch.float64, left)
    annotations, padding = batch.encoder.encode(batch.source)
    annotations.retain_grad()
    readout, _ = decode(batch.decoder, batch.shared, [(annotations, padding)], batch.prev)
    batch.decoder.logits(readout)[batch.target.ne(PAD)].pow(2).sum().backward()
    assert not annotations.grad[padding].any()
    assert (annotations.grad[~padding].abs().amax(dim=-1) > 1e-9).all()
    for module in (batch.encoder, batch.decoder):
        assert not module.embedding.weight.grad[PAD].any()
        assert module.embedding.weight.grad.any()


def test_padding_may_hold_anything(left):
    """The embeddings of the padding symbol, zero or not, reach no real position."""
    batch = Batch(([5, 2, 1], [2, 4, 3]), torch.float64, left)
    before = batch.outcome(False, False)
    with torch.no_grad():
        batch.encoder.embedding.weight[PAD] = 1e3
        batch.decoder.embedding.weight[PAD] = 1e3
    check_same_numbers(batch.outcome(False, False), before, 1e-12)


def test_frozen_parts_get_no_gradient_and_do_not_stop_the_others():
    """What --train-only leaves out: no gradient there, the same elsewhere."""
    batch = Batch(([5, 2], [4, 3]), torch.float64)
    whole = batch.outcome(False, False)
    frozen = [batch.encoder, batch.decoder.query_state, batch.decoder.gates_state]
    for module in frozen:
        module.requires_grad_(False)
    part = batch.outcome(False, False)
    for name, parameter in batch.modules.named_parameters():
        assert (name in part) == parameter.requires_grad
    assert 10 < len(part) < len(whole)
    check_same_numbers(part, {name: whole[name] for name in part}, 1e-12)


def test_forward_alone_needs_no_gradient():
    batch = Batch(([5, 2], [4, 3]), torch.float32)
    with torch.no_grad():
        encoded = [batch.encoder.encode(batch.source)]
        readout, _ = decode(batch.decoder, batch.shared, encoded, batch.prev)
    assert not readout.requires_grad


def test_half_precision_by_autocast():
    """What --amp does: bfloat16 products around the loop change the loss by a few per cent."""
    batch = Batch(([8, 3, 1, 8], [5, 9, 2, 1]), torch.float32)
    expected = batch.outcome(False, False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = batch.outcome(False, False)
    assert found["loss"].item() == pytest.approx(expected["loss"].item(), rel=0.03)
    for name, grad in found.items():
        assert grad.isfinite().all(), name
    largest = max(grad.abs().max() for grad in expected.values())
    for name, grad in expected.items():
        assert (found[name] - grad).abs().max() < 0.1 * largest, name
