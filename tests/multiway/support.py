"""Bridges between the NumPy reference and the plain-torch modules of multi-way translation.

A table of places says which torch parameter holds which columns of an array of the reference.
"""

import numpy as np
import torch
from toy_sentences import PAD, WithTargets, previous, random_sentence, rows

from fairseq_ext.multiway.modules import (
    MultiwayDecoder,
    MultiwayEncoder,
    MultiwaySize,
    SharedAttention,
    decode,
)
from reference import multiway as reference

ALL = slice(None)


def encoder_places():
    """{array of the reference: [(torch parameter, columns of the array)]} of an encoder."""
    places = {"embedding": "embedding.weight"}
    for side in ("forward", "backward"):
        for ours, theirs in (
            ("input.weight", "weight_ih_l0"),
            ("input.bias", "bias_ih_l0"),
            ("recurrent.weight", "weight_hh_l0"),
        ):
            places[f"gru.{side}.{ours}"] = f"recurrence.{side}s.{theirs}"
    places.update({f"adapt.{kind}": f"adapt.{kind}" for kind in ("weight", "bias")})
    return {name: [(parameter, ALL)] for name, parameter in places.items()}


def shared_places():
    """The same of the shared attention and initialiser."""
    places = {
        "attention.encoder.weight": "key.weight",
        "attention.encoder.bias": "key.bias",
        "attention.decoder.weight": "query.weight",
        "attention.score": "energy",
        "context.weight": "value.weight",
        "context.bias": "value.bias",
        "init.hidden": "initial_in.weight",
        "init.output": "initial_out.weight",
    }
    return {name: [(parameter, ALL)] for name, parameter in places.items()}


def decoder_places(embed_dim):
    """The same of a decoder; its GRU reads [embedding ; context]."""
    places = {
        "embedding": "embedding.weight",
        "query.embedding": "query_embedding.weight",
        "query.state": "query_state.weight",
        "gru.input.bias": "gates_embedding.bias",
        "gru.recurrent.weight": "gates_state.weight",
        "init.weight": "initial.weight",
        "init.bias": "initial.bias",
        "readout.state": "readout_state.weight",
        "readout.bias": "readout_state.bias",
        "readout.embedding": "readout_embedding.weight",
        "readout.context": "readout_context.weight",
        "output.weight": "output.weight",
        "output.bias": "output.bias",
    }
    places = {name: [(parameter, ALL)] for name, parameter in places.items()}
    places["gru.input.weight"] = [
        ("gates_embedding.weight", (ALL, slice(None, embed_dim))),
        ("gates_context.weight", (ALL, slice(embed_dim, None))),
    ]
    return places


def language_places():
    """The same of a language model's ``LanguageState`` inside a decoder."""
    places = {
        "embedding": "embedding.weight",
        "gru.input.weight": "recurrence.weight_ih_l0",
        "gru.input.bias": "recurrence.bias_ih_l0",
        "gru.recurrent.weight": "recurrence.weight_hh_l0",
    }
    return {name: [(f"language.{parameter}", ALL)] for name, parameter in places.items()}


@torch.no_grad()
def fill(module, params, places):
    """Copy arrays into a module, float64; every trained parameter and every array is covered."""
    assert set(places) == set(params)
    module.double()
    named, covered = dict(module.named_parameters()), set()
    for name, parts in places.items():
        for parameter, columns in parts:
            named[parameter].copy_(torch.from_numpy(params[name][columns]))
            covered.add(parameter)
    assert covered == {name for name, p in named.items() if p.requires_grad}
    return module


def gradient_of(module, places, name, shape):
    """The gradient of the reference's array ``name``, in its shape; NaN where there is none."""
    named, gradient = dict(module.named_parameters()), np.full(shape, np.nan)
    for parameter, columns in places[name]:
        if named[parameter].grad is not None:
            gradient[columns] = named[parameter].grad.numpy()
    return gradient


def random_sizes(rng):
    """(MultiwaySize, the reference's Shape) small enough for loops; all widths differ by chance."""

    def width():
        return int(rng.integers(2, 6))

    size = MultiwaySize(width(), width(), width(), width(), width(), width())
    shape = reference.Shape(
        annotation=size.context_size,
        attention=size.context_size,
        context=size.hidden_size,
        init_hidden=size.init_hidden_size,
        init_output=size.init_size,
        readout=size.readout_size,
    )
    return size, shape


class Case(WithTargets):
    """Encoders, the shared part and a decoder in both forms, and a batch of sentences.

    sources: one list of sentences for each source language. target_lengths: one for each row.
    """

    def __init__(self, seed, target_lengths, *source_lengths):
        self.rng = rng = np.random.default_rng(seed)
        self.size, self.shape = random_sizes(rng)
        width = self.size.embed_dim
        words = [int(rng.integers(7, 11)) for _ in range(1 + len(source_lengths))]
        units = [int(rng.integers(1, 5)) for _ in source_lengths]
        self.modules, self.places, self.params = {}, {}, {}
        for number, hidden in enumerate(units):
            arrays = reference.random_encoder(words[number], width, hidden, self.shape, rng)
            encoder = MultiwayEncoder(self.size, hidden, words[number], PAD)
            self._add(f"encoder{number}", encoder, arrays, encoder_places())
        arrays = reference.random_shared(self.shape, rng)
        self._add("shared", SharedAttention(self.size), arrays, shared_places())
        arrays = reference.random_decoder(words[-1], width, self.size.hidden_size, self.shape, rng)
        decoder = MultiwayDecoder(self.size, words[-1], PAD)
        self._add("decoder", decoder, arrays, decoder_places(width))
        self.sources = [
            [random_sentence(rng, length, words[number]) for length in lengths]
            for number, lengths in enumerate(source_lengths)
        ]
        self.targets = [random_sentence(rng, length, words[-1]) for length in target_lengths]

    def _add(self, name, module, arrays, places):
        self.params[name], self.places[name] = arrays, places
        self.modules[name] = fill(module, arrays, places)

    @property
    def encoders(self):
        """The reference's arrays of every encoder."""
        return [self.params[f"encoder{number}"] for number in range(len(self.sources))]

    def encode(self, left=False, literal=False):
        """What ``decode`` takes: annotations and padding of every source."""
        return [
            self.modules[f"encoder{number}"].encode(rows(sentences, left), literal)
            for number, sentences in enumerate(self.sources)
        ]

    def logits(self, left=False, literal=False):
        """(B, T, V), teacher-forced."""
        decoder = self.modules["decoder"]
        readout, _ = decode(
            decoder,
            self.modules["shared"],
            self.encode(left, literal),
            previous(self.targets),
            literal=literal,
        )
        return decoder.logits(readout)

    def stepwise_logits(self, left=False):
        """(B, T, V), one step at a time with a cache."""
        decoder, cache, steps = self.modules["decoder"], {}, []
        encoded, prev = self.encode(left), previous(self.targets)
        for t in range(prev.size(1)):
            readout, _ = decode(decoder, self.modules["shared"], encoded, prev[:, : t + 1], cache)
            steps.append(decoder.logits(readout))
        return torch.cat(steps, dim=1)

    def reference_logits(self, number, average=reference.early_average):
        """(T, V) of row ``number``; of several sources by ``average``."""
        return average(
            [sentences[number] for sentences in self.sources],
            self.targets[number],
            self.encoders,
            self.params["shared"],
            self.params["decoder"],
        )

    def zero_grad(self):
        for module in self.modules.values():
            module.zero_grad()
