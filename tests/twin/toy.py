"""Small models that keep the contract, and a criterion around them without a run of fairseq.

Legend: B sentences, T target positions, V words, E embedding, D state.
"""

import numpy as np
import torch
from torch import nn

from fairseq_ext.twin.contract import BackwardDecoder, decode
from fairseq_ext.twin.criterion import TwinCriterion
from fairseq_ext.twin.modules import TwinPenalty
from properties import collate

PAD, END, WORDS, EMBED, UNITS = 1, 2, 11, 4, 5
NAMES = ("embedding", "input", "recurrent", "bias", "output", "output_bias")


class Words:
    """The part of a task and of its dictionary that the criterion reads."""

    def pad(self):
        return PAD

    @property
    def target_dictionary(self):
        return self


class SimpleDecoder(nn.Module):
    """h' = tanh(W e(x) + U h + b), logits O h + c, float64; what reference/twin.py computes.

    condition: None, or vectors (B, D) that are added to every argument of tanh.
    """

    def __init__(self, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        shapes = (WORDS, EMBED), (UNITS, EMBED), (UNITS, UNITS), (UNITS,), (WORDS, UNITS), (WORDS,)
        for name, shape in zip(NAMES, shapes):
            numbers = torch.randn(shape, generator=generator, dtype=torch.float64)
            setattr(self, name, nn.Parameter(numbers))


def run(decoder, tokens, condition):
    inputs = decoder.embedding[tokens] @ decoder.input.T + decoder.bias  # (B, T, D)
    if condition is not None:
        inputs = inputs + condition.unsqueeze(1)
    state, states = torch.zeros_like(inputs[:, 0]), []
    for t in range(tokens.size(1)):
        state = torch.tanh(inputs[:, t] + state @ decoder.recurrent.T)
        states.append(state)
    states = torch.stack(states, dim=1)  # (B, T, D)
    return (states @ decoder.output.T + decoder.output_bias, None), states


class ToyModel(nn.Module):
    """A language model; with source tokens, an encoder-decoder whose encoder adds embeddings up."""

    def __init__(self, seed=0):
        super().__init__()
        self.decoder = SimpleDecoder(seed)
        generator = torch.Generator().manual_seed(seed + 1)
        self.encoder = nn.Parameter(torch.randn(WORDS, UNITS, generator=generator).double())

    def forward(self, src_tokens, src_lengths=None, prev_output_tokens=None, twin=None):
        if prev_output_tokens is None:
            return decode(run, self.decoder, src_tokens, None, twin)
        condition = (self.encoder[src_tokens] * src_tokens.ne(PAD).unsqueeze(2)).sum(dim=1)
        return decode(run, self.decoder, prev_output_tokens, condition, twin)


def criterion(target="backward", kind="mse", stabilise=False, learnt=True, weight=1.5, **more):
    """In training mode, with a backward network where one is needed."""
    learnt = learnt and target == "backward" and not stabilise
    penalty = TwinPenalty(target, kind, stabilise, UNITS if learnt else None).double()
    network = None
    if penalty.has_backward_states:
        network = BackwardDecoder(SimpleDecoder(seed=7), UNITS, run)
    return TwinCriterion(Words(), weight, penalty, network, **more)


def sentences(lengths, seed=0):
    """Lists of words, without the end symbol."""
    rng = np.random.default_rng(seed)
    return [[int(word) for word in rng.integers(4, WORDS, size=length)] for length in lengths]


def batch(targets, sources=None, extra=0):
    """What a task would make of them; ``extra`` columns of padding."""
    width = 1 + extra + max(len(sentence) for sentence in targets)

    def rows(lists):
        return collate([torch.tensor(tokens) for tokens in lists], PAD, width=width)

    prev = rows([[END, *sentence] for sentence in targets])
    inputs = {"src_tokens": prev}
    if sources is not None:
        source = collate([torch.tensor([*tokens, END]) for tokens in sources], PAD)
        inputs = {"src_tokens": source, "prev_output_tokens": prev}
    return {
        "net_input": inputs,
        "target": rows([[*sentence, END] for sentence in targets]),
        "ntokens": sum(len(sentence) + 1 for sentence in targets),
    }


def arrays(model, twin_loss, of=lambda parameter: parameter.detach().numpy()):
    """The parameters under the names of the reference, as views."""
    values = {}
    for label, decoder in (("forward", model.decoder), ("backward", twin_loss.network.decoder)):
        values.update({f"{label}.{name}": of(getattr(decoder, name)) for name in NAMES})
    if hasattr(twin_loss.penalty.map, "weight"):
        values["map.weight"] = of(twin_loss.penalty.map.weight)
        values["map.bias"] = of(twin_loss.penalty.map.bias)
    return values
