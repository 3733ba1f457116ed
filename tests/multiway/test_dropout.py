"""Every place of dropout in the multi-way model and in the language model of deep fusion.

Legend: B sentences, S source positions, T target positions, D embedding, O readout, L language.
"""

import torch
from common.dropouts import record
from multiway.support import Case
from torch import nn
from toy_sentences import END, PAD

from fairseq_ext.multiway.deep_fusion.language_model import LanguageModelDecoder
from fairseq_ext.multiway.deep_fusion.modules import LanguageSize, LanguageState


def test_every_place(monkeypatch):
    """Source embeddings (B, S, D), target embeddings (B, T, D), readout (B, T, O)."""
    case = Case(3, [3, 5], [4, 2])
    parts = list(case.modules.values())
    for part in parts:
        part.dropout = 0.25
        part.train()
    calls = record(monkeypatch)
    case.logits()
    size = case.size
    shapes = [(2, 4, size.embed_dim), (2, 5, size.embed_dim), (2, 5, size.readout_size)]
    assert calls == [(shape, 0.25, True) for shape in shapes]
    calls.clear()
    for part in parts:
        part.eval()
    case.logits()
    assert [training for *_, training in calls] == [False] * 3


def test_language_model(monkeypatch):
    """On the embeddings (R, T, D) of the state, and before the softmax (R, T, L)."""
    state = LanguageState(LanguageSize(6, 5), 9, PAD, dropout=0.25)
    decoder = LanguageModelDecoder(state, nn.Linear(5, 9), None, 20, dropout=0.5).train()
    calls = record(monkeypatch)
    tokens = torch.tensor([[END, 4, 5], [END, 6, PAD]])
    decoder(tokens)
    assert calls == [((2, 3, 6), 0.25, True), ((2, 3, 5), 0.5, True)]
    calls.clear()
    decoder.eval()(tokens)
    assert [training for *_, training in calls] == [False, False]


def test_states_of_the_language_model_change():
    state = LanguageState(LanguageSize(6, 5), 9, PAD, dropout=0.5).train()
    tokens = torch.tensor([[END, 4, 5, 6, 7, 8]])
    assert not torch.equal(state(tokens), state(tokens))
    assert torch.equal(state.eval()(tokens), state(tokens))
