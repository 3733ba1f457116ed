"""Checks of options by which validation translates, of which some are given as JSON."""

from __future__ import annotations

import json
import sys
from typing import Container, Mapping

from ..user_errors import OptionError, hint_for
from .chosen_classes import Values, is_stock

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
        others: names of other options of the run, which no search reads either.
    """
    from fairseq.dataclass.configs import GenerationConfig

    fields = GenerationConfig.__dataclass_fields__
    for name, value in parsed.items():
        if name not in fields and name in others:
            raise OptionError(
                f"{flag}: {name!r} is an option of the run, but the search of a validation does "
                "not read it; allowed: options of fairseq-generate's search, with _ for -"
            )
        if name not in fields:
            raise OptionError(
                f"{flag}: {name!r} is no option of the search{hint_for(name, fields)}; allowed: "
                "those of fairseq-generate, with _ for -"
            )
        # the value by which an option is off, as the commands have it
        if name in OF_COMMANDS and value is not None and value != fields[name].default:
            raise OptionError(
                f"{flag}: {name!r} is {value!r}, but {OF_COMMANDS[name]}; allowed: leave it out"
            )


def check_detokenizer(values: Values) -> None:
    """Raise OptionError for a --eval-bleu-detok that is none, or does not read its arguments."""
    name, text = values.get("eval_bleu_detok"), values.get("eval_bleu_detok_args")
    # without --eval-bleu nothing is joined; a command without models has no tokenisers
    encoders = sys.modules.get("fairseq.data.encoders")
    if not values.get("eval_bleu") or not isinstance(name, str) or encoders is None:
        return
    registry = encoders.TOKENIZER_REGISTRY
    if name not in registry:
        raise OptionError(
            f"--eval-bleu-detok {name!r} is not allowed; allowed: {', '.join(sorted(registry))}; "
            "space leaves the words as they are"
        )
    dataclasses = sys.modules["fairseq.registry"].REGISTRIES["tokenizer"]["dataclass_registry"]
    if not is_stock(registry[name]) or not isinstance(text, str) or not text:
        return
    fields = getattr(dataclasses.get(name), "__dataclass_fields__", {}).keys() - {"_name"}
    for argument in json.loads(text):
        if argument not in fields:
            raise OptionError(
                f"--eval-bleu-detok-args: {argument!r} is no option of --eval-bleu-detok {name}; "
                f"allowed: {', '.join(sorted(fields)) or 'none'}"
            )
