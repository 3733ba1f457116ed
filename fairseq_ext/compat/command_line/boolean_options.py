"""Options that are on unless one switches them off: `--left-pad-source False`."""

from __future__ import annotations

import argparse
import functools
import logging
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.dataclass import FairseqDataclass

logger = logging.getLogger(__name__)

VALUES = {"true": True, "false": False}
NO_VALUE = object()  # the option was named without one


class OnUnlessFalse(argparse.Action):
    """An option that is on by default and takes True, False or no value.

    named: what the option without a value means.
    """

    named: bool

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if values is NO_VALUE:
            values = self.named
            if self.named:
                _say_that_it_is_on(option_string)
        setattr(namespace, self.dest, values)


@functools.lru_cache(maxsize=None)  # fairseq reads a command line several times
def _say_that_it_is_on(option: str) -> None:
    logger.warning(
        f"{option} is on, as its help says; fairseq 0.12.2 alone switches it off, for which "
        f"{option} False is necessary here"
    )


def boolean(text: str) -> bool:
    """Return the value of "True" or "False", in any case."""
    if text.lower() not in VALUES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not allowed; allowed: True, False or no value, which is possible behind "
            "all that has no option (DATA)"
        )
    return VALUES[text.lower()]


@patch(
    "fairseq.dataclass.utils",
    because="fairseq 0.12.2: --left-pad-source, and --skip-connections-agg and --log-compression "
    "of wav2vec, are on by default; to name them switches them off, and they take no value",
)
def named_options_are_on(module: PatchedModule) -> None:
    """Let options that are on by default take a value; fairseq's own are on if they are named.

    Those of plugins keep their meaning without a value, which their users know.
    """
    stock = module.gen_parser_from_dataclass

    @functools.wraps(stock)
    def gen_parser_from_dataclass(
        parser: argparse.ArgumentParser,
        dataclass_instance: FairseqDataclass,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        others = {id(action) for action in parser._actions}
        stock(parser, dataclass_instance, *args, **kwargs)
        for action in parser._actions:
            if id(action) not in others and isinstance(action, argparse._StoreFalseAction):
                _let_take_value(action, type(dataclass_instance).__module__.startswith("fairseq."))

    module.gen_parser_from_dataclass = gen_parser_from_dataclass


def _let_take_value(action: argparse.Action, named: bool) -> None:
    action.__class__ = OnUnlessFalse
    action.nargs, action.const, action.type = "?", NO_VALUE, boolean
    action.metavar = "{True,False}"
    action.named = named  # type: ignore[attr-defined]
