"""What layers and encoders return to code that was written for earlier fairseq."""

from __future__ import annotations

import dis
import inspect
import itertools
import opcode
import sys
from types import CodeType, FrameType
from typing import Any, Iterator

from ..command_line.chosen_classes import is_stock
from ..patch_registry import PatchedModule, patch

UNPACKING = opcode.opmap["UNPACK_SEQUENCE"]


class LayerValues(tuple):  # type: ignore[type-arg]  # of a tensor and two that may be None
    """The three values of a decoder layer; `x, attn = values` takes the first two, as in 0.9."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        values = super().__iter__()
        return itertools.islice(values, 2) if unpacks_two(sys._getframe(1)) else values


def unpacks_two(frame: FrameType) -> bool:
    """True if what a frame is doing is an assignment to two names: `a, b = values`."""
    code, place = frame.f_code.co_code, frame.f_lasti
    return code[place] == UNPACKING and code[place + 1] == 2


# names of plugins' classes that may take two values of a layer, see `unpackers_are_noted`
UNPACKERS: list[str] = []


def has_unpacking(code: CodeType) -> bool:
    """True if code, or a function that it defines, has an assignment to two names."""
    if any(step.opcode == UNPACKING and step.arg == 2 for step in dis.get_instructions(code)):
        return True
    return any(has_unpacking(part) for part in code.co_consts if isinstance(part, CodeType))


@patch(
    "fairseq.models.fairseq_decoder",
    "fairseq.models.fairseq_encoder",
    "fairseq.models.fairseq_model",
    because="fairseq 0.10, as after this: that patch looks at the stack, where torch.compile has "
    "to divide a model at each layer",
)
def unpackers_are_noted(module: PatchedModule) -> None:
    """Note the classes of plugins for which stacks are looked at under torch.compile too."""

    names = ("FairseqDecoder", "FairseqEncoder", "BaseFairseqModel")
    (base,) = (getattr(module, name) for name in names if is_defined(module, name))

    def note(cls: Any, **options: Any) -> None:
        super(base, cls).__init_subclass__(**options)
        if not is_stock(cls):
            # of methods of the class, too, and of decorated ones
            members = (getattr(member, "__func__", member) for member in vars(cls).values())
            functions = filter(inspect.isfunction, map(inspect.unwrap, members))
            if any(has_unpacking(function.__code__) for function in functions):
                UNPACKERS.append(cls.__qualname__)

    base.__init_subclass__ = classmethod(note)


def is_defined(module: PatchedModule, name: str) -> bool:
    """True if a module defines the class of this name, rather than importing it."""
    return getattr(vars(module).get(name), "__module__", None) == module.__name__


def is_of_fairseq(frame: FrameType) -> bool:
    """True if a frame runs fairseq's own code."""
    return str(frame.f_globals.get("__name__")).startswith("fairseq.")


@patch(
    "fairseq.modules.transformer_layer",
    because="fairseq 0.10: decoder layers return a third value. Decoders for 0.9, with x, attn = "
    "layer(...), fail with 'too many values to unpack', and layers for 0.9, which return two, with "
    "'not enough values to unpack' in fairseq's decoders",
)
def layers_return_two_or_three(module: PatchedModule) -> None:
    """Let plugins take two values of a decoder layer, and fairseq three of a layer for 0.9."""
    layer = module.TransformerDecoderLayerBase
    stock = layer.forward
    # of torch 2.1 and later
    is_compiling = getattr(getattr(module.torch, "compiler", None), "is_compiling", bool)

    # not compiled: TorchScript compiles forward
    def __call__(self: Any, *args: Any, **options: Any) -> Any:
        values = super(layer, self).__call__(*args, **options)
        is_stock = type(self).forward is stock
        if type(values) is not tuple or len(values) != (3 if is_stock else 2):
            return values
        if is_stock and is_compiling() and not UNPACKERS:
            return values
        if is_of_fairseq(sys._getframe(1)):
            return values if is_stock else (*values, None)
        return LayerValues(values) if is_stock else values

    layer.__call__ = __call__


@patch(
    "fairseq.modules.transformer_sentence_encoder",
    because="fairseq 0.12: RobertaEncoder asks its encoder for a dict. Models for 0.10 whose "
    'encoder is a TransformerSentenceEncoder fail with "unexpected keyword argument '
    "'return_all_hiddens'\"; 0.10 also changed the order of its states, which models for 0.9 read "
    "as sentences by words",
)
def sentence_encoders_are_asked_as_ever(module: PatchedModule) -> None:
    """Answer today's RobertaEncoder, and decoders such as the RobertaEncoder of fairseq 0.9."""
    encoder = module.TransformerSentenceEncoder

    def __call__(self: Any, *args: Any, **options: Any) -> Any:
        from fairseq.models import FairseqDecoder

        ask = super(encoder, self).__call__
        if "return_all_hiddens" in options:
            has_all = options.pop("return_all_hiddens")
            # encoders for 0.9 take no such argument
            if options.get("token_embeddings") is None:
                options.pop("token_embeddings", None)
            states, _ = ask(*args, last_state_only=not has_all, **options)
            return {"encoder_out": [states[-1]], "encoder_states": states if has_all else []}
        answer = ask(*args, **options)
        if type(self).forward is not encoder.forward or not options.get("last_state_only"):
            return answer
        # models of 0.9 were decoders; one that has overridden forward has its own order
        caller = sys._getframe(1)
        is_decoder = isinstance(caller.f_locals.get("self"), FairseqDecoder)
        if not is_decoder or "transpose" in caller.f_code.co_names:
            return answer
        states, first = answer
        return [state.transpose(0, 1) for state in states], first

    encoder.__call__ = __call__
