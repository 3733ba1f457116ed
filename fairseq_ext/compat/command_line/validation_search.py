"""Checks of the options of a search that are given as JSON, for translations in validation."""

from __future__ import annotations

import difflib
from typing import Container, Mapping

from ..user_errors import OptionError

# {option that the commands read and no task's search: what validation does whatever its value}
OF_COMMANDS = {
    "prefix_size": "validation gives no first words of the reference",
    "lm_path": "validation searches with the trained model alone",
    "lm_weight": "validation searches with the trained model alone",
    "retain_dropout": "validation has no dropout",
    "retain_dropout_modules": "validation has no dropout",
    "replace_unk": "validation leaves unknown words unknown",
    "constraints": "validation has no typed constraints",
    "sacrebleu": "validation has scores of its own",
    "score_reference": "it would score the references in place of translations",
}


def check_names(flag: str, parsed: Mapping[str, object], others: Container[str] = ()) -> None:
    """Raise OptionError for names that the search of a validation does not read.

    Args:
        flag: the option that holds the JSON object, such as "--eval-bleu-args".
        parsed: {name: value} of the object.
        others: names besides the options of fairseq-generate that are allowed.
    """
    from fairseq.dataclass.configs import GenerationConfig

    fields = GenerationConfig.__dataclass_fields__
    for name, value in parsed.items():
        if name not in fields and name not in others:
            close = difflib.get_close_matches(name, fields, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise OptionError(
                f"{flag}: {name!r} is no option of the search{hint}; allowed: those of "
                "fairseq-generate, with _ for -"
            )
        # the value by which an option is off, as the commands have it
        if name in OF_COMMANDS and value is not None and value != fields[name].default:
            raise OptionError(
                f"{flag}: {name!r} is {value!r}, but {OF_COMMANDS[name]}; allowed: leave it out"
            )
