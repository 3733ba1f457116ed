"""The settings of an experiment: one .cfg file, read for all systems alike."""

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Dict, NamedTuple, Tuple

from recipe_tools import RecipeError
from recipe_tools.settings import command_part, number, read_config

FOLDER = Path(__file__).resolve().parent.parent
TEXT, LABEL = "text", "label"
CLASSIFIER, GENERATOR = f"{TEXT}-{LABEL}", f"{LABEL}-{TEXT}"
REQUIRED = {
    "data": {"valid", "words", "vocabulary"},
    "model": {"options"},
    "train": {"interval", "patience", "first", "first_updates", "second", "second_updates"}
    | {"options"},
    "language_model": {"arch", "options"},
    "dsl": {"arch", "options"},
    "evaluate": {"options"},
}


class System(NamedTuple):
    """A trainable system: its directions, of which -s -t name the first, and its options.

    supervised: by dual supervised learning.
    """

    directions: Tuple[str, ...]
    words: Tuple[str, ...] = ()
    supervised: bool = False


SYSTEMS = {
    "classifier": System((CLASSIFIER,), ("--one-way",)),
    "generator": System((GENERATOR,), ("--one-way",)),
    "dual": System((CLASSIFIER, GENERATOR)),
    "dsl": System((CLASSIFIER, GENERATOR), supervised=True),
    "dual.dsl": System((CLASSIFIER, GENERATOR), supervised=True),
}
# of the texts, for the systems that are `supervised`
LANGUAGE_MODEL = f"lm.{TEXT}"


def system_named(name):
    """Return the `System` called `name`. Raises RecipeError for an unknown one."""
    if name not in SYSTEMS:
        allowed = ", ".join((*SYSTEMS, LANGUAGE_MODEL))
        raise RecipeError(f"SYSTEM {name!r} is unknown; allowed: {allowed}")
    return SYSTEMS[name]


class Stage(NamedTuple):
    """A part of the training: its optimiser's options, and its number of updates."""

    name: str
    words: Tuple[str, ...]
    updates: int


@dataclass(frozen=True)
class Settings:
    """The contents of the .cfg file.

    valid: reviews of the training set that validate. words: of a review that are used, from its
    first on; 0 = all. vocabulary: most frequent words. interval: updates between validations.
    patience: validations without improvement that end a stage. further: {"language_model", "dsl":
    {"arch": name, "options": words}}, of dual supervised learning.
    """

    name: str
    valid: int
    words: int
    vocabulary: int
    model_options: Tuple[str, ...]
    train_options: Tuple[str, ...]
    interval: int
    patience: int
    stages: Tuple[Stage, Stage]
    evaluate_options: Tuple[str, ...]
    further: Dict[str, Dict[str, object]]

    def relevant(self, system):
        """Return the settings that results of a system depend on."""
        values = asdict(self)
        if not SYSTEMS[system].supervised:
            del values["further"]
        return values


def read_settings(name):
    """Return the `Settings` called `name`, a file or one of this recipe's .cfg files.

    Raises RecipeError with the file and the key.
    """
    path, parser = read_config(name, FOLDER, REQUIRED, {})
    stages = tuple(
        Stage(
            stage,
            tuple(shlex.split(parser["train"][stage])),
            number(parser, path, "train", f"{stage}_updates"),
        )
        for stage in ("first", "second")
    )
    return Settings(
        name=path.stem,
        **{key: number(parser, path, "data", key) for key in ("valid", "words", "vocabulary")},
        model_options=tuple(shlex.split(parser["model"]["options"])),
        train_options=tuple(shlex.split(parser["train"]["options"])),
        interval=number(parser, path, "train", "interval"),
        patience=number(parser, path, "train", "patience"),
        stages=stages,
        evaluate_options=tuple(shlex.split(parser["evaluate"]["options"])),
        further={name: command_part(parser, name) for name in ("language_model", "dsl")},
    )
