"""``twin_lstm`` and ``twin_lstm_lm``: fairseq's ``lstm`` and ``lstm_lm`` with a twin.

Options, parameters and function are the stock models'; the decoder's states are new. A decoder
that reads nothing but words runs in torch's fused kernel; one with a source, on CPUs, in a loop
that keeps what does not depend on its states outside.

Dimensions: B sentences, S source positions, T target positions, E embedding, H units, O output,
V vocabulary; time comes first where a suffix says so.
"""

from argparse import Namespace
from typing import Any, Dict, List, Optional, Tuple

import torch
from fairseq.models import register_model, register_model_architecture
from fairseq.models.lstm import (
    LSTMDecoder,
    LSTMModel,
    base_architecture,
    lstm_luong_wmt_en_de,
    lstm_wiseman_iwslt_de_en,
)
from fairseq.models.lstm_lm import LSTMLanguageModel
from fairseq.models.lstm_lm import base_architecture as language_model_architecture
from fairseq.tasks import FairseqTask
from torch import Tensor
from torch.nn import functional as F

from ...common.architectures import architecture
from ...common.autocast import lstm_precision
from ...common.padding_sides import check_right_padding
from ..contract import BackwardDecoder, TwinCall, decode
from .steps import linear_steps, lstm_cell_step, position_steps

# of the stock encoder, time first: states (S, B, C), h and m of each layer, padding (S, B) or None
EncoderOut = Tuple[Tensor, Tensor, Tensor, Optional[Tensor]]
# h (T, B, H), the input of the output layer (T, B, H), attention (B, T, S) or None
Decoded = Tuple[Tensor, Tensor, Optional[Tensor]]


def unroll(
    decoder: LSTMDecoder, tokens: Tensor, encoder_out: Optional[EncoderOut]
) -> Tuple[Tuple[Tensor, Optional[Tensor]], Tensor]:
    """Return what a stock decoder gives, teacher-forced, with the top layer's h.

    tokens: (B, T). encoder_out: of the stock encoder, None for a language model.

    Returns:
        (logits (B, T, V), attention (B, T, S) or None), h (B, T, H).
    """
    vectors = decoder.dropout_in_module(decoder.embed_tokens(tokens)).transpose(0, 1)  # (T, B, E)
    if encoder_out is None:
        # no source, no input feeding: layers run one after the other, each over the whole sequence
        states, attention = _fused(decoder, vectors), None
        features = decoder.dropout_out_module(states)
    else:
        fed = _fed if vectors.device.type == "cpu" else _literal
        states, features, attention = fed(decoder, vectors, encoder_out)
    features = features.transpose(0, 1)  # (B, T, H)
    # stock leaves it out where the adaptive softmax reads the states
    if hasattr(decoder, "additional_fc") and decoder.adaptive_softmax is None:
        features = decoder.dropout_out_module(decoder.additional_fc(features))  # (B, T, O)
    if decoder.training or not decoder.need_attn:
        # as stock does: attention is for alignments, in evaluation
        attention = None
    return (decoder.output_layer(features), attention), states.transpose(0, 1)


