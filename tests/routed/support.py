"""Bridges between the NumPy reference and the modules of routed multi-task learning.

The arrays handed to the reference are views of the modules' parameters (or of their gradients):
nothing is copied, and changing a number changes it in both.
"""

import numpy as np
import pytest
import torch
from toy_sentences import PAD, WithTargets, previous, random_sentence, rows, shifted

from fairseq_ext.common.layers import embedding
from fairseq_ext.routed.encoder_decoder import (
    Decoder,
    Encoder,
    RoutedSize,
    TargetVocabulary,
    decode,
)
from fairseq_ext.routed.modules import COMMON, BidirectionalUnit, RoutedUnit, UnitStack
from reference import routed as reference
from reference.gradient import central_difference, random_entries

TASKS = ("xx-yy", "xx-zz")


def value(parameter):
    return parameter.detach().numpy()


def gradient(parameter):
    return np.full(parameter.shape, np.nan) if parameter.grad is None else parameter.grad.numpy()


def block_arrays(blocks, number, of):
    arrays = {}
    names = {"W": blocks.weight_input, "U": blocks.weight_state, "b": blocks.bias}
    for letter, parameter in names.items():
        for gate, part in zip("zrh", np.split(of(parameter)[number], 3)):
            arrays[f"{letter}_{gate}"] = part
    return arrays


def unit_arrays(unit, task, of=value):
    """A unit in the reference's form; of: ``value`` or ``gradient``."""
    task_blocks = unit.own[COMMON if COMMON in unit.own else task]
    arrays = {"shared": [], "task": block_arrays(task_blocks, 0, of)}
    if unit.shared_blocks:
        blocks, router = range(unit.shared_blocks), unit.router
        arrays["shared"] = [block_arrays(unit.shared, number, of) for number in blocks]
        arrays["router"] = {
            "W_x": of(router.input.weight),
            "b_s": of(router.input.bias),
            "W_h": of(router.state.weight),
            "W_tau": of(router.output.weight),
            "b_tau": of(router.output.bias),
        }
    return arrays


def both_ways(layer, task, of=value):
    return {
        "forward": unit_arrays(layer.forwards, task, of),
        "backward": unit_arrays(layer.backwards, task, of),
    }


def encoder_arrays(encoder, table, task, of=value):
    layers = [both_ways(layer, task, of) for layer in encoder.units.units]
    return {"embedding": of(table.weight), "layers": layers}


def decoder_arrays(decoder, target, task, of=value):
    return {
        "embedding": of(target.embedding.weight),
        "layers": [unit_arrays(unit, task, of) for unit in decoder.units],
        "initial": of(decoder.initial.weight),
        "key.weight": of(decoder.key.weight),
        "key.bias": of(decoder.key.bias),
        "query": of(decoder.query.weight),
        "energy": of(decoder.energy),
        "Q": of(decoder.readout_context.weight),
        "P": of(decoder.readout_embedding.weight),
        "output.weight": of(target.output.weight),
        "output.bias": of(target.output.bias),
    }


def flat(arrays, prefix=""):
    """{name: array} of nested dictionaries and lists."""
    if isinstance(arrays, np.ndarray):
        return {prefix: arrays}
    items = enumerate(arrays) if isinstance(arrays, list) else arrays.items()
    by_path = {}
    for name, part in items:
        by_path.update(flat(part, f"{prefix}.{name}" if prefix else str(name)))
    return by_path


@torch.no_grad()
def randomise(module, seed):
    """Random float64 numbers in every parameter, biases too."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.double().parameters():
        scale = parameter.size(-1) ** -0.5 if parameter.dim() > 1 else 0.7
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.copy_(1.5 * scale * noise)
    return module


# name: (shared blocks, whose the encoder's layers are, whose the decoder's); None = of all tasks
KINDS = {
    "routed": (3, [TASKS], [TASKS]),
    "routed, stacked": (2, [TASKS, TASKS], [TASKS, TASKS]),
    "full": (0, [None, None], [None, None]),
    "partial": (0, [TASKS, None, None], [TASKS, TASKS, None]),
}


class Case(WithTargets):
    """A model of random sizes with random weights, and a batch of sentences.

    kind: one of ``KINDS``. dropout is off.
    """

    def __init__(self, kind, seed, source_lengths, target_lengths, task=TASKS[1]):
        self.rng, self.task = np.random.default_rng(seed), task
        size = RoutedSize(*(int(self.rng.integers(2, 5)) for _ in range(4)), dropout=0.0)
        words = [int(self.rng.integers(7, 11)) for _ in range(2)]
        shared, encoder, decoder = KINDS[kind]
        options = dict(shared_blocks=shared, router_size=size.router_size)
        inputs, units = size.embed_dim, []
        for tasks in encoder:
            units.append(BidirectionalUnit(inputs, size.hidden_size, tasks=tasks, **options))
            inputs = units[-1].output_size
        self.encoder = Encoder(UnitStack(units), 0.0)
        inputs, units = inputs + size.embed_dim, []
        for tasks in decoder:
            units.append(RoutedUnit(inputs, size.hidden_size, tasks=tasks, **options))
            inputs = units[-1].output_size
        self.decoder = Decoder(size, units, self.encoder.output_size)
        self.target = TargetVocabulary(size, self.decoder.readout_size, words[1], PAD)
        self.table = embedding(words[0], size.embed_dim, PAD)
        self.modules = torch.nn.ModuleList([self.encoder, self.decoder, self.target, self.table])
        randomise(self.modules, seed)
        self.sources = [random_sentence(self.rng, length, words[0]) for length in source_lengths]
        self.targets = [random_sentence(self.rng, length, words[1]) for length in target_lengths]

    def arrays(self, of=value):
        """{name: array} for the reference, as two dictionaries: encoder and decoder."""
        return (
            encoder_arrays(self.encoder, self.table, self.task, of),
            decoder_arrays(self.decoder, self.target, self.task, of),
        )

    def encode(self, left=False, literal=False):
        return self.encoder(self.table, rows(self.sources, left), self.task, literal)[:2]

    def outcome(self, left=False, literal=False):
        """Logits (B, T, V) and attention (B, T, S), teacher-forced."""
        encoded, prev = self.encode(left, literal), previous(self.targets)
        readout, weights = decode(
            self.decoder, self.target, encoded, prev, self.task, literal=literal
        )
        return self.target.output(readout), weights

    def reference_logits(self, number):
        """(T, V) of row ``number``."""
        prev = shifted(self.targets[number])
        return reference.translate(self.sources[number], prev, *self.arrays())


def assert_gradients(function, arrays, gradients, rng, count=2):
    """Central differences of the reference against torch's gradients, some entries of each."""
    gradients = flat(gradients)
    for name, array in flat(arrays).items():
        for index in random_entries(array, count, rng):
            expected = central_difference(function, array, index)
            assert gradients[name][index] == pytest.approx(expected, rel=1e-5, abs=1e-8), (
                name,
                index,
            )
