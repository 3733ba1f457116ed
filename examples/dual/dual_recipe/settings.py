"""The settings of an experiment: one .cfg file, read for all systems alike."""

import configparser
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Tuple

from . import RecipeError

FOLDER = Path(__file__).resolve().parent.parent
SPLITS = ("train", "valid", "test")
REQUIRED = {
    "data": {"source", "target", *SPLITS, "vocabulary"},
    "model": {
        "dual_arch",
        "stock_arch",
        "layers",
        "embed_dim",
        "ffn_embed_dim",
        "attention_heads",
    },
    "train": {"options"},
    "evaluate": {"average", "options"},
}
OPTIONAL = {"data": {"subword_lines"}, "evaluate": {"average_by"}}


@dataclass(frozen=True)
class Settings:
    """What the .cfg file says.

    files: {train, valid, test: name of the raw files without the language}.
    sizes: {layers, embed_dim, ffn_embed_dim, attention_heads}.
    train_options, evaluate_options: words of the command lines of fairseq-train, -generate.
    average: how many of the last checkpoints are averaged, counted by epochs or updates.
    subword_lines: lines from which the subword model is learnt; 0 = all.
    """

    name: str
    source: str
    target: str
    files: Dict[str, str]
    vocabulary: int
    subword_lines: int
    dual_arch: str
    stock_arch: str
    sizes: Dict[str, int]
    train_options: Tuple[str, ...]
    average: int
    average_by: str
    evaluate_options: Tuple[str, ...]

    @property
    def languages(self):
        return (self.source, self.target)

    @property
    def directions(self):
        """Both directions, such as ("de-en", "en-de")."""
        return (f"{self.source}-{self.target}", f"{self.target}-{self.source}")

    @property
    def systems(self):
        """Names of what can be trained: the dual model and one stock model per direction."""
        return ("dual", *(f"stock.{direction}" for direction in self.directions))

    def directions_of(self, system):
        """The directions that `system` translates. Raises RecipeError for an unknown system."""
        if system not in self.systems:
            raise RecipeError(f"SYSTEM {system!r} is unknown; allowed: {', '.join(self.systems)}")
        return self.directions if system == "dual" else (system.split(".", 1)[1],)


def locate(name):
    """Path of the settings `name`: a file, or the name of a .cfg file beside the scripts."""
    path = Path(name)
    if path.is_file():
        return path
    path = FOLDER / f"{name}.cfg"
    if path.is_file():
        return path
    known = ", ".join(sorted(found.stem for found in FOLDER.glob("*.cfg")))
    raise RecipeError(f"--recipe {name} is neither a file nor one of: {known}")


def check_keys(parser, path):
    """Raise RecipeError where a key is missing or unknown (a misspelt one would do nothing)."""
    for section, required in REQUIRED.items():
        present = set(parser[section]) if parser.has_section(section) else set()
        allowed = required | OPTIONAL.get(section, set())
        for key in sorted(required - present):
            raise RecipeError(f"{path}: section [{section}] has no {key}")
        for key in sorted(present - allowed):
            raise RecipeError(
                f"{path}: section [{section}] has {key}; allowed: {', '.join(sorted(allowed))}"
            )
    for section in sorted(set(parser.sections()) - set(REQUIRED)):
        raise RecipeError(f"{path}: section [{section}]; allowed: {', '.join(REQUIRED)}")


def number(parser, path, section, key, default=None):
    """A non-negative whole number of the file."""
    text = parser[section].get(key, default)
    if not text.isdigit():
        raise RecipeError(f"{path}: [{section}] {key} = {text}; allowed: a whole number >= 0")
    return int(text)


def read_settings(name):
    """The `Settings` called `name`, see `locate`. Raises RecipeError with the file and the key."""
    path = locate(name)
    parser = configparser.ConfigParser(interpolation=None)
    try:
        with open(path, encoding="utf-8") as lines:
            parser.read_file(lines)
    except configparser.Error as error:
        raise RecipeError(f"{path}: {error}") from error
    check_keys(parser, path)
    data, model, evaluate = parser["data"], parser["model"], parser["evaluate"]
    average_by = evaluate.get("average_by", "epochs")
    if average_by not in ("epochs", "updates"):
        raise RecipeError(f"{path}: average_by = {average_by}; allowed: epochs, updates")
    sizes = ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")
    return Settings(
        name=path.stem,
        source=data["source"],
        target=data["target"],
        files={split: data[split] for split in SPLITS},
        vocabulary=number(parser, path, "data", "vocabulary"),
        subword_lines=number(parser, path, "data", "subword_lines", "0"),
        dual_arch=model["dual_arch"],
        stock_arch=model["stock_arch"],
        sizes={size: number(parser, path, "model", size) for size in sizes},
        train_options=tuple(shlex.split(parser["train"]["options"])),
        average=number(parser, path, "evaluate", "average"),
        average_by=average_by,
        evaluate_options=tuple(shlex.split(evaluate["options"])),
    )
