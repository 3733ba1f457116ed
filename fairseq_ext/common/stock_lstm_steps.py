"""The steps of fairseq's own LSTM decoder with attention, in a search for one sentence.

One product makes the gates of a layer, and the maps of the attention go into the source::

    [i ; f ; c ; o] = [W_ih, W_hh] [x ; h] + b_ih + b_hh
    e_s = source_s . (W_in h) = (source_s W_in) . h
    tanh(W_out [sum_s a_s source_s ; h]) = tanh(sum_s a_s (W_out^c source_s) + W_out^h h)

with a = softmax(e), and W_out^c, W_out^h the two parts of W_out. Only the stock classes, and no
option that changes what they compute.

Dimensions: R rows, S source positions, C source, H units, O width of the output, V vocabulary.
"""

from typing import List, Optional, Sequence, Tuple, cast

import torch
from fairseq.models.lstm import AttentionLayer, LSTMDecoder
from fairseq.modules import FairseqDropout
from torch import Tensor, nn
from torch.nn import functional as F

from .lstm import lstm_cell
from .products import compute_once
from .sentence_steps import Affine, SentenceSteps, is_plain

TYPES = (
    *(LSTMDecoder, AttentionLayer, FairseqDropout),
    *(nn.LSTMCell, nn.Linear, nn.Embedding, nn.ModuleList),
)
# states (S, 1, C), last h and m of each layer (L, 1, C), padding (S, 1)
EncoderOut = Tuple[Tensor, Tensor, Tensor, Tensor]


def lstm_steps(decoder: nn.Module, encoder_out: EncoderOut, rows: int) -> Optional[SentenceSteps]:
    """Return the steps of a search for one sentence, None for another decoder.

    Args:
        decoder: of the model.
        encoder_out: of fairseq's encoder, for the sentence.
        rows: R.
    """
    if not isinstance(decoder, LSTMDecoder) or not is_plain(decoder, TYPES):
        return None
    is_usual = decoder.attention is not None and decoder.adaptive_softmax is None
    if not is_usual or decoder.residuals or encoder_out[3].any():
        return None
    return LSTMSteps(decoder, encoder_out, rows)


class LSTMSteps(SentenceSteps):
    """The steps of a decoder.

    Args:
        decoder, encoder_out, rows: as of ``lstm_steps``.
    """

    def __init__(self, decoder: LSTMDecoder, encoder_out: EncoderOut, rows: int):
        source, hidden, memory = (part[:, 0] for part in encoder_out[:3])  # (S, C), (L, C) twice
        if decoder.encoder_hidden_proj is not None:
            hidden = decoder.encoder_hidden_proj(hidden)
            memory = decoder.encoder_cell_proj(memory)
        # h, m of each layer, and what the step before has put out: (R, H) each
        self.states = [state.repeat(rows, 1) for state in hidden[:, None]]
        self.memories = [state.repeat(rows, 1) for state in memory[:, None]]
        self.fed = source.new_zeros(rows, decoder.hidden_size)
        self.need_attention, self.table = decoder.need_attn, decoder.embed_tokens.weight
        layers = cast(Sequence[nn.LSTMCell], decoder.layers)
        self.gates = [_gates(layer).repeated(rows) for layer in layers]
        compare, mix = decoder.attention.input_proj.weight, decoder.attention.output_proj.weight
        of_context, of_state = mix.split([source.size(1), mix.size(1) - source.size(1)], dim=1)
        self.keys = (source @ compare).t()  # source_s W_in: (H, S)
        self.values = F.linear(source, of_context)  # W_out^c source_s: (S, H)
        self.of_state = of_state.t()
        self.outputs = [layer.repeated(rows) for layer in _outputs(decoder)]

    def __call__(self, words: Tensor) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the logits (R, V) behind each row's newest word (R,), and the attention (R, S)."""
        inputs = torch.cat([F.embedding(words, self.table), self.fed], dim=1)
        for number, gates_of in enumerate(self.gates):
            gates = gates_of(torch.cat([inputs, self.states[number]], dim=1))
            inputs, memory = lstm_cell(gates, self.memories[number])
            self.states[number], self.memories[number] = inputs, memory
        weights = torch.mm(inputs, self.keys).softmax(dim=1)  # (R, S)
        mixed = torch.addmm(torch.mm(inputs, self.of_state), weights, self.values)
        output = self.fed = mixed.tanh_()
        for layer in self.outputs:
            output = layer(output)
        return output, weights if self.need_attention else None

    def reorder(self, order: Tensor) -> None:
        """Make row r what row ``order[r]`` was; (R,)."""
        for parts in (self.states, self.memories):
            parts[:] = [part.index_select(0, order) for part in parts]
        self.fed = self.fed.index_select(0, order)


def _outputs(decoder: LSTMDecoder) -> List[Affine]:
    """Return the maps of what the attention has put out to the logits."""
    maps: List[Affine] = []
    if hasattr(decoder, "additional_fc"):
        maps.append(Affine.of(decoder.additional_fc))
    if decoder.share_input_output_embed:
        return [*maps, Affine(decoder.embed_tokens.weight, None)]
    return [*maps, Affine.of(decoder.fc_out)]


def _gates(layer: nn.LSTMCell) -> Affine:
    """Return the map of [x ; h] to the gates."""
    return compute_once(
        lambda: Affine(
            torch.cat([layer.weight_ih, layer.weight_hh], dim=1), layer.bias_ih + layer.bias_hh
        ),
        layer,
    )
