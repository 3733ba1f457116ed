"""The settings of an experiment, and the systems that can be trained with them."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Tuple

from recipe_tools import RecipeError
from recipe_tools.settings import SPLITS, number, read_config, warmup_of

FOLDER = Path(__file__).resolve().parent.parent
# in the order of Table 6, each with all that stands above it: (name, BLEU in the paper)
ROWS = {
    "transformer": ("Transformer", "27.31"),
    "meta": ("+ meta-embeddings", "28.41"),
    "share": ("+ weight sharing", "28.58"),
    "norm": ("+ duo normalisation", "29.60"),
    "fusion": ("+ fusion layer", "29.68"),
    "vectors": ("+ P from word2vec", "-"),
    "transformer_long": ("Transformer, longer", "-"),
    "fusion_long": ("+ fusion layer, longer", "-"),
}
LONG = {"transformer_long": "transformer", "fusion_long": "fusion"}  # the same with more updates
REQUIRED = {
    "data": {"source", "target", *SPLITS, "vocabulary"},
    "rows": set(ROWS) - set(LONG),
    "train": {"updates", "long", "validations", "warmup", "options"},
    "evaluate": {"options"},
}
OPTIONAL = {"data": {"subword_lines", "train_lines"}}


@dataclass(frozen=True)
class Settings:
    """The contents of the .cfg file.

    subword_lines, train_lines: how many lines are used, 0 = all. long: times the updates of LONG.
    warmup: percentage of the updates. words: {row, "train" or "evaluate": words of the command
    line}. text: {section: {key: value}} as in the file.
    """

    name: str
    vocabulary: int
    subword_lines: int
    train_lines: int
    updates: int
    long: int
    validations: int
    warmup: int
    words: Dict[str, Tuple[str, ...]]
    text: Dict[str, Dict[str, str]]

    @property
    def source(self):
        return self.text["data"]["source"]

    @property
    def languages(self):
        return (self.source, self.text["data"]["target"])

    @property
    def directions(self):
        """Return both directions, such as ("de-en", "en-de")."""
        return ("-".join(self.languages), "-".join(self.languages[::-1]))

    @property
    def files(self):
        return {split: self.text["data"][split] for split in SPLITS}

    @property
    def systems(self):
        """Return the names of the systems: ROW.DIRECTION."""
        return tuple(f"{row}.{direction}" for direction in self.directions for row in ROWS)

    def parts(self, name):
        """Return (row, direction) of a system. Raises RecipeError with what is allowed."""
        if name not in self.systems:
            raise RecipeError(
                f"SYSTEM {name!r} is unknown; allowed: "
                f"({'|'.join(ROWS)}).({'|'.join(self.directions)})"
            )
        return tuple(name.split("."))

    def updates_of(self, row):
        """Return the updates of a row's training."""
        return self.updates * (self.long if row in LONG else 1)

    def relevant(self, name):
        """Return the settings that results of a system depend on."""
        row = self.parts(name)[0]
        train, options = dict(self.text["train"]), self.text["rows"][LONG.get(row, row)]
        if row not in LONG:
            del train["long"]
        return {**self.text, "rows": {row: options}, "train": train, "name": self.name}


def read_settings(name):
    """Return the `Settings` called `name`, a file or one of this recipe's .cfg files.

    Raises RecipeError with the file and the key.
    """
    path, parser = read_config(name, FOLDER, REQUIRED, OPTIONAL)
    words = {row: parser["rows"][LONG.get(row, row)] for row in ROWS}
    words.update({section: parser[section]["options"] for section in ("train", "evaluate")})
    return Settings(
        name=path.stem,
        vocabulary=number(parser, path, "data", "vocabulary"),
        subword_lines=number(parser, path, "data", "subword_lines", "0"),
        train_lines=number(parser, path, "data", "train_lines", "0"),
        updates=number(parser, path, "train", "updates"),
        long=number(parser, path, "train", "long"),
        validations=number(parser, path, "train", "validations"),
        warmup=warmup_of(parser, path),
        words={key: tuple(shlex.split(text)) for key, text in words.items()},
        text={section: dict(parser[section]) for section in REQUIRED},
    )
