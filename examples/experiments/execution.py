"""Runs the commands of an experiment: each once, in order, and again from where it stopped.

A run is RUNS/SYSTEM.SEED. Its commands.json tells which commands it was made with and how many of
them are done; what the commands print goes to train.log and evaluate.log beside it.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Any, Mapping, NoReturn, Optional, Sequence

from . import UsageError
from .definition import FOLDER, SEEDS, Experiment, System
from .files import fingerprint, locked, read_json, write_json
from .surroundings import note

ROOT = FOLDER.parent
STAMP = "prepared.json"
RECORD = "commands.json"
RECORDED = ("data", "train", "trained")  # the entries of every record
TRAINING = "fairseq-train"  # the command that more options are for
# One arithmetic thread: small models gain nothing from more. glibc hands every large buffer back
# to the kernel when it is freed; keeping them makes training on CPU about 1.4 times faster.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": "8589934592",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}
PLACE = re.compile(r"\$(\$|([A-Z]+(?:_[12])?)\b|\{([A-Z]+(?:_[12])?)\})")
# what ends an epoch or a validation, and warnings; that of fairseq-generate is about its own BLEU
# of tokens, which is not what score.py computes
SHOWN = re.compile(
    r"(?:\| (?:INFO \| (train|valid)|WARNING \| (?!fairseq_cli\.generate )[\w.]+) \|"
    r"|^warning:) (.*)"
)


class CommandError(UsageError):
    """A command has failed; its message has the end of the log, and `last` is the last line."""

    def __init__(self, message: str, last: str):
        super().__init__(message)
        self.last = last


def short(path: Path) -> str:
    """Return the path relative to the root of the clone, where the commands run, if it is in it."""
    absolute = Path(os.path.abspath(path))
    return str(absolute.relative_to(ROOT) if absolute.is_relative_to(ROOT) else absolute)


def placed(command: str, places: Mapping[str, Any]) -> str:
    """Return a command with its places filled in; $$ is a dollar sign for the shell.

    Raises UsageError for a place that the command cannot have, such as $RAW after [data].
    """

    def value(match: "re.Match[str]") -> str:
        if match.group(1) == "$":
            return "$"
        name = match.group(2) or match.group(3)
        if name not in places:
            raise UsageError(f"{command}: ${name} is not known here; allowed: {', '.join(places)}")
        return shlex.quote(str(places[name]))

    return PLACE.sub(value, command)


def with_options(commands: Sequence[str], options: Sequence[str]) -> list[str]:
    """Return the commands with more options for fairseq-train, which win over those before."""
    more = " ".join(["", *map(shlex.quote, options)]).replace("$", "$$")
    return [text + more if text.startswith(TRAINING) else text for text in commands]


def environment() -> dict[str, str]:
    """Return the variables of the commands; what the user has set wins."""
    variables = {**ENVIRONMENT, **os.environ}
    scripts = str(Path(sys.executable).parent)
    variables["PATH"] = scripts + os.pathsep + variables.get("PATH", "")
    return variables


def shown(line: str) -> Optional[str]:
    """Return what the terminal shows of a line of a command's log; None for most lines."""
    match = SHOWN.search(line)
    return f"{match[1] or 'warning:'} {match[2]}" if match else None


def execute(command: str, log: Path) -> None:
    """Run a line of shell in the root of the clone; its output is appended to the file `log`.

    Raises CommandError with the end of the log when it fails.
    """
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,  # a group of its own, which is stopped as a whole
    )
    assert process.stdout is not None
    tail: list[str] = []
    try:
        with open(log, "a", encoding="utf-8") as stream:
            for line in process.stdout:
                stream.write(line)
                stream.flush()
                tail = [*tail[-14:], line]
                text = shown(line)
                if text:
                    print(text, flush=True)
    except BaseException:
        # an interrupted experiment leaves no training behind
        os.killpg(process.pid, signal.SIGTERM)
        raise
    finally:
        status = process.wait()
    if status:
        raise CommandError(
            f"status {status} of the command {command}\n{''.join(tail)}the complete log is {log}",
            tail[-1] if tail else "",
        )


def changes(before: Sequence[str], now: Sequence[str]) -> str:
    """Return the words of commands that differ, marked + and -, each with its neighbours."""
    old, new = (" ; ".join(commands).split() for commands in (before, now))
    lines = list(unified_diff(old, new, lineterm="", n=1))[2:]
    return " ".join(line for line in lines if line[0] in "+- ")


def data_places(raw: Path, data: Path, workers: int) -> dict[str, Any]:
    """Return what stands for the places of the commands that prepare data."""
    return {"RAW": short(raw), "DATA": short(data), "WORKERS": workers}


