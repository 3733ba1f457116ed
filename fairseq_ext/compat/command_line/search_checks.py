"""Checks of options of a search that contradict each other, or that have no effect together."""

from __future__ import annotations

from typing import Callable

from ..user_errors import OptionError, option_of
from .chosen_classes import Values
from .option_values import is_stock_alone, is_true, number

LABEL_TASKS = ("text_classification", "dual_translation")


def _nbest_within_beam(values: Values) -> None:
    """Raise OptionError for more hypotheses to print than the search has."""
    beam, nbest = number(values, "beam"), number(values, "nbest")
    # these tasks may rank labels without a search; dual_translation checks it where it searches
    if beam is None or nbest is None or values.get("task") in LABEL_TASKS:
        return
    if not is_stock_alone(values):
        return  # a task of another project: its search or classifier may give more
    if nbest > beam:
        raise OptionError(
            f"--nbest {nbest} is more than --beam {beam}, the number of hypotheses that the "
            f"search has; allowed: at most {beam}, or a larger --beam"
        )


def _groups_divide_beam(values: Values) -> None:
    """Raise OptionError where the groups of a diverse search would differ in size."""
    beam, groups = number(values, "beam"), number(values, "diverse_beam_groups")
    # fairseq takes 0 and -1 as "off"
    if beam is not None and groups is not None and groups > 0 and beam % groups:
        raise OptionError(
            f"--diverse-beam-groups {groups} does not divide --beam {beam}; allowed: its divisors"
        )


def _lengths_in_order(values: Values) -> None:
    """Check --min-len and --max-len-b; with --max-len-a the limit depends on the sentence."""
    shortest, longest = number(values, "min_len"), number(values, "max_len_b")
    if longest is None or values.get("max_len_a"):
        return
    if longest < 0:
        raise OptionError(
            f"--max-len-b {longest} is not allowed without --max-len-a; allowed: at least 0"
        )
    if shortest is not None and shortest > longest:
        raise OptionError(
            f"--min-len {shortest} is more than --max-len-b {longest}; allowed: at most {longest}"
        )


def _sampling(values: Values) -> None:
    """Raise OptionError for limits of sampling without it, or for both of them."""
    both = ("sampling_topk", "sampling_topp")
    limits = [name for name in both if (number(values, name) or 0) > 0]
    if limits and not values.get("sampling"):
        raise OptionError(f"{option_of(limits[0])} {values[limits[0]]}: allowed with --sampling")
    if len(limits) == 2:
        raise OptionError("--sampling-topk with --sampling-topp: fairseq reads one; leave one out")


def _one_search_is_chosen(values: Values) -> None:
    """Raise OptionError for two options of which each asks for a search of its own."""
    # the values from which on fairseq takes this search
    chosen = [
        name
        for name, is_on in (
            ("sampling", bool(values.get("sampling"))),
            ("diverse_beam_groups", (number(values, "diverse_beam_groups") or 0) > 0),
            ("match_source_len", bool(values.get("match_source_len"))),
            ("diversity_rate", (number(values, "diversity_rate") or 0) > 0),
        )
        if is_on
    ]
    if len(chosen) > 1 and is_stock_alone(values):
        first, second = (option_of(name, values[name]) for name in chosen[:2])
        raise OptionError(f"{first} with {second}, another search; allowed: one of the two")


def _replace_unk_has_words(values: Values) -> None:
    """Raise OptionError for --replace-unk where no word, or no one word, takes the place."""
    if values.get("replace_unk") is None:
        return
    if values.get("print_alignment") == "soft":
        raise OptionError("--replace-unk with --print-alignment soft: allowed with hard alone")
    # fairseq-interactive, which alone has a buffer, has the words as they are typed
    if "buffer_size" not in values and values.get("dataset_impl") != "raw":
        raise OptionError(
            f"--replace-unk with --dataset-impl {values.get('dataset_impl') or 'mmap'}: binarised "
            "data do not have the words that are unknown; allowed: --dataset-impl raw, with the "
            "texts in the data folder, or fairseq-interactive"
        )


def _constraints_are_typed(values: Values) -> None:
    """Raise OptionError for --constraints where no line is typed."""
    if values.get("constraints") and "buffer_size" not in values and "beam" in values:
        raise OptionError(
            "--constraints: they are typed behind each line of fairseq-interactive, binarised data "
            "have none; allowed with fairseq-generate: leave it out"
        )


def _constraints_have_a_search(values: Values) -> None:
    """Raise OptionError for --constraints with a search that knows of none."""
    if not values.get("constraints"):
        return
    # the values from which on fairseq takes this search and not that of --constraints
    others = {"sampling": 1, "match_source_len": 1, "diverse_beam_groups": 1, "diversity_rate": -1}
    for name, first in others.items():
        value = number(values, name)
        if value is not None and (value > first if first < 0 else value >= first):
            raise OptionError(
                f"--constraints with {option_of(name)}, a search that knows no constraints; "
                "allowed: one of the two"
            )


def _prefixes_are_first(values: Values) -> None:
    """Raise OptionError for prefixes of targets that begin with padding."""
    size = number(values, "prefix_size") or 0
    if size > 0 and is_true(values, "left_pad_target"):
        raise OptionError(
            f"--prefix-size {size} with --left-pad-target: fairseq would take padding for the "
            "first words of the shorter targets of a batch; allowed: one of the two"
        )


def _typed_lines_have_references(values: Values) -> None:
    """Raise OptionError for --score-reference where lines are typed."""
    if values.get("score_reference") and "buffer_size" in values:
        raise OptionError(
            "--score-reference: the lines of fairseq-interactive have no references; allowed with "
            "it: leave it out"
        )


def _references_have_log_p(values: Values) -> None:
    """Raise OptionError for what changes scores of a search, with --score-reference.

    fairseq's scorer of references reads none of it.
    """
    if not values.get("score_reference") or not is_stock_alone(values):
        return  # a task of another project may have a scorer of its own
    neutral = {"lm_path": None, "temperature": 1, "unkpen": 0, "lenpen": 1, "unnormalized": False}
    for name in neutral:
        value = values.get(name)
        if value is not None and value != neutral[name]:
            raise OptionError(
                f"{option_of(name, value)} with --score-reference, whose score is the mean of log "
                "P by the models of --path as they are; allowed: leave it out"
            )


# those of a search that is built in Python
OF_GENERATORS: tuple[Callable[[Values], None], ...] = (
    _nbest_within_beam,
    _groups_divide_beam,
    _lengths_in_order,
    _sampling,
    _one_search_is_chosen,
)
COMPARISONS: tuple[Callable[[Values], None], ...] = (
    *OF_GENERATORS,
    _replace_unk_has_words,
    _constraints_are_typed,
    _constraints_have_a_search,
    _prefixes_are_first,
    _typed_lines_have_references,
    _references_have_log_p,
)
