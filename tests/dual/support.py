"""Bridges between the NumPy reference, the plain-torch components and stock transformers.

A table of places says which slice of which torch parameter holds an array of the reference.
"""

import torch
from toy_sentences import PAD

from fairseq_ext.dual.transformer.modules import Component, ComponentSize
from fairseq_ext.streams.parameter_groups import parameters_by_name
from reference import dual as reference


def size_of(shape):
    """The component's sizes of the reference's Shape."""
    return ComponentSize(
        embed_dim=shape.embed_dim,
        ffn_dim=shape.ffn_dim,
        heads=shape.heads,
        layers=shape.layers,
        normalize_before=shape.normalize_before,
    )


def block_places(width):
    """{name in the reference: (torch parameter, first row, last row + 1)} within one block."""
    whole = slice(None)
    thirds = [slice(i * width, (i + 1) * width) for i in range(3)]
    places = {
        "self.query": ("self_attention.qkv", thirds[0]),
        "self.key": ("self_attention.qkv", thirds[1]),
        "self.value": ("self_attention.qkv", thirds[2]),
        "self.output": ("self_attention.output", whole),
        "context.query": ("context_attention.query", whole),
        "context.key": ("context_attention.key_value", thirds[0]),
        "context.value": ("context_attention.key_value", thirds[1]),
        "context.output": ("context_attention.output", whole),
        "inner": ("feed_forward_in", whole),
        "outer": ("feed_forward_out", whole),
        "self_norm": ("self_attention_norm", whole),
        "context_norm": ("context_attention_norm", whole),
        "ffn_norm": ("feed_forward_norm", whole),
    }
    return {
        f"{name}.{kind}": (f"{module}.{kind}", rows)
        for name, (module, rows) in places.items()
        for kind in ("weight", "bias")
    }


def places(shape):
    """{name in the reference: (torch parameter, rows)} of a whole component."""
    by_name = {"embedding": ("embedding.weight", slice(None))}
    for number in range(shape.layers):
        for name, (parameter, rows) in block_places(shape.embed_dim).items():
            by_name[f"blocks.{number}.{name}"] = (f"blocks.{number}.{parameter}", rows)
    if shape.normalize_before:
        for kind in ("weight", "bias"):
            by_name[f"last_norm.{kind}"] = (f"final_norm.{kind}", slice(None))
    return by_name


@torch.no_grad()
def fill(component, params, shape):
    """Copy the reference's arrays into a component; every parameter must be covered."""
    named, covered = dict(component.named_parameters()), {}
    for name, (parameter, rows) in places(shape).items():
        named[parameter][rows] = torch.from_numpy(params[name])
        covered[parameter] = covered.get(parameter, 0) + params[name].size
    assert covered == {name: parameter.numel() for name, parameter in named.items()}
    return component


def component_of(params, shape):
    """A float64 component with the reference's numbers."""
    words = len(params["embedding"])
    return fill(Component(size_of(shape), words, PAD).double(), params, shape)


def gradient_of(component, shape, name):
    """The part of ``.grad`` that belongs to the reference's array ``name``."""
    parameter, rows = places(shape)[name]
    grad = dict(component.named_parameters())[parameter].grad
    return None if grad is None else grad[rows]


def random_shape(rng, normalize_before):
    """Sizes small enough for loops."""
    heads = int(rng.choice([1, 2, 3]))
    return reference.Shape(
        embed_dim=heads * int(rng.choice([4, 6])),
        ffn_dim=int(rng.integers(3, 12)),
        heads=heads,
        layers=int(rng.integers(1, 3)),
        normalize_before=normalize_before,
    )


def stock_places(shape):
    """{array of the reference: parameter} for a stock encoder layer and a stock decoder layer.

    The key's first part is ``encoder`` or ``decoder``: the stack that holds the component's part.
    """
    projections = {"self.query": "q_proj", "self.key": "k_proj", "self.value": "v_proj"}
    by_place = {}
    for number in range(shape.layers):
        for stack in ("encoder", "decoder"):
            layer = f"{stack}.layers.{number}"
            modules = {name: f"self_attn.{part}" for name, part in projections.items()}
            modules.update(
                {
                    "self.output": "self_attn.out_proj",
                    "self_norm": "self_attn_layer_norm",
                    "inner": "fc1",
                    "outer": "fc2",
                    "ffn_norm": "final_layer_norm",
                }
            )
            if stack == "decoder":
                for name, part in projections.items():
                    modules[name.replace("self", "context")] = f"encoder_attn.{part}"
                modules["context.output"] = "encoder_attn.out_proj"
                modules["context_norm"] = "encoder_attn_layer_norm"
            for name, module in modules.items():
                for kind in ("weight", "bias"):
                    by_place[stack, f"blocks.{number}.{name}.{kind}"] = f"{layer}.{module}.{kind}"
    for stack in ("encoder", "decoder"):
        by_place[stack, "embedding"] = f"{stack}.embed_tokens.weight"
        if shape.normalize_before:
            for kind in ("weight", "bias"):
                by_place[stack, f"last_norm.{kind}"] = f"{stack}.layer_norm.{kind}"
    return by_place


@torch.no_grad()
def fill_stock(model, reader, writer, shape):
    """Copy the reference's arrays into a stock transformer: ``reader`` encodes, ``writer`` decodes.

    Every trainable parameter must be covered.
    """
    named = parameters_by_name(model)
    arrays, untouched = {"encoder": reader, "decoder": writer}, {id(p) for p in named.values()}
    for (stack, name), parameter in stock_places(shape).items():
        named[parameter].copy_(torch.from_numpy(arrays[stack][name]))
        untouched.discard(id(named[parameter]))
    left = [name for name, parameter in named.items() if id(parameter) in untouched]
    assert not left, f"not filled: {left}"
    return model
