"""Outputs of encoders: a named tuple in fairseq 0.9 and 0.10, a dict of lists today."""

from __future__ import annotations

import functools
from typing import Any, Callable

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import compiled_as

FIELDS = (
    "encoder_out",
    "encoder_padding_mask",
    "encoder_embedding",
    "encoder_states",
    "src_tokens",
    "src_lengths",
)


class ReadableOutput(dict):  # type: ignore[type-arg]  # as the encoder's own
    """The output of an encoder, whose entries are fields of fairseq 0.10's EncoderOut too."""

    def _field(self, name: str) -> Any:
        values = self.get(name) or None
        return values if values is None or name == "encoder_states" else values[0]

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS:
            return self._field(name)
        raise AttributeError(f"the output of the encoder has no {name!r}")

    def __missing__(self, key: Any) -> Any:
        if isinstance(key, int) and 0 <= key < len(FIELDS):
            return self._field(FIELDS[key])
        raise KeyError(key)

    def _replace(self, **fields: Any) -> ReadableOutput:
        return ReadableOutput({**self, **{name: entries(name, fields[name]) for name in fields}})


def entries(name: str, value: Any) -> Any:
    """Return the list that today's output has in the place of a field."""
    if value is None:
        return []
    return value if name == "encoder_states" else [value]


def readable(output: Any) -> Any:
    """Return the output of an encoder so that its fields can be read; others as they are."""
    # lists: that of a convolutional model has tuples, which never were fields
    if type(output) is dict and isinstance(output.get("encoder_out"), list):
        return ReadableOutput(output)
    return output


@patch(
    "fairseq.models.fairseq_encoder",
    because="fairseq 0.12.2: decoders for 0.9 and 0.10, which read encoder_out.encoder_out, fail "
    "with \"'dict' object has no attribute\", and today's with an EncoderOut in \"tuple indices "
    'must be integers"',
)
def encoder_outputs_have_fields(module: PatchedModule) -> None:
    """Let outputs of encoders be read as fairseq 0.10 did, and its EncoderOut as today's are."""
    encoder, fields = module.FairseqEncoder, module.EncoderOut
    by_place: Callable[..., Any] = tuple.__getitem__

    def __call__(self: Any, *args: Any, **options: Any) -> Any:
        return readable(super(encoder, self).__call__(*args, **options))

    stock = encoder.forward_non_torchscript

    @functools.wraps(stock)
    def forward_non_torchscript(self: Any, net_input: Any) -> Any:
        return readable(stock(self, net_input))

    def __getitem__(self: Any, key: Any) -> Any:
        return entries(key, getattr(self, key)) if key in FIELDS else by_place(self, key)

    # not compiled: TorchScript compiles forward and forward_torchscript
    encoder.__call__ = __call__
    encoder.forward_non_torchscript = forward_non_torchscript
    fields.__getitem__ = __getitem__
    fields.__new__.__defaults__ = (None,) * len(FIELDS[1:])  # 0.9 had the first four alone


@patch(
    "fairseq.models.transformer.transformer_encoder",
    because="fairseq 0.12.2: the patch before, for searches of plugins, which put outputs in "
    "another order themselves",
)
def reordered_outputs_have_fields(module: PatchedModule) -> None:
    """Let what a Transformer's encoder has put in another order be read so."""
    encoder = module.TransformerEncoderBase
    stock, read = encoder.reorder_encoder_out, readable

    def reorder_encoder_out(self: Any, encoder_out: Any, new_order: Any) -> Any:
        return read(stock(self, encoder_out, new_order))

    encoder.reorder_encoder_out = compiled_as(stock, reorder_encoder_out)


@patch(
    "fairseq.sequence_generator",
    because="fairseq 0.12.2: the patch before, for outputs that a search has put in another order",
)
def ordered_outputs_have_fields(module: PatchedModule) -> None:
    """Let outputs of encoders be read so after each step of a search, too."""
    models = module.EnsembleModel
    stock = models.reorder_encoder_out

    @functools.wraps(stock)
    def reorder_encoder_out(self: Any, encoder_outs: Any, new_order: Any) -> Any:
        return [readable(output) for output in stock(self, encoder_outs, new_order)]

    models.reorder_encoder_out = reorder_encoder_out


@patch(
    "fairseq.iterative_refinement_generator",
    because="fairseq 0.12.2: the same for models that translate without an order",
)
def refined_outputs_have_fields(module: PatchedModule) -> None:
    """Let outputs of encoders be read so after each iteration of a refinement."""
    refining = module.IterativeRefinementGenerator
    stock = refining.generate

    @functools.wraps(stock)
    def generate(self: Any, models: Any, *args: Any, **options: Any) -> Any:
        encoder = getattr(models[0], "encoder", None)
        if encoder is None:
            return stock(self, models, *args, **options)
        reorder = encoder.reorder_encoder_out
        # of this encoder, for this call: TorchScript compiles that of the class
        before = vars(encoder).copy()
        vars(encoder)["reorder_encoder_out"] = lambda *order, **named: readable(
            reorder(*order, **named)
        )
        try:
            return stock(self, models, *args, **options)
        finally:
            del vars(encoder)["reorder_encoder_out"]
            # what a program has put there, or a search that this one is a part of
            if "reorder_encoder_out" in before:
                vars(encoder)["reorder_encoder_out"] = before["reorder_encoder_out"]

    refining.generate = generate
