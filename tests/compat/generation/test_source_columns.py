"""fairseq's LSTM: the states of the encoder stand where the words of the source stand."""

import argparse
from types import SimpleNamespace

import pytest
import torch
from common.words import dictionary_with
from fairseq.models.lstm import LSTMModel, base_architecture

SENTENCES = [[5, 6, 7, 8, 2], [9, 4, 2], [2]]
LENGTHS = torch.tensor([len(sentence) for sentence in SENTENCES])
PREVIOUS = torch.tensor([[2, 5, 6]] * len(SENTENCES))


def source(left, width=5):
    """Rows of ``SENTENCES``, padded on one side."""
    rows = []
    for words in SENTENCES:
        padding = [1] * (width - len(words))
        rows.append(padding + words if left else words + padding)
    return torch.tensor(rows)


@pytest.fixture(scope="module")
def model():
    words = dictionary_with(*(f"word{number}" for number in range(12)))
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    args = argparse.Namespace(encoder_layers=2, decoder_layers=2, criterion="none")
    args.encoder_bidirectional = True
    args.encoder_embed_dim = args.encoder_hidden_size = args.decoder_embed_dim = 6
    args.decoder_hidden_size = args.decoder_out_embed_dim = 8
    base_architecture(args)
    return LSTMModel.build_model(args, task).eval()


@pytest.mark.parametrize("scripted", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("width", [5, 8])  # 8: --required-seq-len-multiple 8
def test_weights_stand_at_words(model, left, width, scripted):
    called = torch.jit.script(model) if scripted else model
    tokens = source(left, width)
    logits, weights = called(tokens, LENGTHS, PREVIOUS)
    assert torch.equal(weights.ne(0), tokens.ne(1).unsqueeze(1).expand_as(weights))
    for row, words in enumerate(SENTENCES):
        alone = model(torch.tensor([words]), LENGTHS[row : row + 1], PREVIOUS[:1])
        assert torch.allclose(alone[0][0], logits[row], atol=1e-5)
        assert torch.allclose(alone[1][0], weights[row][:, tokens[row].ne(1)], atol=1e-5)


def test_training_computes_as_before(model):
    """There nobody reads the columns, and sums keep their order."""
    model.train()
    try:
        torch.manual_seed(1)
        left = model.encoder(source(True), LENGTHS)
        torch.manual_seed(1)
        right = model.encoder(source(False), LENGTHS)
    finally:
        model.eval()
    assert all(torch.equal(first, second) for first, second in zip(left, right))
