"""The state of incremental decoding: keys and values that grow while rows change their places."""

import pytest
import torch
from torch.nn import functional as F

from fairseq_ext.common import transformer
from fairseq_ext.common.decoding import ROOM, append_to_cache, per_row, reorder_cache
from fairseq_ext.common.transformer import attend

BEAM, WIDTH = 3, 4


def test_what_is_remembered_follows_its_rows():
    """Against torch.cat and index_select; sentences leave at some steps."""
    torch.manual_seed(0)
    sentences, cache = 5, {"context_visible": torch.arange(5)}
    whole = [torch.zeros(5 * BEAM, 2, 0, WIDTH)] * 2
    for step in range(2 * ROOM + 3):
        newest = [torch.randn(sentences * BEAM, 2, 1, WIDTH) for _ in whole]
        whole = [torch.cat([before, tensor], dim=2) for before, tensor in zip(whole, newest)]
        cached, visible = append_to_cache(cache, "layer", newest)
        for tensor, expected in zip(cached, whole):
            assert tensor.size(2) % ROOM == 0
            assert visible.shape == (1, 1, 1, tensor.size(2))
            assert torch.equal(tensor[:, :, visible.flatten()], expected)
            assert not tensor[:, :, ~visible.flatten()].any()
        staying = torch.arange(sentences)
        if step in (4, 5, ROOM):
            staying = staying[staying != step % sentences]
        elif step == 7:  # rows may also become more
            staying = torch.cat([staying, staying[:1]])
        order = staying.unsqueeze(1) * BEAM + torch.randint(0, BEAM, (len(staying), BEAM))
        order, sentences = order.flatten(), len(staying)
        reorder_cache(cache, order)
        whole = [tensor.index_select(0, order) for tensor in whole]
        assert len(cache["context_visible"]) == sentences


@pytest.mark.parametrize("beam", [1, BEAM])
def test_sentences_stay_with_their_rows(beam):
    """Sentences may leave; with one hypothesis each they may also change places."""
    rows = torch.arange(4 * beam)
    cache = {"state": rows.clone(), "context_keys": torch.arange(4), "context_padding": -rows[:4]}
    staying = torch.tensor([3, 0, 2] if beam > 1 else [3, 0, 2, 1])
    order = (staying.unsqueeze(1) * beam + torch.arange(beam).flip(0)).flatten()
    reorder_cache(cache, order)
    assert torch.equal(cache["state"], order)
    assert torch.equal(cache["context_keys"], staying)
    assert torch.equal(cache["context_padding"], -staying)


@pytest.mark.parametrize("beam", [1, BEAM])
def test_every_row_has_the_values_of_its_sentence(beam):
    values = torch.arange(8.0).view(4, 2)
    rows = per_row(values, 4 * beam)
    assert rows.tolist() == [values[row // beam].tolist() for row in range(4 * beam)]


def test_what_is_visible_may_be_used_with_gradients_later():
    cache, newest = {}, [torch.ones(1, 1, 1, WIDTH)]
    with torch.inference_mode():
        append_to_cache({}, "layer", newest)
    _, visible = append_to_cache(cache, "layer", newest)
    scores = torch.zeros(visible.shape, requires_grad=True)
    scores.masked_fill(~visible, 1.0).sum().backward()
    assert scores.grad.sum() == 1


@pytest.mark.parametrize("queries", [1, 5])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("small", [0, transformer.MANY_NUMBERS])
def test_few_queries_attend_like_many(monkeypatch, queries, masked, small):
    if not hasattr(F, "scaled_dot_product_attention"):
        pytest.skip("torch before 2.0 has one way only")
    torch.manual_seed(0)
    query, key, value = torch.randn(6, 2, queries, 8), *torch.randn(2, 6, 2, 16, 8)
    visible = torch.rand(6, 1, 1, 16) > 0.3 if masked else None
    monkeypatch.setattr(transformer, "MANY_NUMBERS", small)
    with torch.no_grad():
        by_torch, _ = attend(query, key, value, visible, 0.0)
        monkeypatch.setattr(transformer, "FEW_QUERIES", 0)
        torch.testing.assert_close(by_torch, attend(query, key, value, visible, 0.0)[0])
