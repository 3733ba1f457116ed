"""Options that fairseq 0.12.2 declares and reads nowhere."""

from __future__ import annotations

import functools
import logging
from typing import Any, Mapping

logger = logging.getLogger(__name__)

# {option as argparse stores it: what happens whatever its value}
UNREAD = {
    "anneal_eps": "--adadelta-eps stays as it is",
    "baseline_model": "no other model is loaded",
    "baseline_model_langs": "no other model is loaded",
    "fast_stat_sync": "the criterion decides how statistics are added up",
    "generate_one_by_one": "sentences are translated in batches",
    "no_early_stop": "a training ends early with --patience alone",
}


def warn_of_unread(values: Mapping[str, Any]) -> None:
    """Warn, once in a process, of each option that is set and does nothing."""
    for name, instead in UNREAD.items():
        if values.get(name):
            _warn(f"--{name.replace('_', '-')} does nothing in fairseq 0.12.2: {instead}")


@functools.lru_cache(maxsize=None)  # fairseq reads a command line several times
def _warn(text: str) -> None:
    logger.warning(text)
