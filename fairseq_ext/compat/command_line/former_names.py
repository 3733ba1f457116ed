"""Options under the names that their values had in fairseq 0.9 and 0.10."""

from __future__ import annotations

import argparse
import functools
from typing import Any, Callable

from ..patch_registry import PatchedModule, patch

# {name in fairseq 0.9 or 0.10: name of today}
FORMER_NAMES = {
    "max_sentences": "batch_size",
    "max_sentences_valid": "batch_size_valid",
    "remove_bpe": "post_process",
    "min_lr": "stop_min_lr",  # not of the schedule cosine, which has one of its own
}


@patch(
    "fairseq.options",
    because="fairseq 0.10 and 0.12 renamed values of options: tasks and programs for 0.9 that read "
    "args.max_sentences or args.remove_bpe, and for 0.10 args.min_lr, fail with \"'Namespace' "
    'object has no attribute"',
)
def options_have_their_former_names(module: PatchedModule) -> None:
    """Give the options of a command the names of FORMER_NAMES, too."""
    stock = module.parse_args_and_arch

    @functools.wraps(stock)
    def parse_args_and_arch(*args: Any, **options: Any) -> Any:
        parsed = stock(*args, **options)
        values = parsed[0] if isinstance(parsed, tuple) else parsed
        for former, present in FORMER_NAMES.items():
            if hasattr(values, present) and not hasattr(values, former):
                setattr(values, former, getattr(values, present))
        return parsed

    module.parse_args_and_arch = parse_args_and_arch


@patch(
    "fairseq.options",
    because="fairseq 0.12 renamed --min-lr to --stop-min-lr and kept no alias: command lines for "
    'earlier versions end in "unrecognized arguments: --min-lr 1e-09"',
)
def the_least_rate_has_its_former_name(module: PatchedModule) -> None:
    """Let commands take --min-lr for --stop-min-lr where no class that they use has it itself."""
    stock = module.parse_args_and_arch

    @functools.wraps(stock)
    def parse_args_and_arch(
        parser: argparse.ArgumentParser,
        input_args: list[str] | None = None,
        parse_known: bool = False,
        suppress_defaults: bool = False,
        modify_parser: Callable[[argparse.ArgumentParser], None] | None = None,
    ) -> Any:
        calls = 0

        def modify(parser: argparse.ArgumentParser) -> None:
            nonlocal calls
            calls += 1
            if modify_parser is not None:
                modify_parser(parser)
            if calls == 2:  # the schedule, the model and all others have added their options
                add_name(parser, "--stop-min-lr", "--min-lr")

        if suppress_defaults:  # calls this function, with the same parser, before it parses
            return stock(parser, input_args, parse_known, suppress_defaults, modify_parser)
        return stock(parser, input_args, parse_known, suppress_defaults, modify)

    module.parse_args_and_arch = parse_args_and_arch


def add_name(parser: argparse.ArgumentParser, present: str, former: str) -> None:
    """Give an option another name, unless the parser lacks the option or the name is taken."""
    actions = parser._option_string_actions
    if present in actions and former not in actions:
        actions[former] = actions[present]
        actions[former].option_strings = [*actions[present].option_strings, former]
