"""Parts of a decoder's step for the hypotheses of one sentence, with few operations.

For so few rows, most of a step's time passes between its products. Here a step does without
modules, and without moving what it has computed::

    q_h . k_hs = (k_hs W_qh) . x + k_hs . b_qh                   keys of the source read x itself
    W_o [sum_s a_1s v_1s ; ..] = sum_h sum_s a_hs (W_oh v_hs)    its values are what is written

with x the state of a row, h a head and s a position of the source. What stands in brackets is
computed once for a sentence. The keys and values of all hypotheses stand side by side: a row sees
those of its own past through a mask, and when hypotheses change places, only the mask does. The
sums are those of the layers, added up in another order.

Dimensions: R rows, one for each hypothesis of the sentence, D model, H heads, d = D / H,
S source positions, T steps, N = R * (positions written so far), V vocabulary.
"""

import abc
import math
from functools import partial
from typing import Any, Callable, Collection, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .products import FEW_ROWS, compute_once, repeated_linear

Norm = Callable[[Tensor], Tensor]
# packages whose functions the steps here stand for
PACKAGES = ("torch", "fairseq", __name__.partition(".")[0])


class Affine(NamedTuple):
    """The map x -> weight x + bias.

    weight: (O, I). bias: (O,), or None for zeros.
    """

    weight: Tensor
    bias: Optional[Tensor]

    @classmethod
    def of(cls, *layers: nn.Linear) -> "Affine":
        """Return the map of layers that read the same input, their outputs side by side.

        Either all of them have a bias, or none.
        """
        if len(layers) == 1:
            return cls(layers[0].weight, layers[0].bias)
        return compute_once(lambda: cls._beside(layers), *layers)

    @classmethod
    def _beside(cls, layers: Sequence[nn.Linear]) -> "Affine":
        weights: List[Tensor] = []
        biases: List[Tensor] = []
        for layer in layers:
            weights.append(layer.weight)
            if layer.bias is not None:
                biases.append(layer.bias)
        return cls(torch.cat(weights), torch.cat(biases) if biases else None)

    def repeated(self, rows: int) -> Callable[[Tensor], Tensor]:
        """Return the map for many calls with so many rows."""
        if rows < FEW_ROWS:
            return lambda x: F.linear(x, self.weight, self.bias)
        return repeated_linear(self.weight, rows, self.bias)


def repeated_norm(norm: nn.LayerNorm) -> Norm:
    """Return the norm without what calling a module takes."""
    return partial(
        torch.layer_norm,
        normalized_shape=norm.normalized_shape,
        weight=norm.weight,
        bias=norm.bias,
        eps=norm.eps,
    )


def first_positions(
    positions: Callable[[Tensor], Tensor], padding_index: int, steps: int, like: Tensor
) -> Tensor:
    """Return the vectors of the first T positions (T, D), on the device of ``like``.

    positions: the layer, words (1, T) -> (1, T, D), to which all words but padding are alike.
    """
    words = torch.full((1, steps), padding_index + 1, device=like.device)
    return positions(words)[0]


def is_from_elsewhere(function: Callable[..., Any]) -> bool:
    """True if a program has put a function in the place of one of torch, fairseq or this package.

    A wrapper that takes its name is one as well.
    """
    module = getattr(function, "__globals__", {}).get("__name__", "")
    return module.partition(".")[0] not in PACKAGES


def is_plain(decoder: nn.Module, types: Collection[type]) -> bool:
    """True if the parts of a decoder are all of these types, and nothing changes what they do."""
    return not decoder.training and all(
        type(module) in types
        # --retain-dropout
        and not getattr(module, "apply_during_inference", False)
        and not (module._forward_hooks or module._forward_pre_hooks)
        and not is_from_elsewhere(module.forward)
        for module in decoder.modules()
    )


class SentenceSteps(abc.ABC):
    """The steps of a search for one sentence, and the state of its rows."""

    @abc.abstractmethod
    def __call__(self, words: Tensor) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the logits (R, V) behind each row's newest word (R,), and the attention (R, S)."""

    @abc.abstractmethod
    def reorder(self, order: Tensor) -> None:
        """Make row r what row ``order[r]`` was; (R,)."""


