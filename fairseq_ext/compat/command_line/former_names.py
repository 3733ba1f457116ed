"""Options under the names that their values had in fairseq 0.9 and 0.10."""

from __future__ import annotations

import functools
from typing import Any

from ..patch_registry import PatchedModule, patch

# {name in fairseq 0.9 or 0.10: name of today}; the commands still take all but --min-lr
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
