"""The settings of an experiment, and the systems that can be trained with them."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Tuple

from recipe_tools import RecipeError
from recipe_tools.settings import SPLITS, number, read_config, warmup_of

FOLDER = Path(__file__).resolve().parent.parent
AUXILIARY = ("ner", "tree", "amr")
# the paper's four in its order of merit, then what they do not separate: one layer instead of
# three, alone and with everything shared, and the routed unit without other tasks
MODELS = ("single", "full", "partial", "routed", "shallow", "shallow_full", "unit")
LONG = {f"{kind}_long": kind for kind in MODELS}  # with more updates
KINDS = (*MODELS, *LONG)
ALONE = ("single", "shallow", "unit")  # translation is their only task
NUMBERS = (
    *("source_vocabulary", "target_vocabulary", "graph_vocabulary"),
    *("longest", "valid_sentences", "seed"),
)
REQUIRED = {
    "data": {"source", "target", *SPLITS, "sizes", *NUMBERS},
    "ner": set(SPLITS),
    "tree": {"file"},
    "amr": {"whole", "train", "test"},
    "model": {"options", *MODELS},
    "train": {"updates", "long", "validations", "warmup", "options"},
    "evaluate": {"options", "auxiliary"},
}


@dataclass(frozen=True)
class System:
    """A trainable system: its kind, the size of the training data, its language pairs.

    model: the kind whose options it has. updates: of its training.
    """

    kind: str
    size: str
    pairs: Tuple[str, ...]
    model: str
    updates: int


@dataclass(frozen=True)
class Settings:
    """The contents of the .cfg file.

    numbers: those of [data]. sizes: {name: updates}. long: times the updates of LONG.
    warmup: percentage of the updates.
    words: {(section, key): words of the command line}.
    text: {section: {key: value}} as in the file.
    """

    name: str
    source: str
    target: str
    numbers: Dict[str, int]
    sizes: Dict[str, int]
    validations: int
    long: int
    warmup: int
    words: Dict[Tuple[str, str], Tuple[str, ...]]
    text: Dict[str, Dict[str, str]]

    @property
    def main(self):
        return f"{self.source}-{self.target}"

    @property
    def pairs(self):
        """Return the translation task and the auxiliary ones, such as "en-ner"."""
        return (self.main, *(f"{self.source}-{task}" for task in AUXILIARY))

    @property
    def files(self):
        return {split: self.text["data"][split] for split in SPLITS}

    def relevant(self, kind):
        """Return the settings that results of a kind of system depend on."""
        keys = "options", LONG.get(kind, kind)
        model_options = {key: value for key, value in self.text["model"].items() if key in keys}
        return {**self.text, "model": model_options, "name": self.name}

    def system(self, name):
        """Return the ``System`` called KIND.SIZE. Raises RecipeError with what is allowed."""
        kind, _, size = name.partition(".")
        if kind not in KINDS or size not in self.sizes:
            raise RecipeError(
                f"SYSTEM {name!r} is unknown; allowed: ({'|'.join(KINDS)}).({'|'.join(self.sizes)})"
            )
        model = LONG.get(kind, kind)
        pairs = self.pairs[:1] if model in ALONE else self.pairs
        updates = self.sizes[size] * (self.long if kind in LONG else 1)
        return System(kind, size, pairs, model, updates)


def read_sizes(path, parser):
    """Return {size: updates}. Raises RecipeError unless there are equally many of both."""
    sizes = parser["data"]["sizes"].split()
    updates = parser["train"]["updates"].split()
    for word in [*(size for size in sizes if size != "all"), *updates]:
        if not word.isdecimal() or int(word) < 1:
            raise RecipeError(f"{path}: {word}; allowed: numbers of at least 1, and all as a size")
    if len(sizes) != len(updates) or len(set(sizes)) != len(sizes) or not sizes:
        raise RecipeError(
            f"{path}: [train] updates = {' '.join(updates)}; allowed: one number for each of "
            f"[data] sizes = {' '.join(sizes)}"
        )
    return dict(zip(sizes, map(int, updates)))


def read_settings(name):
    """Return the `Settings` called `name`, a file or one of this recipe's .cfg files.

    Raises RecipeError with the file and the key.
    """
    path, parser = read_config(name, FOLDER, REQUIRED, {})
    keys = [("model", key) for key in ("options", *MODELS)]
    keys += [("train", "options"), ("evaluate", "options"), ("evaluate", "auxiliary")]
    return Settings(
        name=path.stem,
        source=parser["data"]["source"],
        target=parser["data"]["target"],
        numbers={key: number(parser, path, "data", key) for key in NUMBERS},
        sizes=read_sizes(path, parser),
        validations=number(parser, path, "train", "validations"),
        long=number(parser, path, "train", "long"),
        warmup=warmup_of(parser, path),
        words={key: tuple(shlex.split(parser[key[0]][key[1]])) for key in keys},
        text={section: dict(parser[section]) for section in REQUIRED},
    )
