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
# the rows of the paper's Table 1
SYSTEMS = ("baseline", "noise", "norm", "zeros", "identity", "learnt")
WITH_BACKWARD = ("identity", "learnt")
REQUIRED = {
    "data": {"kind"},
    "model": {"options"},
    "systems": set(SYSTEMS),
    "train": {"updates", "validations", "warmup", "options"},
    "evaluate": {"checkpoint", "options"},
}
CHECKPOINTS = ("best", "last")
ANY_KIND = {"data": set().union(*(kind.KEYS for kind in KINDS.values()))}


@dataclass(frozen=True)
class Settings:
    """What the .cfg file says.

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

    def relevant(self, system):
        """The settings that results of a system depend on."""
        return {**self.text, "systems": self.text["systems"][system], "name": self.name}

    def numbers(self, key, count):
        """So many whole numbers, the value of a key of [data]."""
        words = self.data[key].split()
        if len(words) != count or not all(word.isdecimal() for word in words):
            raise self.error(key, f"{count} whole number{'s' if count > 1 else ''}")
        return [int(word) for word in words]

    def error(self, key, allowed):
        """A RecipeError about a key of [data]."""
        return RecipeError(f"{self.path}: [data] {key} = {self.data[key]}; allowed: {allowed}")


def check_system(name):
    """Raise RecipeError for a system that there is not."""
    if name not in SYSTEMS:
        raise RecipeError(f"SYSTEM {name!r} is unknown; allowed: {', '.join(SYSTEMS)}")


def read_settings(name):
    """The `Settings` called `name`, a file or one of this recipe's .cfg files.

    Raises RecipeError with the file and the key.
    """
    path, parser = read_config(name, FOLDER, REQUIRED, ANY_KIND)
    kind = KINDS[choice(parser, path, "data", "kind", KINDS)]
    check_keys(parser, path, {**REQUIRED, "data": {"kind", *kind.KEYS}}, {})
    warmup = number(parser, path, "train", "warmup")
    if warmup >= 100:
        raise RecipeError(f"{path}: [train] warmup = {warmup}; allowed: 0 to 99 per cent")
    words = {section: shlex.split(parser[section]["options"]) for section in REQUIRED
             if "options" in parser[section]}  # fmt: skip
    words.update({system: shlex.split(parser["systems"][system]) for system in SYSTEMS})
    return Settings(
        name=path.stem,
        path=path,
        kind=kind,
        data=dict(parser["data"]),
        updates=number(parser, path, "train", "updates"),
        validations=number(parser, path, "train", "validations"),
        warmup=warmup,
        checkpoint=choice(parser, path, "evaluate", "checkpoint", CHECKPOINTS),
        words={key: tuple(each) for key, each in words.items()},
        text={section: dict(parser[section]) for section in REQUIRED},
    )
