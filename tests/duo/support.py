"""Bridges between the NumPy reference, the plain-torch modules and stock transformers."""

import numpy as np
import torch
from torch import nn
from toy_sentences import PAD, previous, random_sentence, rows, sum_of_nll

from fairseq_ext.duo.transformer.layer import DuoSize
from fairseq_ext.duo.transformer.modules import DuoDecoder, DuoEmbedding, DuoEncoder
from reference import duo as reference

# the rows of Table 6: streams, shared projections, duo normalisation, fusion
ROWS = {
    "transformer": (1, False, "off", False),
    "meta-embeddings": (2, False, "off", False),
    "share-kv": (2, True, "off", False),
    "duo-norm": (2, True, "decoder", False),
    "fusion": (2, True, "decoder", True),
    "norm-everywhere": (2, False, "all", True),
}


def random_shape(row, rng, widths=None):
    """Sizes small enough for loops; widths of the embeddings other than D where there are two."""
    streams, share_kv, norm, fusion = ROWS[row]
    heads = int(rng.choice([1, 2]))
    width = heads * 4
    widths = widths or (width,) if streams == 1 else (width, width + 3)
    depth, inner = int(rng.integers(1, 3)), int(rng.integers(3, 9))
    return reference.Shape(width, inner, heads, depth, widths, share_kv, norm, fusion)


def size_of(shape):
    """The DuoSize of the reference's Shape."""
    return DuoSize(
        embed_dim=shape.embed_dim,
        ffn_dim=shape.ffn_dim,
        heads=shape.heads,
        layers=shape.depth,
        streams=len(shape.widths),
        share_kv=shape.share_kv,
        duo_norm=shape.norm,
        fusion=shape.fusion,
    )


class Pair(nn.Module):
    """Encoder and decoder with embeddings of their own, float64, and their loss."""

    def __init__(self, shape, words):
        super().__init__()
        size = size_of(shape)
        for side, kind in (("encoder", DuoEncoder), ("decoder", DuoDecoder)):
            tables = [nn.Embedding(words, width, PAD) for width in shape.widths]
            setattr(self, side, kind(size, DuoEmbedding(tables, shape.embed_dim)))
        self.double()

    def logits(self, source, prev_tokens):
        """(B, T, V)."""
        states, _ = self.decoder.decode(prev_tokens, *self.encoder.encode(source))
        return self.decoder.logits(states)

    def loss(self, sources, targets, left=True):
        """Sum of -log P over sentences."""
        return sum_of_nll(self.logits(rows(sources, left), previous(targets)), targets)


def places(shape):
    """{name in the reference: (torch parameter, rows)} of a whole Pair."""
    whole, width = slice(None), shape.embed_dim
    halves = slice(0, width), slice(width, 2 * width)
    by_name = {}

    def add(name, module, part=whole):
        for kind in ("weight", "bias"):
            by_name[f"{name}.{kind}"] = f"{module}.{kind}", part

    for side in ("encoder", "decoder"):
        for z, size in enumerate(shape.widths):
            by_name[f"{side}.embedding.{z}"] = f"{side}.embedding.tables.{z}.weight", whole
            if size != width:
                by_name[f"{side}.adapter.{z}"] = f"{side}.embedding.adapters.{z}.weight", whole
        for number in range(shape.depth):
            name, layer = f"{side}.{number}", f"{side}.layers.{number}"
            for kind in ("self",) if side == "encoder" else ("self", "context"):
                for z in range(len(shape.widths)):
                    place, module = f"{name}.{kind}.{z}", f"{layer}.{kind}_attention"
                    add(f"{place}.query", f"{module}.query.{z}")
                    add(f"{place}.key", f"{module}.key_value.{z}", halves[0])
                    if not shape.share_kv:
                        add(f"{place}.value", f"{module}.key_value.{z}", halves[1])
                    add(f"{place}.output", f"{module}.output.{z}")
                    add(f"{name}.{kind}_norm.{z}", f"{module}_norm.norms.{z}")
            add(f"{name}.inner", f"{layer}.feed_forward_in")
            add(f"{name}.outer", f"{layer}.feed_forward_out")
            add(f"{name}.ffn_norm", f"{layer}.feed_forward_norm")
    if shape.fusion:
        by_name["fuse"] = "decoder.fuse.weight", whole
        by_name["project"] = "decoder.project.weight", whole
    return by_name


@torch.no_grad()
def fill(model, params, shape):
    """Copy the reference's arrays into a model; every parameter must be covered."""
    named, covered = dict(model.named_parameters()), {}
    for name, (parameter, part) in places(shape).items():
        named[parameter][part] = torch.from_numpy(params[name])
        covered[parameter] = covered.get(parameter, 0) + params[name].size
    assert covered == {name: parameter.numel() for name, parameter in named.items()}
    return model


def gradient_of(model, shape, name):
    """The part of ``.grad`` that belongs to the reference's array ``name``."""
    parameter, part = places(shape)[name]
    return model.get_parameter(parameter).grad[part]


class Case:
    """A model with random numbers in both forms, and sentence pairs of the given lengths."""

    def __init__(self, row, source_lengths, target_lengths, seed=0):
        self.rng = rng = np.random.default_rng(seed)
        self.shape, self.words = random_shape(row, rng), int(rng.integers(7, 12))
        self.params = reference.random_parameters(self.shape, self.words, rng)
        self.model = fill(Pair(self.shape, self.words), self.params, self.shape)
        self.sources = [random_sentence(rng, length, self.words) for length in source_lengths]
        self.targets = [random_sentence(rng, length, self.words) for length in target_lengths]

    def reference_loss(self):
        pairs = zip(self.sources, self.targets)
        return sum(reference.loss(x, y, self.shape, self.params, PAD) for x, y in pairs)
