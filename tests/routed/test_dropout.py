"""Every place of dropout in the routed model and its baselines, by shape and rate.

Legend: B sentences, S source positions, T target positions, D embedding, C annotation, O_l layers.
"""

import pytest
import torch
from common.dropouts import record
from routed.support import KINDS, Case

from fairseq_ext.common import dropout

RATE = 0.25


@pytest.mark.parametrize("kind", KINDS)
def test_every_place(kind, monkeypatch):
    """Source embeddings, encoder layers but the first, target embeddings, decoder layers but the
    first, readout: in this order."""
    case = Case(kind, 3, [4, 2, 5], [3, 6, 2])
    for module in (case.encoder, case.encoder.units, case.decoder):
        module.dropout = RATE
    case.modules.train()
    calls = record(monkeypatch)
    case.outcome()
    rows, source, target = 3, 5, 6
    width = case.table.embedding_dim
    layers = [unit.output_size for unit in case.encoder.units.units]
    above = [unit.output_size for unit in case.decoder.units]
    expected = [
        (rows, source, width),
        *((rows, source, size) for size in layers[:-1]),
        (rows, target, width),
        *((target, rows, size) for size in above[:-1]),
        (rows, target, above[-1]),
    ]
    assert sorted(calls) == sorted((shape, RATE, True) for shape in expected)
    calls.clear()
    case.modules.eval()
    case.outcome()
    assert all(not training for *_, training in calls)


@pytest.mark.parametrize("place", range(3))
def test_what_is_dropped_is_what_goes_on(place, monkeypatch):
    """One place at a time drops everything: the logits are not those without dropout."""
    case = Case("routed", 5, [4, 2], [3, 3])
    case.modules.train()
    before = case.outcome()[0]
    numbers = iter(range(3))

    def drop_only(values, *_rest):
        return torch.zeros_like(values) if next(numbers) == place else values

    monkeypatch.setattr(dropout, "dropout", drop_only)
    assert (case.outcome()[0] - before).abs().max() > 1e-6
    assert not list(numbers)
