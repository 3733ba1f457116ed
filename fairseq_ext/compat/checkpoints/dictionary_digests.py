"""Digests of a task's dictionaries, which a checkpoint records of its training."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, Any, Mapping

from .configurations import options_of, options_of_task, stored_group

if TYPE_CHECKING:
    from fairseq.data import Dictionary
    from fairseq.tasks import FairseqTask

logger = logging.getLogger(__name__)

# where a checkpoint has them, in its "extra_state"
ENTRY = "dictionaries"


def digests(task: FairseqTask) -> dict[str, str]:
    """Return {language or side: "number of symbols:digest"} of the dictionaries of a task."""
    return {name: digest(dictionary) for name, dictionary in dictionaries(task).items()}


def stored_digests(state: Mapping[str, Any]) -> dict[str, str]:
    """Return {language or side: digest} that a checkpoint records; empty where it records none."""
    stored = (state.get("extra_state") or {}).get(ENTRY)
    return dict(stored) if isinstance(stored, Mapping) else {}


def digest(dictionary: Dictionary) -> str:
    """Return a dictionary's size and the start of the SHA-256 of its symbols in their order."""
    # surrogatepass: bytes that were no UTF-8 may have become symbols that UTF-8 has no bytes for
    text = "\n".join(dictionary.symbols).encode("utf-8", "surrogatepass")
    # 128 bits tell them apart
    return f"{len(dictionary.symbols)}:{hashlib.sha256(text).hexdigest()[:32]}"


def dictionaries(task: FairseqTask) -> dict[str, Dictionary]:
    """Return {language or side: dictionary} of a task; empty for tasks without any.

    Tasks of several languages have a mapping `dictionaries` (ours) or `dicts` (fairseq's); other
    tasks have at most a source and a target.
    """
    for attribute in ("dictionaries", "dicts"):
        mapping = getattr(task, attribute, None)
        if isinstance(mapping, Mapping):
            return {str(lang): entry for lang, entry in mapping.items() if _has_symbols(entry)}
    cfg = getattr(task, "cfg", None) or getattr(task, "args", None)
    sides = {}
    for side in ("source", "target"):
        try:
            dictionary = getattr(task, f"{side}_dictionary", None)
        except NotImplementedError:  # FairseqTask's own properties raise it
            continue
        if _has_symbols(dictionary):
            sides[str(getattr(cfg, f"{side}_lang", None) or side)] = dictionary
    return sides


def trained_languages(task: Any, stored: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the source and the target language of a model of one direction; None where unknown.

    A training without -s and -t takes them from the names in its data folder, and its options do
    not tell them: the names of its dictionaries do, that of the source first.

    Args:
        task: the group of the checkpoint's configuration.
        stored: {language or side: digest} of the checkpoint.
    """
    options = options_of(task)
    source, target = options.get("source_lang"), options.get("target_lang")
    languages = [name for name in stored if name not in ("source", "target")]
    if (source is None or target is None) and "source_lang" in options and len(languages) == 2:
        return languages[0], languages[1]
    return source, target


def warn_of_reversed_languages(path: str, state: Mapping[str, Any], task: FairseqTask) -> None:
    """Warn of a model of one direction that is to translate in the other one.

    With a joined dictionary it fits, and writes anything.
    """
    stored = stored_group(state, "task")
    if isinstance(stored, str) or "lang_pairs" in options_of(stored):
        return
    source, target = trained_languages(stored, stored_digests(state))
    options = options_of_task(task)
    asked = options.get("source_lang"), options.get("target_lang")
    if source != target and None not in asked and asked == (target, source):
        logger.warning(
            f"{path}: trained for {source}-{target}, and -s and -t ask for {target}-{source}, "
            "which it translates only if its training text had both directions"
        )


def _has_symbols(entry: object) -> bool:
    """Return True for a dictionary of fairseq, or what behaves like one."""
    return isinstance(getattr(entry, "symbols", None), list)


def different_dictionary(task: FairseqTask, stored: Mapping[str, str]) -> str | None:
    """Return the first language whose dictionary has as many symbols as in training, but others.

    Args:
        task: of the run at hand.
        stored: {language or side: digest} of the checkpoint.

    None if all agree, and for checkpoints that record nothing. Dictionaries of another size are not
    compared here: their parameters do not fit, or a tool has enlarged them.
    """
    for name, dictionary in dictionaries(task).items():
        present, trained = digest(dictionary), stored.get(name)
        same_size = trained is not None and trained.split(":")[0] == present.split(":")[0]
        if same_size and present != trained:
            return name
    return None
