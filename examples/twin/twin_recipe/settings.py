"""The settings of an experiment: one .cfg file, read for all systems alike."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Dict, Tuple

from recipe_tools import RecipeError
from recipe_tools.settings import check_keys, choice, number, read_config

from .kinds import KINDS

FOLDER = Path(__file__).resolve().parent.parent
# the rows of the paper's Table 1, and the backward network without a penalty
SYSTEMS = ("baseline", "both", "noise", "norm", "zeros", "identity", "learnt")
WITH_BACKWARD = ("both", "identity", "learnt")
# (system, the one that it is compared with): the paper's claims beside those about the baseline
CONTRASTS = (
    ("identity", "zeros"),
    ("learnt", "zeros"),
    ("identity", "both"),
    ("learnt", "both"),
)
REQUIRED = {
    "data": {"kind"},
    "model": {"options"},
    "systems": set(SYSTEMS) - {"both"},
    "train": {"updates", "validations", "warmup", "options"},
    "evaluate": {"checkpoint", "options"},
}
CHECKPOINTS = ("best", "last")
OPTIONAL = {"systems": {"both"}}  # where no encoder learns for both networks it is the baseline
KEYS = set().union(*(kind.KEYS | kind.OPTIONAL_KEYS for kind in KINDS.values()))


@dataclass(frozen=True)
class Settings:
    """The contents of the .cfg file.

    kind: module of the data. data: {key: value} of [data]. updates, validations: of a training.
    warmup: percentage of the updates. checkpoint: which one is scored. words: {section, or name of
    a system: words of the command line}. text: {section: {key: value}} as in the file. path: its.
    """

    name: str
    path: Path
    kind: ModuleType
    data: Dict[str, str]
    updates: int
    validations: int
    warmup: int
    checkpoint: str
    words: Dict[str, Tuple[str, ...]]
    text: Dict[str, Dict[str, str]]

    @property
    def systems(self):
        """Return the systems of the file, in the order of the tables."""
        return tuple(system for system in SYSTEMS if system in self.text["systems"])

    @property
    def contrasts(self):
        """Return [(system, compared system)]: each system with the baseline, and CONTRASTS."""
        others = [both for both in CONTRASTS if set(both) <= set(self.systems)]
        return [(system, "baseline") for system in self.systems[1:]] + others

    def check_system(self, name):
        """Raise RecipeError for an unknown system."""
        if name not in self.systems:
            raise RecipeError(f"SYSTEM {name!r} is unknown; allowed: {', '.join(self.systems)}")

    def relevant(self, system):
        """Return the settings that results of a system depend on."""
        return {**self.text, "systems": self.text["systems"][system], "name": self.name}

    def numbers(self, key, count, default=None):
        """Return so many whole numbers, the value of a key of [data]."""
        words = self.data.get(key, default).split()
        if len(words) != count or not all(word.isdecimal() for word in words):
            raise self.error(key, f"{count} whole number{'s' if count > 1 else ''}")
        return [int(word) for word in words]

    def error(self, key, allowed):
        """Return a RecipeError about a key of [data]."""
        return RecipeError(f"{self.path}: [data] {key} = {self.data[key]}; allowed: {allowed}")


def read_settings(name):
    """Return the `Settings` called `name`, a file or one of this recipe's .cfg files.

    Raises RecipeError with the file and the key.
    """
    path, parser = read_config(name, FOLDER, REQUIRED, {**OPTIONAL, "data": KEYS})
    kind = KINDS[choice(parser, path, "data", "kind", KINDS)]
    required = {**REQUIRED, "data": {"kind", *kind.KEYS}}
    check_keys(parser, path, required, {**OPTIONAL, "data": kind.OPTIONAL_KEYS})
    warmup = number(parser, path, "train", "warmup")
    if warmup >= 100:
        raise RecipeError(f"{path}: [train] warmup = {warmup}; allowed: 0 to 99 per cent")
    words = {section: shlex.split(parser[section]["options"]) for section in REQUIRED
             if "options" in parser[section]}  # fmt: skip
    words.update({system: shlex.split(text) for system, text in parser["systems"].items()})
    return Settings(
        name=path.stem,
        path=path,
        kind=kind,
        data=dict(parser["data"]),
        updates=number(parser, path, "train", "updates"),
        validations=number(parser, path, "train", "validations"),
        warmup=warmup,
        checkpoint=choice(parser, path, "evaluate", "checkpoint", CHECKPOINTS),
        words={key: tuple(arguments) for key, arguments in words.items()},
        text={section: dict(parser[section]) for section in REQUIRED},
    )
