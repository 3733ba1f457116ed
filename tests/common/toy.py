"""A very small encoder-decoder that is right, and twins of it that are each wrong in one way.

Both sides are one round of content-based averaging, a word's weight being the exponential of a
learnt score of the word: enough to see padding, the future, other sentences and stale caches.

Legend: B sentences, S source positions, T target positions, D width, V words.
"""

import torch
from fairseq.models import FairseqDecoder, FairseqEncoder, FairseqEncoderDecoderModel
from torch import nn

PAD, END, WORDS, WIDTH = 1, 2, 13, 8


class WordDictionary:
    """The part of fairseq's Dictionary that models use."""

    def __len__(self):
        return WORDS

    def pad(self):
        return PAD

    def eos(self):
        return END


class ToyEncoder(FairseqEncoder):
    """State of position s: its word, plus the weighted mean of all real words of the sentence."""

    def __init__(self):
        super().__init__(WordDictionary())
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.score = nn.Linear(WIDTH, 1)

    def padding(self, src_tokens):
        return src_tokens.eq(PAD)  # (B, S)

    def visible(self, padding):
        """(B, S, S): may position s see position r?"""
        return ~padding.unsqueeze(1) & torch.ones_like(padding).unsqueeze(2)

    def forward(self, src_tokens, src_lengths=None):
        vectors = self.embed(src_tokens)  # (B, S, D)
        padding = self.padding(src_tokens)
        scores = self.score(vectors).transpose(1, 2)  # (B, 1, S)
        weights = scores.masked_fill(~self.visible(padding), -1e9).softmax(dim=-1)  # (B, S, S)
        states = vectors + weights @ vectors  # (B, S, D)
        return {
            "encoder_out": [states.transpose(0, 1)],
            "encoder_padding_mask": [padding],
        }

    def reorder_encoder_out(self, encoder_out, new_order):
        return {
            "encoder_out": [encoder_out["encoder_out"][0].index_select(1, new_order)],
            "encoder_padding_mask": [
                encoder_out["encoder_padding_mask"][0].index_select(0, new_order)
            ],
        }


class ToyDecoder(FairseqDecoder):
    """State of position t: weighted sum of the words so far, plus the mean of the source states."""

    def __init__(self):
        super().__init__(WordDictionary())
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.score = nn.Linear(WIDTH, 1)
        self.output = nn.Linear(WIDTH, WORDS)

    def history(self, prev_output_tokens, incremental_state):
        """(B, T, D): at each position the sum of exp(score) * word up to there."""
        vectors = self.embed(prev_output_tokens)
        summed = (self.score(vectors).exp() * vectors).cumsum(dim=1)
        if incremental_state is None:
            return summed
        vectors = self.embed(prev_output_tokens[:, -1:])
        summed = self.score(vectors).exp() * vectors  # (B, 1, D)
        if "sum" in incremental_state:
            summed = summed + incremental_state["sum"]
        incremental_state["sum"] = summed
        return summed

    def context(self, encoder_out):
        """(B, 1, D): the mean of the source's real states."""
        states = encoder_out["encoder_out"][0].transpose(0, 1)  # (B, S, D)
        real = ~encoder_out["encoder_padding_mask"][0].unsqueeze(-1)  # (B, S, 1)
        return (states * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True)

    def forward(self, prev_output_tokens, encoder_out=None, incremental_state=None, **unused):
        history = self.history(prev_output_tokens, incremental_state)
        return self.output(torch.tanh(history + self.context(encoder_out))), {}

    def reorder_incremental_state_scripting(self, incremental_state, new_order):
        incremental_state["sum"] = incremental_state["sum"].index_select(0, new_order)


def build(encoder=ToyEncoder, decoder=ToyDecoder):
    """A model with random weights."""
    return FairseqEncoderDecoderModel(encoder(), decoder())


class PaddingIsRead(ToyEncoder):
    def padding(self, src_tokens):
        return torch.zeros_like(src_tokens, dtype=torch.bool)


class PaddingIsInContext(ToyDecoder):
    def context(self, encoder_out):
        return encoder_out["encoder_out"][0].mean(dim=0).unsqueeze(1)


class MatesAreMixed(ToyEncoder):
    def forward(self, src_tokens, src_lengths=None):
        out = super().forward(src_tokens)
        states = out["encoder_out"][0]
        return {**out, "encoder_out": [states - states.mean(dim=1, keepdim=True)]}


class FutureIsRead(ToyDecoder):
    def history(self, prev_output_tokens, incremental_state):
        history = super().history(prev_output_tokens, incremental_state)
        return history if incremental_state is not None else history + history[:, -1:]


class PastIsForgotten(ToyDecoder):
    def history(self, prev_output_tokens, incremental_state):
        return self.embed(prev_output_tokens)


class EncoderIsCausal(ToyEncoder):
    def visible(self, padding):
        return super().visible(padding).tril()


class StateIsIgnored(ToyDecoder):
    def history(self, prev_output_tokens, incremental_state):
        if incremental_state is not None:
            incremental_state.pop("sum", None)
        return super().history(prev_output_tokens, incremental_state)


class StateStaysOnModel(ToyDecoder):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def history(self, prev_output_tokens, incremental_state):
        state = None if incremental_state is None else self.kept
        return super().history(prev_output_tokens, state)


class StateIsNotReordered(ToyDecoder):
    def reorder_incremental_state_scripting(self, incremental_state, new_order):
        incremental_state["sum"] = incremental_state["sum"][: len(new_order)]


class SourceIsNotReordered(ToyEncoder):
    def reorder_encoder_out(self, encoder_out, new_order):
        if len(new_order) > encoder_out["encoder_out"][0].shape[1]:
            return super().reorder_encoder_out(encoder_out, new_order)
        rows = len(new_order)
        return {
            "encoder_out": [encoder_out["encoder_out"][0][:, -rows:]],
            "encoder_padding_mask": [encoder_out["encoder_padding_mask"][0][-rows:]],
        }


class PartIsNotStored(ToyDecoder):
    def __init__(self):
        super().__init__()
        self.hidden_scale = torch.rand(WIDTH)

    def context(self, encoder_out):
        return self.hidden_scale * super().context(encoder_out)