def _fused(decoder: LSTMDecoder, vectors: Tensor) -> Tensor:
    """Return h of the top layer (T, B, H) of a decoder without a source."""
    # (1, B, H): stock's language model begins with zeros
    zeros = vectors.new_zeros(1, vectors.size(1), decoder.hidden_size)
    inputs = vectors
    for cell in decoder.layers:
        # stock has a cell for each layer: here their matrices run in the kernel of whole sequences
        weights = [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
        with lstm_precision(cell.weight_ih) as converted:
            start = converted(zeros), converted(zeros)
            states, *_ = torch.lstm(
                converted(inputs), start, weights, True, 1, 0.0, decoder.training, False, False
            )
        inputs = decoder.dropout_out_module(states)
        if decoder.residuals:  # stock adds the layer's state of the step before
            inputs = inputs + torch.cat([zeros, states[:-1]])
    return states


def _initial(
    decoder: LSTMDecoder, encoder_out: EncoderOut
) -> Tuple[List[Tensor], List[Tensor], Tensor]:
    """Return h and m (B, H) of each layer and the output before the first step."""
    # the encoder's last states, one of each layer
    hidden, cell = list(encoder_out[1]), list(encoder_out[2])
    if decoder.encoder_hidden_proj is not None:
        hidden = [decoder.encoder_hidden_proj(state) for state in hidden]
        cell = [decoder.encoder_cell_proj(memory) for memory in cell]
    # nothing has been fed back before the first step: zeros
    return hidden, cell, hidden[0].new_zeros(hidden[0].size(0), decoder.hidden_size)


def _literal(decoder: LSTMDecoder, vectors: Tensor, encoder_out: EncoderOut) -> Decoded:
    """Return what the stock cells give, step by step.

    Every step reads the output of the step before (input feeding), so that the layers cannot run
    over the whole sequence one after the other.
    """
    source, padding = encoder_out[0], encoder_out[3]
    hidden, cell, feed = _initial(decoder, encoder_out)
    states: List[Tensor] = []
    outputs: List[Tensor] = []
    weights: List[Tensor] = []
    for vector in vectors:
        # [E y_{t-1} ; output of the step before] (B, E + H)
        inputs = torch.cat([vector, feed], dim=1)
        for number, layer in enumerate(decoder.layers):
            hidden[number], cell[number] = layer(inputs, (hidden[number], cell[number]))
            inputs = decoder.dropout_out_module(hidden[number])
        # without attention the state itself is the output
        feed = hidden[-1]
        if decoder.attention is not None:
            feed, attention = decoder.attention(feed, source, padding)
            weights.append(attention)  # (S, B)
        feed = decoder.dropout_out_module(feed)
        states.append(hidden[-1])
        outputs.append(feed)
    over_steps = torch.stack(weights).permute(2, 0, 1) if weights else None  # (B, T, S)
    return torch.stack(states), torch.stack(outputs), over_steps


def _fed(decoder: LSTMDecoder, vectors: Tensor, encoder_out: EncoderOut) -> Decoded:
    """Return the same as ``_literal``, with little inside of the loop, gradients included.

    The stock attention's query is a product of h and of a matrix, and so is its output of the
    context: both matrices go into the source, once for each of its positions.
    """
    dtype = decoder.layers[0].weight_hh.dtype  # --amp: the loop in the precision of the weights
    with torch.autocast(vectors.device.type, enabled=False):
        return _fed_steps(decoder, vectors.to(dtype), _in(dtype, encoder_out))


def _in(dtype: torch.dtype, encoder_out: EncoderOut) -> EncoderOut:
    """Return the encoder's output in another precision."""
    source, hidden, cell, padding = encoder_out
    return source.to(dtype), hidden.to(dtype), cell.to(dtype), padding


def _fed_steps(decoder: LSTMDecoder, vectors: Tensor, encoder_out: EncoderOut) -> Decoded:
    """Return what ``_fed`` does, all in one precision."""
    hidden, cell, feed = _initial(decoder, encoder_out)
    width, rows = vectors.size(2), vectors.size(1)
    first, *uppers = decoder.layers
    # of the first layer the words' part is outside of the loop; what is fed is inside
    gates = F.linear(vectors, first.weight_ih[:, :width], first.bias_ih + first.bias_hh)
    # [W_feed ; U], since feed and state stand side by side in the loop
    layers = [(linear_steps(torch.cat([first.weight_ih[:, width:], first.weight_hh], 1), rows), 0)]
    for upper in uppers:
        weight = torch.cat([upper.weight_ih, upper.weight_hh], dim=1)
        layers.append((linear_steps(weight, rows), upper.bias_ih + upper.bias_hh))
    attend = None if decoder.attention is None else _StockAttention(decoder.attention, encoder_out)
    states: List[Tensor] = []
    outputs: List[Tensor] = []
    weights: List[Tensor] = []
    for word_gates in gates:
        inputs = feed
        for number, (layer, bias) in enumerate(layers):
            # the bias of the first layer is in ``word_gates``
            sums = layer(torch.cat([inputs, hidden[number]], dim=1)) + (
                bias if number else word_gates
            )
            hidden[number], cell[number] = lstm_cell_step(sums, cell[number])
            inputs = decoder.dropout_out_module(hidden[number])
        feed = hidden[-1]
        if attend is not None:
            feed, attention = attend(feed)
            weights.append(attention)  # (B, S)
        feed = decoder.dropout_out_module(feed)
        states.append(hidden[-1])
        outputs.append(feed)
    over_steps = torch.stack(weights, dim=1) if weights else None  # (B, T, S)
    return torch.stack(states), torch.stack(outputs), over_steps


class _StockAttention:
    """The stock layer, which has no biases, for the steps of a loop."""

    def __init__(self, layer: Any, encoder_out: EncoderOut):
        source, self.padding = encoder_out[0].transpose(0, 1), encoder_out[3]  # (B, S, C)
        units = layer.input_proj.in_features
        # stock multiplies [context ; h] with one matrix; here each part has its own
        context, state = layer.output_proj.weight.split([source.size(2), units], dim=1)
        # s . (W h) = (s W) . h: the matrix goes into the source
        keys = source @ layer.input_proj.weight  # (B, S, H)
        self.compare, _ = position_steps(keys)
        _, self.mix = position_steps(F.linear(source, context))
        self.of_state = linear_steps(state, source.size(0))

    def __call__(self, state: Tensor) -> Tuple[Tensor, Tensor]:
        """Return output (B, H), attention (B, S) of h (B, H)."""
        scores = self.compare(state)
        if self.padding is not None:
            scores = scores.masked_fill(self.padding.t(), float("-inf"))
        weights = scores.softmax(dim=1)
        # tanh(W [context ; h]), the context's part already multiplied
        return torch.tanh(self.mix(weights) + self.of_state(state)), weights


@register_model("twin_lstm")
class TwinLSTMModel(LSTMModel):
    """``lstm`` for the criterion ``twin``."""

    @classmethod
    def build_model(cls, args: Namespace, task: FairseqTask) -> "TwinLSTMModel":
        """Return the stock model; ValueError for targets padded on the left."""
        check_right_padding(task)
        return super().build_model(args, task)

    @classmethod
    def build_backward(cls, args: Namespace, task: FairseqTask) -> BackwardDecoder:
        """Return a second decoder."""
        decoder = cls.build_model(args, task).decoder
        return BackwardDecoder(decoder, decoder.hidden_size, unroll)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        twin: Optional[TwinCall] = None,
    ) -> Any:
        """Return teacher-forced logits; see contract.py for ``twin``."""
        encoder_out = self.encoder(src_tokens, src_lengths=src_lengths)
        return decode(unroll, self.decoder, prev_output_tokens, encoder_out, twin)


