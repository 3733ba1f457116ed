"""Reading the .cfg file of a recipe: found by name, complete, without misspelt keys."""

import configparser
import shlex
from pathlib import Path

from . import RecipeError

SPLITS = ("train", "valid", "test")


def locate(name, folder):
    """Return the path of the settings `name`: a file, or the name of a .cfg file in `folder`."""
    path = Path(name)
    if path.is_file():
        return path
    path = folder / f"{name}.cfg"
    if path.is_file():
        return path
    allowed = ", ".join(sorted(file.stem for file in folder.glob("*.cfg")))
    raise RecipeError(f"--recipe {name} is neither a file nor one of: {allowed}")


def check_keys(parser, path, required, optional):
    """Raise RecipeError where a key is missing or unknown (a misspelt one would do nothing)."""
    for section, needed in required.items():
        present = set(parser[section]) if parser.has_section(section) else set()
        allowed = needed | optional.get(section, set())
        for key in sorted(needed - present):
            raise RecipeError(f"{path}: section [{section}] has no {key}")
        for key in sorted(present - allowed):
            raise RecipeError(
                f"{path}: section [{section}] has {key}; allowed: {', '.join(sorted(allowed))}"
            )
    for section in sorted(set(parser.sections()) - set(required)):
        raise RecipeError(f"{path}: section [{section}]; allowed: {', '.join(required)}")


def read_config(name, folder, required, optional):
    """Return (path, ConfigParser) of the settings `name`, see `locate`.

    required, optional: {section: set of keys}. Raises RecipeError with the file and the key.
    """
    path = locate(name, folder)
    parser = configparser.ConfigParser(interpolation=None)
    try:
        with open(path, encoding="utf-8") as lines:
            parser.read_file(lines)
    except configparser.Error as error:
        raise RecipeError(f"{path}: {error}") from error
    check_keys(parser, path, required, optional)
    return path, parser


def number(parser, path, section, key, default=None):
    """Return a non-negative whole number of the file."""
    text = parser[section].get(key, default)
    if not text.isdigit():
        raise RecipeError(f"{path}: [{section}] {key} = {text}; allowed: a whole number >= 0")
    return int(text)


def warmup_of(parser, path):
    """Return [train] warmup in per cent. Raises RecipeError unless some updates remain."""
    warmup = number(parser, path, "train", "warmup")
    if warmup >= 100:
        raise RecipeError(f"{path}: [train] warmup = {warmup}; allowed: whole numbers from 0 to 99")
    return warmup


def command_part(parser, section):
    """Return {"arch", "options"} of a section: an architecture and words of a command line."""
    options = tuple(shlex.split(parser[section]["options"]))
    return {"arch": parser[section]["arch"], "options": options}


def choice(parser, path, section, key, allowed, default=None):
    """Return the value of a key if it is one of the `allowed` words."""
    text = parser[section].get(key, default)
    if text not in allowed:
        raise RecipeError(f"{path}: {key} = {text}; allowed: {', '.join(allowed)}")
    return text
