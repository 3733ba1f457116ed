"""Checks of option values right after they are read, for every command and every model.

fairseq accepts most numbers unchecked. Without these checks the values refused here end in an error
that names no option, in no training at all, or silently in a wrong result.
"""

from __future__ import annotations

import json
import math
from typing import Any, Callable, Mapping

from ..user_errors import OptionError, option_of
from .chosen_classes import Values, foreign_options
from .layer_lists import layers_of_convolutions, layers_of_recordings
from .named_files import COMPARISONS as OF_FILES
from .option_ranges import RANGES, Range
from .option_values import is_stock_alone, literal, number
from .schedule_checks import rates_can_be_made
from .search_checks import COMPARISONS as OF_SEARCHES
from .search_checks import OF_GENERATORS
from .training_checks import COMPARISONS as OF_TRAININGS
from .unread_options import warn_of_unread
from .validation_search import check_detokenizer, check_names

# of --post-process: what fairseq joins sub-words by
JOINED = (
    *("subword_nmt", "@@ ", "sentencepiece", "wordpiece"),
    *("letter", "_EOW", "silence", "none"),
)


def check(values: Values, default_of: Callable[[str], Any] = lambda name: None) -> None:
    """Raise OptionError for the first option that is out of range or contradicts another.

    Args:
        values: all options of a command; what is missing or None is not checked. Options of other
            projects' tasks and models are left out, also where they bear fairseq's names.
        default_of: returns the default of an option. It need not be in its range: programs set
            others, `parser.set_defaults(num_workers=-1)`, of options that they do not use.
    """
    foreign = foreign_options(values)  # first: their names may be those of fairseq's options
    values = {name: value for name, value in values.items() if name not in foreign}
    for name, limits in RANGES.items():
        if values.get(name) != default_of(name):
            check_range(name, values.get(name), limits)
    for compare in COMPARISONS:  # each knows its values are in their ranges
        compare(values)
    warn_of_unread(values)


def check_search(values: Values) -> None:
    """Check the options of a search that is built in Python, which no command has parsed."""
    for name, limits in RANGES.items():
        check_range(name, values.get(name), limits)
    for compare in (*OF_GENERATORS, *OF_FILES):
        compare(values)


def check_range(name: str, value: Any, limits: Range) -> None:
    """Raise OptionError unless the number, or each number of a list, is in its range.

    Args:
        name: of the option, as argparse stores it.
        value: a number, a text that is one, or a list of these; anything else is not checked.
        limits: its range.
    """
    if value is None or isinstance(value, bool):
        return
    is_list = not isinstance(value, (str, int, float))  # omegaconf's lists are none of Python's
    for entry in value if is_list else (value,):
        try:
            number = float(entry)
        except (TypeError, ValueError):
            # a reference, "${...}", or another option of the name that is a text
            continue
        if not limits.has(number):
            raise OptionError(
                f"{option_of(name)} {entry} is not allowed; allowed: {limits.words()}"
            )


def _masked_tokens_are_a_part(values: Values) -> None:
    """Raise OptionError for a share of masked tokens above 1."""
    share = number(values, "mask_prob")
    # --leave-unmasked-prob tells BERT's masking from wav2vec's, whose spans may overlap
    if "leave_unmasked_prob" in values and share is not None and share > 1:
        raise OptionError(f"--mask-prob {share} is not allowed; allowed: at least 0 and at most 1")


def _shard_exists(values: Values) -> None:
    """Raise OptionError for a shard, counted from 0, that is not there."""
    shard, shards = number(values, "shard_id"), number(values, "num_shards")
    if shard is not None and shards is not None and shard >= shards:
        raise OptionError(
            f"--shard-id {shard} does not exist with --num-shards {shards}; "
            f"allowed: 0 to {shards - 1}"
        )


def _one_subset_is_combined(values: Values) -> None:
    """fairseq joins valid, valid1 and so on whatever the name, and then looks for the name."""
    subset = values.get("valid_subset")
    if values.get("combine_valid_subsets") and subset not in (None, "valid"):
        raise OptionError(
            f"--valid-subset {subset} with --combine-valid-subsets, which joins valid, valid1, "
            "valid2 and so on; allowed: valid"
        )


def _heads_divide_width(values: Values) -> None:
    """Raise OptionError unless the width is a multiple of the number of attention heads."""
    if not is_stock_alone(values):
        return  # a model of another project: its heads may be of another width
    for side in ("encoder", "decoder"):
        if side == "encoder" and "encoder_conv_dim" in values:
            continue  # heads of convolutions, which may have a width of their own
        width = values.get(f"{side}_embed_dim")
        heads = values.get(f"{side}_attention_heads")
        if isinstance(width, int) and isinstance(heads, int) and width % heads:
            raise OptionError(
                f"--{side}-attention-heads {heads} does not divide --{side}-embed-dim {width}; "
                "allowed: a divisor of it"
            )


def _warmup_of_inverse_sqrt(values: Values) -> None:
    """Raise OptionError for a warm-up of no updates, by which fairseq would divide."""
    if values.get("lr_scheduler") == "inverse_sqrt" and values.get("warmup_updates") == 0:
        raise OptionError(
            "--warmup-updates 0 is not allowed with --lr-scheduler inverse_sqrt, whose rate falls "
            "from the end of the warm-up; allowed: at least 1"
        )


