"""Reads the file of an experiment.

    [variables]              strings, which may use others as $NAME or ${NAME}; one may also hold
                             a block of commands that several systems share
    [data]                   raw: the files of RAW; commands: what makes DATA of them
    [systems.NAME]           train, evaluate: commands; needs: systems of the same seed to be
                             trained before; seeds: with 2, of two seeds of its own, $SEED_1 and
                             $SEED_2; label: its name in the results; fields: more about it
                             in the results; like: another system that it copies; each: the
                             variables that NAME stands for several systems of, beside those of the
                             system that it is like; NAMES IN CAPITALS: variables of this system
    compare                  pairs of labels whose differences are tested
    published                [system, metric, value] of a paper, to stand beside what is measured
    like                     what this file only changes: another file of its folder, or an
                             experiment such as dual/own

A block of commands has one command a line; an indented line continues the one before. A line that
is empty when its variables are filled in is no command. A file whose name begins with _ is no
experiment: it holds what others are `like`.
"""

import fnmatch
import itertools
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any, Iterator, Mapping, Optional, Sequence

from . import UsageError
from .schema import check_file, check_use

if sys.version_info >= (3, 11):
    import tomllib
else:  # the same library under the name that it has on PyPI
    import tomli as tomllib

FOLDER = Path(__file__).resolve().parent.parent
# what the runner sets: folders, the run's folder, seeds, and processes of fairseq-preprocess
SEEDS = ("SEED_1", "SEED_2")  # of a system with `seeds = 2`
# an option, and the variable of its value
OPTION = re.compile(r"(?<!\S)(--[a-z][\w-]*)(?:[ =]\$\{?([A-Z][A-Z_0-9]*))?")
PLACES = ("RAW", "DATA", "RUNS", "RUN", "SEED", *SEEDS, "WORKERS")


@dataclass(frozen=True)
class System:
    """What can be trained with a seed.

    train, evaluate: commands, in which only PLACES are not yet filled in. needs: names of systems.
    fields: {column of the results: value}. seeds: how many runs of each of ``needs`` a run reads.
    """

    name: str
    label: str
    train: tuple[str, ...]
    evaluate: tuple[str, ...]
    needs: tuple[str, ...]
    fields: Mapping[str, str]
    seeds: int = 1

    def seeds_needed(self, seed: int) -> list[int]:
        """Return the seeds of the systems that a run needs; of two runs, they have none in common.

        The same seed, or with ``seeds`` = 2 the seeds 1 and 2 for 1, 3 and 4 for 2. Raises
        UsageError for 0, which has none.
        """
        if self.seeds > 1 and seed < 1:
            raise UsageError(f"SEED {seed}: {self.name} is of {self.seeds} seeds; allowed: 1 ...")
        return list(range(self.seeds * (seed - 1) + 1, self.seeds * seed + 1))


@dataclass(frozen=True)
class Experiment:
    """The contents of a file.

    name: folder and file, such as dual/multi30k. raw: files of RAW, also without their .gz.
    prepare: the commands that make DATA. compare: pairs of labels (baseline, system). published:
    (label, metric, value) of a paper. settings: {option of a command: variables that hold it}.
    """

    name: str
    path: Path
    title: str
    raw: tuple[str, ...]
    prepare: tuple[str, ...]
    systems: Mapping[str, System]
    compare: Sequence[tuple[str, str]] = field(default_factory=tuple)
    published: Sequence[tuple[str, str, float]] = field(default_factory=tuple)
    settings: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def system(self, name: str) -> System:
        """Return the system called `name`. Raises UsageError with all that there are."""
        if name not in self.systems:
            allowed = ", ".join(self.systems)
            raise UsageError(f"SYSTEM {name!r} is not in {self.path}; allowed: {allowed}")
        return self.systems[name]

    def matching(self, pattern: str) -> list[str]:
        """Return the names that match a pattern such as stock.*; UsageError where none does."""
        return fnmatch.filter(self.systems, pattern) or [self.system(pattern).name]