@register_model("twin_lstm_lm")
class TwinLSTMLanguageModel(LSTMLanguageModel):
    """``lstm_lm`` for the criterion ``twin``."""

    @classmethod
    def build_backward(cls, args: Namespace, task: FairseqTask) -> BackwardDecoder:
        """Return a second decoder."""
        decoder = cls.build_model(args, task).decoder
        return BackwardDecoder(decoder, decoder.hidden_size, unroll)

    def forward(
        self,
        src_tokens: Tensor,
        twin: Optional[TwinCall] = None,
        incremental_state: Optional[Dict[str, Any]] = None,
        **more: Any,
    ) -> Any:
        """Return logits, teacher-forced or stepwise with an ``incremental_state``.

        twin: see contract.py.
        """
        if incremental_state is not None:
            # a search goes on in the stock way, which keeps the state of each step
            return super().forward(src_tokens, incremental_state=incremental_state, **more)
        return decode(unroll, self.decoder, src_tokens, None, twin)


for _model, _name, _defaults in (
    ("twin_lstm", "twin_lstm", base_architecture),
    ("twin_lstm", "twin_lstm_wiseman_iwslt_de_en", lstm_wiseman_iwslt_de_en),
    ("twin_lstm", "twin_lstm_luong_wmt_en_de", lstm_luong_wmt_en_de),
    ("twin_lstm_lm", "twin_lstm_lm", language_model_architecture),
):
    register_model_architecture(_model, _name)(_defaults)


def _sizes(side: str, embed_dim: int, hidden_size: int, layers: int = 1) -> Dict[str, Any]:
    """Return the options of the sizes of one side."""
    return {
        f"{side}_embed_dim": embed_dim,
        f"{side}_hidden_size": hidden_size,
        f"{side}_layers": layers,
    }


_TINY = {**_sizes("decoder", 64, 96), "decoder_out_embed_dim": 64}
architecture("twin_lstm", "twin_lstm_tiny", **_sizes("encoder", 64, 96), **_TINY)
architecture("twin_lstm_lm", "twin_lstm_lm_tiny", **_TINY)
# the paper's sequential MNIST; its words are two, so that a narrow embedding will do
architecture(
    "twin_lstm_lm",
    "twin_lstm_lm_mnist",
    **_sizes("decoder", 64, 512, 3),
    decoder_out_embed_dim=512,
    dropout=0.0,
)
# Zaremba et al. (2014), medium; the paper's AWD-LSTM needs what fairseq does not have
architecture(
    "twin_lstm_lm",
    "twin_lstm_lm_ptb",
    **_sizes("decoder", 650, 650, 2),
    decoder_out_embed_dim=650,
    dropout=0.5,
)
