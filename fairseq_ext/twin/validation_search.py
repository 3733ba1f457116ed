"""The search of tasks that score their outputs in validation: its options, unknown symbols."""

import json
from argparse import Namespace
from typing import Any

from ..compat.command_line.option_checks import check_search
from ..compat.command_line.validation_search import check_names
from ..compat.user_errors import OptionError

# of a hypothesis and of a reference: an unknown symbol counts as one, and as an error
UNKNOWN = "\ufffe", "\uffff"


def search_options(option: str, text: str) -> Namespace:
    """Return the options of a search in validation.

    Args:
        option: which has them, "--eval-args".
        text: its value, a JSON object.

    Raises ValueError for a text that is none, and for values that fairseq-generate refuses.
    """
    try:
        values: Any = json.loads(text)
    except json.JSONDecodeError:
        values = None
    if not isinstance(values, dict):
        raise ValueError(
            f"{option} {text!r}: must be a JSON object, for example " + "'{\"beam\": 4}'"
        )
    check_names(option, values)
    try:
        check_search(values)
    except OptionError as error:
        raise OptionError(f"{option}: {error}") from error
    return Namespace(**values)