def variables_of_options(content: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return {option: variables that hold it or its value} of the content of a file.

    A variable holds an option as in `SIZE = "--layers 2"`, or its value as in `--layers $SIZE`.
    """
    variables = content.get("variables", {})
    texts = [(name, str(value)) for name, value in variables.items()]
    texts += [("", str(content.get("data", {}).get("commands", "")))]
    for table in content.get("systems", {}).values():
        texts += [(key if key.isupper() else "", str(value)) for key, value in table.items()]
    settings: dict[str, list[str]] = {}
    for name, text in texts:
        for option, value in OPTION.findall(text):
            holder = value or name
            if holder and holder not in (*PLACES, *settings.get(option, [])):
                settings.setdefault(option, []).append(holder)
    return settings


def names() -> list[str]:
    """Return the names of the experiments beside this package."""
    return sorted(
        str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.glob("*/[!_]*.toml")
    )


def locate(name: str) -> tuple[str, Path]:
    """Return (name, file) of an experiment, given by its name or as a .toml file."""
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise UsageError(f"EXPERIMENT {name}: there is no such file")
        return path.stem, path
    if name not in names():
        raise UsageError(f"EXPERIMENT {name!r} is neither a .toml file nor one of: {names()}")
    return name, FOLDER / f"{name}.toml"


def commands_of(block: str) -> list[str]:
    """Return the commands of a block; indented lines continue a command."""
    commands: list[str] = []
    for line in block.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0].isspace() and commands:
            commands[-1] += " " + line.strip()
        else:
            commands.append(line.strip())
    return commands


class Variables:
    """Variables that may use each other; `filled` puts them into commands.

    values: {name: text}. where: the place that errors name. Raises UsageError for one of PLACES,
    which the runner sets.
    """

    def __init__(self, values: Mapping[str, Any], where: str):
        self.values = {name: str(value) for name, value in values.items()}
        self.where = where
        taken = [name for name in PLACES if name in values]
        if taken:
            raise UsageError(f"{where}: {taken[0]} is set by run.py; name the variable otherwise")

    def filled(self, text: str, within: tuple[str, ...] = ()) -> str:
        """Return the text with every variable but PLACES replaced; $$ stays for the shell.

        Raises UsageError for a variable that does not exist or contains itself.
        """

        def value(match: "re.Match[str]") -> str:
            name = match.group("named") or match.group("braced")
            if match.group("escaped") is not None or name in PLACES:
                return match.group()
            if name is None or name not in self.values:
                allowed = ", ".join([*PLACES, *self.values])
                raise UsageError(f"{self.where}: {match.group()}...: allowed: {allowed}, and $$")
            if name in within:
                raise UsageError(f"{self.where}: ${name} contains itself")
            return self.filled(self.values[name], (*within, name))

        return Template.pattern.sub(value, text)

    def commands(self, block: str) -> tuple[str, ...]:
        """Return the commands of a block; those that a variable holds are commands of their own."""
        return tuple(commands_of(self.filled(block)))


def choices(values_of: Mapping[str, Sequence[Any]], where: str) -> Iterator[dict[str, Any]]:
    """Yield every combination of values, {variable: value}.

    values_of: {variable: values}. The key "SOURCE-TARGET" has values such as "de-en" and stands for
    two variables; a plus sign joins variables in the same way.
    """
    # a sign that the key does not have is part of a value
    signs = ["".join(sign for sign in "+-" if sign in key) for key in values_of]
    for combination in itertools.product(*values_of.values()):
        chosen: dict[str, Any] = {}
        for key, sign, value in zip(values_of, signs, combination):
            variables = re.split(f"[{sign}]", key) if sign else [key]
            values = re.split(f"[{sign}]", str(value)) if sign else [value]
            if len(values) != len(variables):
                raise UsageError(
                    f"{where}: each: {key} = {value!r} has {len(values)} parts; allowed: "
                    f"{len(variables)}, with {' or '.join(sign)} between them and in none of them "
                    "(a language has no dash: pt_BR, not pt-BR)"
                )
            chosen.update(zip(variables, values))
        yield chosen


def inherited(
    tables: Mapping[str, Mapping[str, Any]], name: str, where: str, before: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the table of a system with what it takes from the one it is `like`."""
    table = tables[name]
    base = table.get("like")
    if base is None:
        return dict(table)
    if base not in tables or base in (*before, name):
        raise UsageError(f"{where}: like = {base!r}: allowed: another system, not like this one")
    copied = inherited(tables, base, where, (*before, name))
    copied.pop("label", None)
    # the other's variables that this name has as well
    shared = {
        key: values
        for key, values in copied.get("each", {}).items()
        if any(f"${variable}" in name for variable in re.split("[-+]", key))
    }
    return {**copied, **table, "each": {**shared, **table.get("each", {})}}


def check_needs(
    systems: Mapping[str, System], system: System, path: Path, before: tuple[str, ...] = ()
) -> None:
    """Raise UsageError where a system needs one that there is not, or itself through others."""
    for name in system.needs:
        where = f"{path}: [systems.{system.name}] needs {name}"
        if name not in systems:
            raise UsageError(f"{where}, which is none; allowed: {', '.join(systems)}")
        if name in (*before, system.name):
            raise UsageError(f"{where}, which needs it; allowed: systems that do not need this one")
        check_needs(systems, systems[name], path, (*before, system.name))


def systems_of(content: Mapping[str, Any], path: Path) -> dict[str, System]:
    """Return {name: system} of a file, with every combination of `each`."""
    systems: dict[str, System] = {}
    tables = content.get("systems", {})
    for pattern in tables:
        where = f"{path}: [systems.{pattern}]"
        table = inherited(tables, pattern, where)
        shared = {**content.get("variables", {}), **{k: v for k, v in table.items() if k.isupper()}}
        common = Variables(shared, where)
        values_of = {
            key: [common.filled(str(value)) for value in values]
            for key, values in table.get("each", {}).items()
        }
        for chosen in choices(values_of, where):
            variables = Variables({**shared, **chosen}, where)
            name = variables.filled(pattern)
            if name in systems:
                raise UsageError(f"{where}: there is already a system {name}")
            systems[name] = System(
                name,
                variables.filled(table.get("label", pattern)),
                variables.commands(table.get("train", "")),
                variables.commands(table.get("evaluate", "")),
                tuple(map(variables.filled, table.get("needs", []))),
                {key: variables.filled(text) for key, text in table.get("fields", {}).items()},
                table.get("seeds", 1),
            )
    for system in systems.values():
        check_needs(systems, system, path)
        peer = next(other for other in systems.values() if other.label == system.label)
        if peer.fields != system.fields:
            raise UsageError(
                f"{path}: [systems.{system.name}] fields: {peer.name} has others and the same label"
            )
    return systems


def changed_file(path: Path, name: str) -> Path:
    """Return the file that `path` is `like`: one of its folder, else an experiment of that name.

    Raises UsageError where there is none.
    """
    for folder in (path.parent, FOLDER):
        other = folder / f"{name}.toml"
        if other.is_file() and other.resolve() != path.resolve():
            return other
    raise UsageError(
        f"{path}: like = {name!r}: allowed: another file of its folder, or one of: {names()}"
    )


def parsed(path: Path) -> dict[str, Any]:
    """Return what a file itself says. Raises UsageError for what is not allowed in it."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        # of the reader's words, those for a variable that was added to the end a second time
        reason = str(error).replace("Cannot overwrite a value", "a name that has a value already")
        raise UsageError(f"{path}: {reason}") from error
    check_file(content, path)
    return content


def read_file(path: Path, before: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Return the content of a file, with what it takes from the one that it is `like`.

    Its variables, the keys of [data] and its systems are added to those of the other file, or
    stand for those of the same name. before: the files that are like this one.
    """
    content = parsed(path)
    if "like" not in content:
        return content
    other, files = changed_file(path, content["like"]), (*before, path.resolve())
    if other.resolve() in files:
        raise UsageError(
            f"{path}: like = {content['like']!r}: {other} is itself like {path}; allowed: a file "
            "that is not"
        )
    base = read_file(other, files)
    for table in ("variables", "data", "systems"):
        content[table] = {**base.get(table, {}), **content.get(table, {})}
    return {**base, **content}


def read_experiment(name: str) -> Experiment:
    """Return the experiment called `name`, or of that .toml file.

    Raises UsageError with file and key for what is missing, unknown or contradictory.
    """
    name, path = locate(name)
    content = read_file(path)
    data: Mapping[str, Any] = content.get("data", {})
    variables = Variables(content.get("variables", {}), f"{path}: [data]")
    experiment = Experiment(
        name,
        path,
        content.get("title", name),
        tuple(map(variables.filled, data.get("raw", []))),
        variables.commands(data.get("commands", "")),
        systems_of(content, path),
        tuple((variables.filled(a), variables.filled(b)) for a, b in content.get("compare", [])),
        tuple((label, metric, value) for label, metric, value in content.get("published", [])),
        variables_of_options(content),
    )
    labels = {system.label for system in experiment.systems.values()}
    for pair in experiment.compare:
        unknown: Optional[str] = next((label for label in pair if label not in labels), None)
        if unknown:
            raise UsageError(f"{path}: compare: {unknown!r}; allowed: {', '.join(sorted(labels))}")
    check_use(parsed(path), content, path)
    return experiment
