"""What the server accepts, and how it batches."""

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from dataclasses import dataclass, fields
from typing import Callable, Dict, Type, Union

from ...compat.user_errors import option_of
from .. import UsageError

Number = Union[int, float]


@dataclass(frozen=True)
class Limits:
    """The limits of a server.

    Attributes:
        max_body: bytes of a request.
        max_sentences: of a request.
        max_characters: of a sentence.
        max_beam: hypotheses that a search follows.
        max_queue: sentences of all requests that wait.
        timeout: seconds until a request is given up.
        batch_sentences: that are computed together.
        batch_tokens: that are computed together, with padding.
        max_wait: milliseconds that a batch waits for requests of connections without one.
    """

    max_body: int = 1_000_000
    max_sentences: int = 64
    max_characters: int = 2000
    max_beam: int = 16
    max_queue: int = 1024
    timeout: float = 60.0
    batch_sentences: int = 32
    batch_tokens: int = 4000
    max_wait: float = 5.0

    def __post_init__(self) -> None:
        """Raise UsageError for limits that no request could meet."""
        if self.max_sentences > self.max_queue:
            raise UsageError(
                f"--max-sentences {self.max_sentences}: allowed: at most --max-queue "
                f"{self.max_queue}"
            )


HELP = {
    "max_body": "bytes of a request; more is answered with 413",
    "max_sentences": "sentences of a request; more is answered with 422",
    "max_characters": "characters of a sentence; more is answered with 422",
    "max_beam": "largest beam of a request; more is answered with 422",
    "max_queue": "sentences of all clients that wait; more is answered with 503",
    "timeout": "seconds until a request is answered with 504",
    "batch_sentences": "sentences of all clients that are computed together",
    "batch_tokens": "tokens that are computed together, with padding",
    "max_wait": "milliseconds that a batch waits for requests of other open connections",
}


def number(least: Number, kind: Type[Number], most: float = math.inf) -> Callable[[str], Number]:
    """Return the type of an option: a finite number of the kind in these bounds."""

    def value_of(text: str) -> Number:
        try:
            value: float = kind(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most or math.isinf(value):  # NaN is in no bounds
            name = "a whole number" if kind is int else "a number"
            bounds = f"of at least {least}" if math.isinf(most) else f"from {least} to {most}"
            raise ArgumentTypeError(f"{text!r}; allowed: {name} {bounds}")
        return value

    return value_of


def add_limits(parser: ArgumentParser) -> None:
    """Add an option for each limit."""
    least: Dict[str, Number] = {"max_wait": 0, "timeout": 0.001}
    for entry in fields(Limits):
        kind: Type[Number] = int if isinstance(entry.default, int) else float
        parser.add_argument(
            option_of(entry.name),
            type=number(least.get(entry.name, 1), kind),
            default=entry.default,
            metavar="N",
            help=f"{HELP[entry.name]} (default {entry.default})",
        )


def limits_of(args: Namespace) -> Limits:
    """Return the limits that the command line says; UsageError where they exclude each other."""
    return Limits(**{entry.name: getattr(args, entry.name) for entry in fields(Limits)})