class Run:
    """One system and seed. options: words for fairseq-train that win over the experiment's."""

    def __init__(
        self,
        system: System,
        seed: int,
        data: Path,
        runs: Path,
        options: Sequence[str] = (),
    ):
        self.system, self.data = system, data
        self.folder = runs / f"{system.name}.{seed}"
        seeds = system.seeds_needed(seed)
        # runs that its commands read
        self.needs = {
            name if len(seeds) == 1 else f"{name}.{other}": runs / f"{name}.{other}"
            for name in system.needs
            for other in seeds
        }
        self.places = {
            "DATA": short(data),
            "RUNS": short(runs),
            "RUN": short(self.folder),
            "SEED": seed,
            **dict(zip(SEEDS, seeds)),
        }
        self.commands = {
            "train": with_options(system.train, options),
            "evaluate": list(system.evaluate),
        }

    def lines(self, stage: str) -> list[str]:
        """Return the shell lines of train or evaluate."""
        return [placed(command, self.places) for command in self.commands[stage]]

    def made_of(self) -> str:
        """Return the digest of what DATA was made of. Raises UsageError where it is not ready."""
        stamp = read_json(self.data / STAMP)
        if not stamp:
            raise UsageError(f"--data {self.data} is not ready; run the system prepare first")
        return fingerprint(stamp)

    def trainings(self) -> dict[str, str]:
        """Return {name: digest of what it was trained with} of the needed runs that are there."""
        records = {
            name: read_json(folder / RECORD, RECORDED) for name, folder in self.needs.items()
        }
        return {
            name: fingerprint([record["data"], record.get("needs", {}), record["train"]])
            for name, record in records.items()
            if record
        }

    def record(self) -> dict[str, Any]:
        """Return what has been done. Raises UsageError where it was begun with something else."""
        record = read_json(self.folder / RECORD, RECORDED)
        data, trainings = self.made_of(), self.trainings()
        if not record:
            return {"data": data, "needs": trainings, "train": self.commands["train"], "trained": 0}
        if record["data"] != data:
            raise UsageError(
                f"{self.folder} was started with other data than --data {self.data} has now; "
                f"name another folder of runs, or remove {self.folder} and start again"
            )
        for name, training in record.get("needs", {}).items():
            if trainings.get(name, training) != training:
                raise UsageError(
                    f"{self.folder} was started with another {name} than {self.needs[name]}, which "
                    f"was trained again; remove {self.folder} and start again"
                )
        if record["train"] != self.commands["train"]:
            raise UsageError(
                f"{self.folder} was started with other options: "
                f"{changes(record['train'], self.commands['train'])}; allowed: the same, another "
                f"folder of runs, or remove {self.folder} and start again"
            )
        return record

    def scores(self) -> dict[str, tuple[int, int]]:
        """Return {file of a score: what changes when it is written}."""
        files = {path.name: path.stat() for path in (self.folder / "scores").glob("*.json")}
        return {name: (status.st_ino, status.st_mtime_ns) for name, status in files.items()}

    def do(self, record: dict[str, Any], stage: str, done: str) -> None:
        """Run the commands of a stage that are not done, and note each that is."""
        for number, line in enumerate(self.lines(stage)):
            if number >= record[done]:
                print(line, flush=True)
                before = self.scores()
                try:
                    execute(line, self.folder / f"{stage}.log")
                    record[done] = number + 1
                finally:
                    written = dict(self.scores().items() - before.items())
                    record.setdefault("scores", {}).update(dict.fromkeys(written, number))
                    write_json(self.folder / RECORD, record)

    def train(self) -> None:
        """Train, or go on with it."""
        with locked(self.folder):
            record = self.record()
            note(record)
            write_json(self.folder / RECORD, record)
            self.do(record, "train", "trained")

    def keep_same(self, record: dict[str, Any]) -> None:
        """Note of an earlier evaluation what the same commands did; remove the other scores."""
        before, now = record.get("evaluate", []), self.commands["evaluate"]
        same = next(
            (place for place, texts in enumerate(zip(before, now)) if len(set(texts)) > 1),
            min(len(before), len(now)),
        )
        evaluated = record.get("evaluated", 0)
        done = min(evaluated, same)
        # None: of a run of before the commands were noted
        scores = record.setdefault("scores", dict.fromkeys(self.scores()))
        if done < evaluated and None in scores.values():
            done = 0
        for name in [name for name, number in scores.items() if (number or 0) >= done]:
            (self.folder / "scores" / name).unlink(missing_ok=True)
            del scores[name]
        record.update(evaluate=now, evaluated=done)
        write_json(self.folder / RECORD, record)

    def evaluate(self) -> None:
        """Run the commands of the evaluation from the first that is new on."""
        with locked(self.folder):
            record = self.record()
            self.keep_same(record)
            self.do(record, "evaluate", "evaluated")

    def is_evaluated(self) -> bool:
        """True if the commands of this experiment were all run on this data."""
        if not (self.folder / RECORD).is_file():
            return False
        record = self.record()
        return (
            record["trained"] == len(self.commands["train"])
            and record.get("evaluate") == self.commands["evaluate"]
            and record["evaluated"] == len(self.commands["evaluate"])
        )


def in_order(
    experiment: Experiment, names: Sequence[str], seeds: Sequence[int]
) -> list[tuple[System, int]]:
    """Return the runs of these systems and seeds and those that they need, which come before."""
    ordered: list[tuple[System, int]] = []

    def add(system: System, seed: int) -> None:
        for needed in system.needs:
            for other in system.seeds_needed(seed):
                add(experiment.system(needed), other)
        if (system, seed) not in ordered:
            ordered.append((system, seed))

    for seed in seeds:
        for name in names:
            add(experiment.system(name), seed)
    return ordered


def stop(*_: object) -> NoReturn:
    """End like an interrupted program, so that the command that runs is stopped as well."""
    raise SystemExit(128 + signal.SIGTERM)
