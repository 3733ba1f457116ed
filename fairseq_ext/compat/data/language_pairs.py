"""The languages of a translation that the options leave to the names of the files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.tasks.translation import TranslationConfig

BOTH = "--source-lang and --target-lang"


def language_pairs(folder: str) -> list[tuple[str, str]]:
    """Return the pairs of the files SPLIT.SRC-TGT.LANG of a folder, with any ending, sorted.

    Text of one language, as in train.de-None.de, is of no pair.
    """
    pairs = set()
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        parts = name.split(".")
        langs = parts[1].split("-") if len(parts) >= 3 else []
        if len(langs) == 2 and parts[2] in langs and "None" not in langs:
            pairs.add((langs[0], langs[1]))
    return sorted(pairs)


def inferred_pair(
    folder: str, source: str | None, target: str | None
) -> tuple[str | None, str | None]:
    """Return both languages, of which the options name one or none.

    Without files of a pair these are those of the options. Raises OptionError if the folder has
    none that fits, or several.
    """
    pairs = language_pairs(folder)
    if not pairs:
        return source, target
    option = f"--source-lang {source}" if source else f"--target-lang {target}"
    fitting = pairs
    if source or target:
        # fairseq reads the files of a pair in both directions
        either = {*pairs, *((second, first) for first, second in pairs)}
        fitting = sorted(pair for pair in either if source == pair[0] or target == pair[1])
    if len(fitting) == 1:
        return fitting[0]
    present = ", ".join("-".join(pair) for pair in pairs)
    if not fitting:
        raise OptionError(f"{option}: {folder} has no pair with it; allowed: those of {present}")
    if source or target:
        raise OptionError(f"{option}: {folder} has several pairs with it; give {BOTH}")
    raise OptionError(f"{folder} has several language pairs, {present}; give {BOTH}")


@patch(
    "fairseq.tasks.translation",
    because="fairseq 0.12.2: without --source-lang and --target-lang, the pair is that of the file "
    "which the file system lists first; --source-lang alone, or --target-lang alone, is ignored",
)
def languages_are_not_left_to_chance(module: PatchedModule) -> None:
    """Infer the pair where one alone fits."""
    setup = module.TranslationTask.setup_task.__func__

    def setup_task(cls: type, cfg: TranslationConfig, **kwargs: Any) -> Any:
        """Return the task."""
        if cfg.source_lang is None or cfg.target_lang is None:
            folder = module.utils.split_paths(cfg.data)[0]
            pair = inferred_pair(folder, cfg.source_lang, cfg.target_lang)
            cfg.source_lang, cfg.target_lang = pair
        return setup(cls, cfg, **kwargs)

    module.TranslationTask.setup_task = classmethod(setup_task)
