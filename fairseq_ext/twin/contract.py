"""What a model must offer to be trained with the criterion ``twin``, and what helps it do so.

The criterion owns the backward network and the map g: fairseq optimises and stores a criterion's
parameters apart from the model's, and commands that evaluate never load them. A model class offers

``build_backward(cls, cfg, task)`` (class method)
    A new backward network, an ``nn.Module`` with parameters of its own: its own embedding,
    recurrence or layers, attention and output layer; of the same sizes as the forward decoder.
    ``cfg`` is the model's configuration, as in ``build_model``, which it may call to keep the
    second decoder alone. It is called while fairseq-train builds its criterion, in no other
    command. The network has
        ``state_size``   D, an int: the width of its states and of the forward ones;
        ``forward(tokens (B, T), condition)`` -> logits (B, T, V), states (B, T, D).
    It is an ordinary left-to-right decoder; that its sequences are reversed is the criterion's
    affair. ``BackwardDecoder`` makes one of a decoder.
``forward(..., twin=None)``
    With ``twin=None`` what fairseq expects, ``(logits, extra)``. With a ``TwinCall`` the couple
    ``((logits, extra), twin(states, condition))``, where ``states`` (B, T, D) are the forward
    decoder's, position t being the state that predicts ``sample["target"][:, t]``, and
    ``condition`` is what both decoders see of the source, of any type (None for a language model).
    The encoder runs once for both. ``decode`` does all this for an encoder-decoder model.

States are those of the top layer: of a recurrent decoder h (not the cell, before dropout and
attention), of a Transformer what the output layer reads.

Token rows are padded on the right. In the batch the decoder's inputs stand in
``net_input["prev_output_tokens"]`` or, for the task ``language_modeling``, ``["src_tokens"]``.

Dimensions: B sentences, T target positions, n real ones in a row, V vocabulary, D state. Masks are
bool, True = padding. Positions count from 0.
"""

from typing import Any, Callable, NamedTuple, Optional, Protocol, Tuple, runtime_checkable

import torch
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..common.padding import reorder, reversal

# (decoder, tokens (B, T), condition) -> (logits, anything), states
Unroll = Callable[[Any, Tensor, Any], Tuple[Tuple[Tensor, Any], Tensor]]


class TwinOutput(NamedTuple):
    """What one pass through both networks gives.

    states: of the forward network (B, T, D). backward_states: (B, T, D), in the backward network's
    own order, see ``align``; None without a backward network. backward_logits: (B, T, V) or None,
    in the same order.
    """

    states: Tensor
    backward_states: Optional[Tensor] = None
    backward_logits: Optional[Tensor] = None


class TwinCall(NamedTuple):
    """What the criterion hands to ``forward(..., twin=...)``; the model calls it.

    network: the backward network, or None where the penalty needs none. tokens: its inputs (B, T),
    see ``backward_tokens``.
    """

    network: Optional[nn.Module] = None
    tokens: Optional[Tensor] = None

    def __call__(self, states: Tensor, condition: Any = None) -> TwinOutput:
        """Unroll the backward network and return all states; states: the forward ones (B, T, D)."""
        if self.network is None:
            return TwinOutput(states)
        logits, backward_states = self.network(self.tokens, condition)
        return TwinOutput(states, backward_states, logits)


class BackwardNetwork(Protocol):
    """What ``build_backward`` returns, an ``nn.Module``."""

    state_size: int

    def __call__(self, tokens: Tensor, condition: Any) -> Tuple[Tensor, Tensor]:
        """Return logits (B, T, V) and states (B, T, D) of tokens (B, T)."""


@runtime_checkable
class TwinModel(Protocol):
    """A model class that can be trained with the criterion ``twin``."""

    @classmethod
    def build_backward(cls, cfg: Any, task: FairseqTask) -> BackwardNetwork:
        """Return a new backward network."""


def backward_tokens(prev_tokens: Tensor, target: Tensor, padding: Tensor) -> Tuple[Tensor, Tensor]:
    """Return the inputs and targets (B, T) of the backward network.

    The forward network reads [eos, x_1 .. x_T] and predicts [x_1 .. x_T, eos]. Reversed within the
    true length, what it predicts is what the backward network reads, [eos, x_T .. x_1], and what it
    reads is what the backward network predicts, [x_T .. x_1, eos]. Padding stays at the end.

    Args:
        prev_tokens: the forward network's inputs (B, T).
        target: its targets (B, T).
        padding: of both (B, T), at the end of each row.
    """
    positions = reversal(padding)
    # inputs and targets change places, each reversed within its sentence
    return target.gather(1, positions), prev_tokens.gather(1, positions)


def matched(padding: Tensor) -> Tensor:
    """Return (B, T), True at the tokens that both networks predict: all but the last real one.

    The last token of a row is eos, which the backward network is given. (Of a text cut into blocks
    it is the block's last word, whose future is not in the batch.)
    """
    real = ~padding
    # real and followed by a real one: not the last of its row
    return torch.cat([real[:, 1:], torch.zeros_like(real[:, :1])], dim=1)


def align(backward_states: Tensor, padding: Tensor) -> Tensor:
    """Return the backward states in the order of the forward ones: (B, T, D) -> (B, T, D).

    In a row of n targets, forward position t and backward position n - 2 - t predict the same
    token, for t = 0 .. n - 2. Rows outside ``matched`` are to be ignored.
    """
    # n - 1 - t is where ``reversal`` puts t; the last real position wraps and is not matched
    positions = (reversal(padding) - 1) % padding.size(1)
    return reorder(backward_states, positions)


class BackwardDecoder(nn.Module):
    """A decoder as a backward network.

    Args:
        decoder: a second one, with parameters of its own.
        state_size: D.
        unroll: a function, ``unroll(decoder, tokens (B, T), condition)`` -> (logits (B, T, V),
            anything), states (B, T, D); the one that runs the forward decoder in ``decode``.
    """

    def __init__(self, decoder: nn.Module, state_size: int, unroll: Unroll):
        super().__init__()
        self.decoder, self.state_size, self.unroll = decoder, state_size, unroll

    def forward(self, tokens: Tensor, condition: Any) -> Tuple[Tensor, Tensor]:
        """Return logits (B, T, V) and states (B, T, D)."""
        (logits, _), states = self.unroll(self.decoder, tokens, condition)
        return logits, states


def decode(
    unroll: Unroll,
    decoder: nn.Module,
    prev_tokens: Tensor,
    condition: Any,
    twin: Optional[TwinCall] = None,
) -> Any:
    """Return what a model's ``forward`` returns, with or without ``twin``.

    unroll: see ``BackwardDecoder``. decoder: the forward one. prev_tokens: its inputs (B, T).
    """
    output, states = unroll(decoder, prev_tokens, condition)
    return output if twin is None else (output, twin(states, condition))