def _betas(values: Values) -> None:
    """Raise OptionError unless the decay rates of an optimiser's means are two from [0, 1)."""
    for name in ("adam_betas", "adamax_betas", "lamb_betas"):
        value = values.get(name)
        if isinstance(value, str) and not _is_pair(value, limit=1):
            raise OptionError(
                f"{option_of(name)} {value!r} is not allowed; allowed: two numbers of at least 0 "
                "and less than 1, such as '(0.9, 0.98)'"
            )


def _epsilons(values: Values) -> None:
    """Raise OptionError unless Adafactor has two numbers that keep it from dividing by zero."""
    value = values.get("adafactor_eps")
    if isinstance(value, str) and not _is_pair(value, limit=math.inf):
        raise OptionError(
            f"{option_of('adafactor_eps')} {value!r} is not allowed; allowed: two numbers of at "
            "least 0, such as '(1e-30, 1e-3)'"
        )


def _is_pair(text: str, limit: float) -> bool:
    """True if a text holds two numbers of at least 0 and below ``limit``."""
    pair: Any = literal(text)
    return (
        isinstance(pair, (tuple, list))
        and len(pair) == 2
        and all(isinstance(part, (int, float)) and 0 <= part < limit for part in pair)
    )


def _dictionaries(values: Values) -> None:
    """Raise OptionError for overrides that are no dictionary in the notation of Python."""
    for name in ("model_overrides", "optimizer_overrides"):
        value = values.get(name)
        overrides = literal(value) if isinstance(value, str) else {}
        if not isinstance(overrides, dict):
            problem = "is not a Python dictionary"
        elif all(isinstance(key, str) for key in overrides):
            continue
        else:
            problem = "has a key that is no name"
        raise OptionError(
            f"{option_of(name)} {value!r} {problem}; allowed: for example "
            "\"{'dropout': 0.1}\", names as in the checkpoint's configuration"
        )


def _json_objects(values: Values) -> None:
    """Raise OptionError for --eval-bleu-args and the like that are no JSON object."""
    for name in ("eval_bleu_args", "eval_bleu_detok_args"):
        value = values.get(name)
        if not isinstance(value, str) or not value:
            continue
        try:
            parsed = json.loads(value)
        except json.JSONDecodeError:
            parsed = None
        if not isinstance(parsed, dict):
            raise OptionError(
                f"{option_of(name)} {value!r} is not a JSON object; allowed: for example "
                '\'{"beam": 4, "lenpen": 0.6}\''
            )
        if name == "eval_bleu_args":
            _check_validation_search(parsed, values)


def _check_validation_search(parsed: Mapping[str, object], values: Values) -> None:
    """Check the options of the search that validation uses as those of fairseq-generate."""
    # the search of another project's task may have options of its own
    if is_stock_alone(values):
        check_names("--eval-bleu-args", parsed, values)
    try:
        check(parsed)
    except OptionError as error:
        raise OptionError(f"--eval-bleu-args: {error}") from error


def _manual_rates(values: Values) -> None:
    """Raise OptionError for rates that --lr-scheduler manual cannot read."""
    for name in ("epoch2lr", "update2lr"):
        value = values.get(name)
        if isinstance(value, str) and not _is_manual_rates(value):
            raise OptionError(
                f"{option_of(name)} {value!r} is not a Python dictionary of rates; allowed: for "
                "example \"{1: 0.5, '2-4': 0.1, '5,6': 0.05}\""
            )


def _is_manual_rates(text: str) -> bool:
    """True if --lr-scheduler manual can read it: {numbers, or ranges as text: rate}."""
    rates = literal(text)
    return isinstance(rates, dict) and all(
        isinstance(key, (str, int))
        and all(part.strip().isdigit() for part in str(key).replace("-", ",").split(","))
        and isinstance(rate, (int, float))
        for key, rate in rates.items()
    )


def _buckets_hold_tokens(values: Values) -> None:
    """Raise OptionError for buckets of lengths without --max-tokens."""
    if (values.get("num_batch_buckets") or 0) > 0 and values.get("max_tokens") is None:
        raise OptionError(
            f"--num-batch-buckets {values['num_batch_buckets']} without --max-tokens, "
            "which says how many sentences of a bucket a batch holds; allowed: with it"
        )


def _subwords_are_joined(values: Values) -> None:
    """Raise OptionError for sub-words that fairseq cannot join, or would join to other words."""
    for name in ("post_process", "eval_bleu_remove_bpe"):
        value = values.get(name)
        if value is None or value in JOINED or not is_stock_alone(values):
            continue
        why = ": the blank inside of a word would stay" if value == "@@" else " is not allowed"
        allowed = ", ".join(map(repr, JOINED))
        raise OptionError(f"{option_of(name)} {value!r}{why}; allowed: {allowed}")


# the first that fails is the one reported
COMPARISONS: tuple[Callable[[Values], None], ...] = (
    *OF_SEARCHES,
    *OF_TRAININGS,
    *OF_FILES,
    _masked_tokens_are_a_part,
    _shard_exists,
    _one_subset_is_combined,
    _heads_divide_width,
    _warmup_of_inverse_sqrt,
    rates_can_be_made,
    layers_of_convolutions,
    layers_of_recordings,
    _betas,
    _epsilons,
    _dictionaries,
    _json_objects,
    check_detokenizer,  # whose arguments are such an object
    _subwords_are_joined,
    _manual_rates,
    _buckets_hold_tokens,
)
