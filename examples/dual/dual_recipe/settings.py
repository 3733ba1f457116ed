"""The settings of an experiment: one .cfg file, read for all systems alike."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Tuple

from recipe_tools import RecipeError
from recipe_tools.settings import SPLITS, choice, number, read_config

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
    "evaluate": {"average", "options"},
}
OPTIONAL = {"data": {"subword_lines", "train_lines"}, "evaluate": {"average_by"}}


@dataclass(frozen=True)
class Settings:
    """What the .cfg file says.

    files: {train, valid, test: name of the raw files without the language}.
    sizes: {layers, embed_dim, ffn_embed_dim, attention_heads}.
    train_options, evaluate_options: words of the command lines of fairseq-train, -generate.
    average: how many of the last checkpoints are averaged, counted by epochs or updates.
    subword_lines: lines from which the subword model is learnt; 0 = all.
    train_lines: how many lines of the training text are used, from its first on; 0 = all.
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


def read_settings(name):
    """The `Settings` called `name`, a file or one of this recipe's .cfg files.

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
    )
