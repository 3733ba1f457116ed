"""The settings of an experiment: one .cfg file, read for all systems alike."""

import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Dict, Tuple

from recipe_tools import RecipeError
from recipe_tools.settings import SPLITS, choice, command_part, number, read_config

FOLDER = Path(__file__).resolve().parent.parent
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
    "language_model": {"arch", "options"},
    "dsl": {"arch", "options"},
    "evaluate": {"average", "options"},
}
# evaluated only: what one system finds is ranked by both directions
RANKED = {"separate.inference": "stock.{}", "dual.inference": "dual"}
# both directions, beside the systems that are always compared
FURTHER = ("dsl", "dual.dsl", *RANKED)
OPTIONAL = {"data": {"subword_lines", "train_lines"}, "evaluate": {"average_by"}}


@dataclass(frozen=True)
class Settings:
    """The contents of the .cfg file.

    files: {train, valid, test: name of the raw files without the language}.
    sizes: {layers, embed_dim, ffn_embed_dim, attention_heads}.
    train_options, evaluate_options: words of the command lines of fairseq-train, -generate.
    average: how many of the last checkpoints are averaged, counted by epochs or updates.
    subword_lines: lines from which the subword model is learnt; 0 = all.
    train_lines: how many lines of the training text are used, from its first on; 0 = all.
    further: {"language_model", "dsl": {"arch": name, "options": words}}, of dual supervised
    learning.
    """

    name: str
    source: str
    target: str
    files: Dict[str, str]
    vocabulary: int
    subword_lines: int
    train_lines: int
    dual_arch: str
    stock_arch: str
    sizes: Dict[str, int]
    train_options: Tuple[str, ...]
    average: int
    average_by: str
    evaluate_options: Tuple[str, ...]
    further: Dict[str, Dict[str, object]]

    @property
    def languages(self):
        return (self.source, self.target)

    @property
    def directions(self):
        """Return both directions, such as ("de-en", "en-de")."""
        return (f"{self.source}-{self.target}", f"{self.target}-{self.source}")

    @property
    def systems(self):
        """Return the systems that are always compared: dual, and a stock one per direction."""
        return ("dual", *(f"stock.{direction}" for direction in self.directions))

    @property
    def language_models(self):
        """Return {language: name of the system that predicts its text}."""
        return {language: f"lm.{language}" for language in self.languages}

    def at_depth(self, system):
        """Return these settings with the number of layers of a system, such as dual@2.

        Raises RecipeError for a system or a number that there is not.
        """
        kind, mark, depth = system.partition("@")
        if not mark:
            return self
        if kind not in self.systems or not depth.isdigit() or int(depth) < 1:
            allowed = ", ".join(f"{name}@N" for name in self.systems)
            raise RecipeError(f"SYSTEM {system!r}: allowed: {allowed} with N layers, at least 1")
        if int(depth) == self.sizes["layers"]:
            raise RecipeError(f"SYSTEM {system!r}: the recipe has {depth} layers; name it {kind}")
        return replace(self, sizes={**self.sizes, "layers": int(depth)})

    def directions_of(self, system):
        """Return the directions that `system` translates. Raises RecipeError if it is unknown."""
        system, language_models = system.partition("@")[0], self.language_models.values()
        allowed = (*self.systems, *FURTHER, *language_models)
        if system not in allowed:
            raise RecipeError(f"SYSTEM {system!r} is unknown; allowed: {', '.join(allowed)}")
        if system in language_models:
            return ()
        return (system.split(".", 1)[1],) if system.startswith("stock.") else self.directions

    def relevant(self, system):
        """Return the settings that results of a system depend on."""
        values = asdict(self)
        if "dsl" not in system.split("."):
            del values["further"]
        return values


def read_settings(name):
    """Return the `Settings` called `name`, a file or one of this recipe's .cfg files.

    Raises RecipeError with the file and the key.
    """
    path, parser = read_config(name, FOLDER, REQUIRED, OPTIONAL)
    data, model, evaluate = parser["data"], parser["model"], parser["evaluate"]
    sizes = ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")
    return Settings(
        name=path.stem,
        source=data["source"],
        target=data["target"],
        files={split: data[split] for split in SPLITS},
        vocabulary=number(parser, path, "data", "vocabulary"),
        subword_lines=number(parser, path, "data", "subword_lines", "0"),
        train_lines=number(parser, path, "data", "train_lines", "0"),
        dual_arch=model["dual_arch"],
        stock_arch=model["stock_arch"],
        sizes={size: number(parser, path, "model", size) for size in sizes},
        train_options=tuple(shlex.split(parser["train"]["options"])),
        average=number(parser, path, "evaluate", "average"),
        average_by=choice(parser, path, "evaluate", "average_by", ("epochs", "updates"), "epochs"),
        evaluate_options=tuple(shlex.split(evaluate["options"])),
        further={name: command_part(parser, name) for name in ("language_model", "dsl")},
    )
