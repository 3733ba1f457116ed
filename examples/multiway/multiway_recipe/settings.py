"""The settings of an experiment: one .cfg file, read for all systems alike."""

import itertools
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Tuple

from recipe_tools import RecipeError
from recipe_tools.settings import SPLITS, choice, number, read_config, warmup_of

FOLDER = Path(__file__).resolve().parent.parent
# sections that tell how long to train: the key of the length
LENGTHS = {
    "train": "updates_per_pair",
    "tune": "updates_per_pair",
    "low_resource": "updates_per_pair",
    "long": "updates_per_pair",
    "language_model": "updates",
    "fusion": "updates_per_pair",
}
REQUIRED = {
    "data": {"languages", *SPLITS, "vocabulary", "seed"},
    "model": {"arch", "options"},
    "train": {"updates_per_pair", "validations", "warmup", "options"},
    "tune": {"updates_per_pair", "validations", "options"},
    "low_resource": {
        *("pairs", "percent", "sentences", "options"),
        *("updates_per_pair", "validations"),
    },
    "long": {"updates_per_pair", "validations"},
    "zero_shot": {"pair", "pivot", "sentences"},
    "language_model": {"arch", "updates", "validations", "options"},
    "fusion": {"arch", "updates_per_pair", "validations", "options"},
    "evaluate": {"options"},
}
SHARES = ("disjoint", "all")


def reverse(direction):
    """Return the opposite direction: "de-en" -> "en-de"."""
    source, target = direction.split("-")
    return f"{target}-{source}"


@dataclass(frozen=True)
class Settings:
    """The contents of the .cfg file.

    files: {train, valid, test: name of the raw files without the language}.
    low_pairs, percents: which pairs are cut to what; share: {"low_resource", "zero_shot": whether
    the pairs have "disjoint" sentences or each has "all"}.
    zero_pair, pivot: the pair without training data, and the language between its two.
    arch: {"model", "language_model", "fusion": name}. options: {section: words of the command
    line}. updates, validations: {section: number}, per pair. warmup: percentage of all updates.
    text: {section: {key: value}} as in the file.
    """

    name: str
    languages: Tuple[str, ...]
    files: Dict[str, str]
    vocabulary: int
    seed: int
    low_pairs: Tuple[str, ...]
    percents: Tuple[int, ...]
    share: Dict[str, str]
    zero_pair: str
    pivot: str
    arch: Dict[str, str]
    options: Dict[str, Tuple[str, ...]]
    updates: Dict[str, int]
    validations: Dict[str, int]
    warmup: int
    text: Dict[str, Dict[str, str]]

    @property
    def pairs(self):
        """Return every two languages once, in the order of `languages`, such as "de-en"."""
        return tuple("-".join(pair) for pair in itertools.combinations(self.languages, 2))

    @property
    def directions(self):
        """Return both directions of every pair, in the order of the training schedule."""
        return tuple(direction for pair in self.pairs for direction in (pair, reverse(pair)))

    @property
    def low_directions(self):
        return tuple(direction for pair in self.low_pairs for direction in (pair, reverse(pair)))

    def relevant(self, sections):
        """Return the settings that results depend on: data, model, training, `sections`."""
        included = ("data", "model", "train", "evaluate", *sections)
        # which other pairs and sizes there are changes nothing for one of them
        return {
            "name": self.name,
            **{
                section: {
                    key: value
                    for key, value in self.text[section].items()
                    if key not in ("pairs", "percent")
                }
                for section in included
            },
        }


def read_pairs(path, section, key, words, allowed):
    """Return the words if all are `allowed` pairs. Raises RecipeError for another word."""
    for word in words:
        if word not in allowed:
            raise RecipeError(f"{path}: [{section}] {key} = {word}; allowed: {', '.join(allowed)}")
    return tuple(dict.fromkeys(words))


def read_percents(path, text):
    """Return whole percentages. Raises RecipeError for anything else."""
    for word in text.split():
        if not (word.isdigit() and 1 <= int(word) <= 100):
            raise RecipeError(
                f"{path}: [low_resource] percent = {word}; allowed: whole numbers from 1 to 100"
            )
    return tuple(sorted({int(word) for word in text.split()}))


def read_languages(path, text):
    """Return at least three different languages without a dash in their names."""
    languages = tuple(text.split())
    if len(set(languages)) < max(3, len(languages)) or "-" in text:
        raise RecipeError(
            f"{path}: [data] languages = {text}; allowed: three or more different names without "
            "a dash"
        )
    return languages


def read_settings(name):
    """Return the `Settings` called `name`, a file or one of this recipe's .cfg files.

    Raises RecipeError with the file and the key.
    """
    path, parser = read_config(name, FOLDER, REQUIRED, {})
    languages = read_languages(path, parser["data"]["languages"])
    pairs = tuple("-".join(pair) for pair in itertools.combinations(languages, 2))
    low, zero = parser["low_resource"], parser["zero_shot"]
    (zero_pair,) = read_pairs(path, "zero_shot", "pair", [zero["pair"]], pairs)
    pivots = [language for language in languages if language not in zero_pair.split("-")]
    shares = {
        section: choice(parser, path, section, "sentences", SHARES)
        for section in ("low_resource", "zero_shot")
    }
    return Settings(
        name=path.stem,
        languages=languages,
        files={split: parser["data"][split] for split in SPLITS},
        vocabulary=number(parser, path, "data", "vocabulary"),
        seed=number(parser, path, "data", "seed"),
        low_pairs=read_pairs(path, "low_resource", "pairs", low["pairs"].split(), pairs),
        percents=read_percents(path, low["percent"]),
        share=shares,
        zero_pair=zero_pair,
        pivot=choice(parser, path, "zero_shot", "pivot", pivots),
        arch={key: parser[key]["arch"] for key in ("model", "language_model", "fusion")},
        options={
            section: tuple(shlex.split(parser[section]["options"]))
            for section, keys in REQUIRED.items()
            if "options" in keys
        },
        updates={key: number(parser, path, key, length) for key, length in LENGTHS.items()},
        validations={key: number(parser, path, key, "validations") for key in LENGTHS},
        warmup=warmup_of(parser, path),
        text={section: dict(parser[section]) for section in REQUIRED},
    )