class AttentiveSteps(SentenceSteps):
    """The steps of a decoder that attends to its own past.

    Args:
        rows: R.
        steps: T.
        like: a tensor of the decoder's states.
    """

    def __init__(self, rows: int, steps: int, like: Tensor):
        self.rows, self.step = rows, 0
        # (R, R T): 0 where a row looks, -inf where it does not; at first each sees itself alone
        itself = like.new_full((rows, rows), -math.inf).fill_diagonal_(0)
        self.mask = itself.repeat(1, steps)

    def __call__(self, words: Tensor) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the logits (R, V) behind each row's newest word (R,), and the attention (R, S)."""
        self.step += 1
        return self.decode(words, self.mask.narrow(1, 0, self.step * self.rows))

    @abc.abstractmethod
    def decode(self, words: Tensor, visible: Tensor) -> Tuple[Tensor, Optional[Tensor]]:
        """Return logits and attention of step number ``self.step``, counted from 1.

        visible: (R, N), added to the scores of what has been written.
        """

    def reorder(self, order: Tensor) -> None:
        """Make row r what row ``order[r]`` was; (R,)."""
        past = self.mask.narrow(1, 0, self.step * self.rows)
        past.copy_(past.index_select(0, order))


class Past:
    """Keys and values of all rows and all steps.

    Args:
        rows, steps, heads: R, T, H.
        like: (.., D).
        shared: the keys are the values.
    """

    def __init__(self, rows: int, steps: int, heads: int, like: Tensor, shared: bool = False):
        parts = 1 if shared else 2
        # memory that is not written to yet costs nothing
        self.written = like.new_empty(rows * steps, parts * like.size(-1))
        by_part = self.written.view(rows * steps, parts, heads, -1)
        self.keys = by_part[:, 0].permute(1, 2, 0)  # (H, d, R T)
        self.values = by_part[:, -1].transpose(0, 1)  # (H, R T, d)

    def write(self, newest: Tensor, count: int) -> None:
        """Add a position; [key ; value] (R, 2D), or both in one (R, D); N with them."""
        self.written.narrow(0, count - len(newest), len(newest)).copy_(newest)


def attend_past(query: Tensor, keys: Tensor, values: Tensor, visible: Tensor) -> Tensor:
    """Return what the rows read of their own past (R, D).

    query: (R, D). keys, values: those of a ``Past``. visible: (R, N).
    """
    (rows, width), (heads, size, _), count = query.shape, keys.shape, visible.size(1)
    query = query.view(rows, heads, size).transpose(0, 1)  # (H, R, d)
    scores = torch.baddbmm(visible, query, keys.narrow(2, 0, count), alpha=size**-0.5)  # (H, R, N)
    mixed = torch.bmm(scores.softmax(dim=2), values.narrow(1, 0, count))  # (H, R, d)
    return mixed.transpose(0, 1).reshape(rows, width)


class SourceAttention:
    """Attention over the source, with the maps of its queries and of its output in the source.

    Args:
        query: (D, D).
        keys, values: (S, D), before they are split into heads.
        output: (D, D).
        heads: H.
    """

    def __init__(self, query: Affine, keys: Tensor, values: Tensor, output: Affine, heads: int):
        self.heads, width = heads, keys.size(1)
        keys, values = (
            part.reshape(len(part), heads, -1).transpose(0, 1) for part in (keys, values)
        )  # (H, S, d)
        keys = keys * (width // heads) ** -0.5
        query_weight = query.weight.reshape(heads, -1, width)  # (H, d, D)
        self.keys = (keys @ query_weight).view(-1, width).t()  # k_hs W_qh: (D, H S)
        bias = keys.new_zeros(width) if query.bias is None else query.bias
        self.constants = (keys @ bias.view(heads, -1, 1)).flatten()  # k_hs . b_qh: (H S,)
        output_weight = output.weight.t().reshape(heads, -1, width)  # (H, d, D)
        self.values = (values @ output_weight).view(-1, width)  # W_oh v_hs: (H S, D)
        self.bias = keys.new_zeros(width) if output.bias is None else output.bias

    def __call__(self, states: Tensor) -> Tuple[Tensor, Tensor]:
        """Return what the states (R, D) read (R, D), and their attention (R, H, S)."""
        scores = torch.addmm(self.constants, states, self.keys)  # (R, H S)
        weights = scores.view(len(states), self.heads, -1).softmax(dim=2)  # (R, H, S)
        return torch.addmm(self.bias, weights.flatten(1), self.values), weights
