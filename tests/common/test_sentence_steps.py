"""Parts of the steps of a search for one sentence are the equations, one row and head at a time."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from fairseq_ext.common import decoder_steps
from fairseq_ext.common.products import WeightCache
from fairseq_ext.common.sentence_steps import (
    Affine,
    AttentiveSteps,
    Past,
    SourceAttention,
    attend_past,
    is_plain,
    repeated_norm,
)

ROWS, HEADS, SIZE, POSITIONS, STEPS = 3, 2, 4, 5, 6
WIDTH = HEADS * SIZE


@pytest.fixture(autouse=True)
def doubles():
    torch.manual_seed(5)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def attended(query, keys, values):
    """softmax(q . k / sqrt(d)) v of one row, head by head: (D,), and the weights (H, N)."""
    mixed, weights = [], []
    for head in range(HEADS):
        part = slice(head * SIZE, (head + 1) * SIZE)
        scores = torch.stack([query[part].dot(key[part]) for key in keys]) / math.sqrt(SIZE)
        weights.append(scores.softmax(dim=0))
        mixed.append(sum(w * value[part] for w, value in zip(weights[-1], values)))
    return torch.cat(mixed), torch.stack(weights)


@pytest.mark.parametrize("has_bias", [True, False])
def test_attention_over_the_source_is_that_of_the_layers(has_bias):
    query, output = (nn.Linear(WIDTH, WIDTH, bias=has_bias) for _ in range(2))
    states = torch.randn(ROWS, WIDTH)
    keys, values = torch.randn(2, POSITIONS, WIDTH)
    attention = SourceAttention(Affine.of(query), keys, values, Affine.of(output), HEADS)
    read, weights = attention(states)
    for row, state in enumerate(states):
        mixed, expected = attended(query(state), keys, values)
        torch.testing.assert_close(weights[row], expected)
        torch.testing.assert_close(read[row], output(mixed))


class Steps(AttentiveSteps):
    """Every word brings a query, a key and a value of its own."""

    def __init__(self, table, shared):
        super().__init__(ROWS, STEPS, table)
        self.table, self.shared = table, shared
        self.past = Past(ROWS, STEPS, HEADS, table[0, :WIDTH], shared)

    def decode(self, words, visible):
        query, key, value = self.table[words].chunk(3, dim=1)
        self.past.write(key if self.shared else torch.cat((key, value), 1), visible.size(1))
        return attend_past(query, self.past.keys, self.past.values, visible), None


@pytest.mark.parametrize("shared", [False, True])
def test_rows_read_their_own_past_wherever_they_move(shared):
    """Two rows go on from one, and one is given up; the last steps fill the memory."""
    table = torch.randn(10, 3 * WIDTH)
    steps, histories = Steps(table, shared), [[] for _ in range(ROWS)]
    orders = [[0, 0, 2], [2, 1, 0], [1, 1, 1], [0, 1, 2], [2, 0, 0], [0, 1, 2]]
    for number, order in enumerate(orders):
        words = [(3 * number + row) % 10 for row in range(ROWS)]
        read, _ = steps(torch.tensor(words))
        for row, word in enumerate(words):
            histories[row] = [*histories[row], word]
            _, keys, values = table[histories[row]].chunk(3, dim=1)
            expected, _ = attended(table[word, :WIDTH], keys, keys if shared else values)
            torch.testing.assert_close(read[row], expected)
        steps.reorder(torch.tensor(order))
        histories = [histories[row] for row in order]


def test_layers_stand_side_by_side_in_their_order():
    first, second = nn.Linear(4, 3), nn.Linear(4, 2)
    weight, bias = Affine.of(first, second)
    x = torch.randn(4)
    torch.testing.assert_close(weight @ x + bias, torch.cat((first(x), second(x))))
    bare = Affine.of(nn.Linear(4, 3, bias=False), nn.Linear(4, 2, bias=False))
    assert bare.bias is None and bare.weight.shape == (5, 4)


@pytest.mark.parametrize("rows", [1, 16])
def test_repeated_maps_and_norms_are_the_modules(rows):
    layer, norm = nn.Linear(4, 3), nn.LayerNorm(4, eps=0.1)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x = torch.randn(rows, 4)
    torch.testing.assert_close(Affine.of(layer).repeated(rows)(x), layer(x))
    torch.testing.assert_close(repeated_norm(norm)(x), norm(x))


def test_what_is_plain():
    types = (nn.Sequential, nn.Linear, nn.Dropout)

    def built():
        return nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)).eval()

    assert is_plain(built(), types) and not is_plain(built().train(), types)
    assert not is_plain(built(), types[:2])
    retained = built()
    retained[1].apply_during_inference = True
    assert not is_plain(retained, types)
    for register in ("register_forward_hook", "register_forward_pre_hook"):
        hooked = built()
        getattr(hooked[0], register)(lambda *_: None)
        assert not is_plain(hooked, types)


class Decoder(nn.Linear):
    """Its steps are (R, T)."""

    def sentence_steps(self, encoder_out, rows, steps):
        return rows, steps


@pytest.mark.parametrize(
    "rows, positions, dtype, is_taken",
    [
        (decoder_steps.MOST_ROWS, decoder_steps.LONGEST, torch.float32, True),
        (1, 1, torch.float64, True),
        (decoder_steps.MOST_ROWS + 1, 1, torch.float32, False),
        (1, decoder_steps.LONGEST + 1, torch.float32, False),
        (1, 1, torch.bfloat16, False),
    ],
)
@torch.no_grad()
def test_when_a_search_takes_them(rows, positions, dtype, is_taken):
    model = SimpleNamespace(decoder=Decoder(2, 2).to(dtype))

    def steps():
        return decoder_steps.decoder_steps(model, None, positions, rows, 7)

    assert steps() is None, "outside of a search parameters may change"
    with WeightCache().active():
        assert steps() == ((rows, 7) if is_taken else None)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert steps() is None
