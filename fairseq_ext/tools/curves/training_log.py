"""Read the logs that fairseq-train writes: `--log-format simple` and `json`, stdout or --log-file.

A line with numbers is one of (the time, level and logger before it are there on stdout only):

    simple  epoch 002:     50 / 125 loss=3.1, ppl=8.57, num_updates=175, ...     while training
            epoch 002 | loss 3.3 | ppl 9.85 | num_updates 250 | ...              end of an epoch
            epoch 002 | valid on 'valid' subset | loss 2.9 | num_updates 250     validation
    json    {"epoch": 2, "update": 1.4, "loss": "3.1", "num_updates": "175", ...}
            {"epoch": 2, "train_loss": "3.3", "train_num_updates": "250", ...}
            {"epoch": 2, "valid_loss": "2.9", "valid_num_updates": "250", ...}
"""

import json
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from .. import UsageError

PREFIX = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \| [A-Z]+ \| [\w.]+ \| ")
INNER = re.compile(r"^epoch (\d+): +\d+ / \d+ (.*)$")
SUMMARY = re.compile(r"^epoch (\d+) \| (?:valid on '([^']+)' subset \| )?(.*)$")
# json keys of an end-of-epoch or validation line: the name of the split comes first
SPLIT_KEY = re.compile(r"^(.+?)_num_updates$")
# of --valid-subset train: what is measured while training has the name of the set alone
VALIDATED = "train, validated"
# bookkeeping that no one draws
UPDATES = "num_updates"
STAMP = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) \| ")
RESUMED = "| Loaded checkpoint "
LOADED = re.compile(r"Loaded checkpoint .* \(epoch \d+ @ (\d+) updates\)$")
# a run that begins, perhaps again in the same log
BEGUN = "| No existing checkpoint found "


Point = Tuple[Any, Any]  # updates and a value, or updates and seconds
Curves = Dict[Tuple[str, str], List[Point]]
# split, updates, {metric: value}
Parsed = Tuple[str, int, Dict[str, float]]


class LoggedRun:
    """The numbers of one training run.

    curves: {(split, metric): [(updates, value), ...]} in the order of updates; split is "train"
        (values while training, or the epochs' averages where the log has no others), or the name
        of a validation subset, ``VALIDATED`` for the training set.
    times: [(updates, seconds since the run began), ...], empty where the log does not tell.
    """

    def __init__(self, label: str, curves: Curves, times: Sequence[Point] = ()):
        self.label = label
        self.curves = curves
        self.times = list(times)

    def metrics(self) -> List[str]:
        """Return the names of all metrics, in the order in which the log has them."""
        return list(dict.fromkeys(metric for _, metric in self.curves))


def read_run(path: Union[str, Path], label: str) -> LoggedRun:
    """Return the run whose log file is at `path`, under the name `label`.

    Where a run was resumed, what it had trained beyond its checkpoint is left out: the updates that
    it repeats, and those that it no longer has. A run that begins anew in the same log replaces the
    one before it.
    Raises UsageError, with file and line: no such file, a damaged line, no line with numbers. A
    line may be cut off in the middle, as a killed process leaves it, if it is the last one with
    numbers, or the last before the run was resumed or began anew.
    """
    try:
        # the ends of lines are newlines here; U+2028 and others stand within translations
        lines = Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise UsageError(f"LOG {path}: {error.strerror}") from error
    if not lines[-1]:  # behind the last newline
        lines.pop()
    points: Curves = {}
    times: List[Point] = []
    clock = Clock()
    damage = ""  # the last line that could not be read, until another one with numbers is
    for number, line in enumerate(lines, start=1):
        back = clock.read(line)
        if back:
            place = f"{path}, line {number}"
            warn(f"{place}: the clock was set back by {back:.0f} seconds, which count as none")
        start = starting_updates(line)
        if start is not None:
            if damage:
                warn(f"{damage}, cut off before a new start; it is left out")
                damage = ""
            for curve in (times, *points.values()):
                cut(curve, start)
        try:
            parsed = parse_line(line)
        except ValueError as error:
            if damage:
                raise UsageError(damage) from error
            damage = f"{path}, line {number}: {error}: {line[:80]!r}"
            continue
        if parsed is not None:
            if damage:
                raise UsageError(damage)
            split, updates, values = parsed
            clock.mark()  # a line with numbers: the run was training up to here
            append(times, updates, clock.seconds)
            for metric, value in values.items():
                append(points.setdefault((split, metric), []), updates, value)
    points = {key: curve for key, curve in points.items() if curve}
    if not points:
        raise UsageError(
            f"{path}: none of its {len(lines)} lines is a training or validation line of "
            "fairseq-train; expected a log written with --log-format simple or json"
        )
    stamped = clock.seconds is not None
    return LoggedRun(
        label, choose_training_values(points), times if stamped else wall_times(points)
    )


def warn(text: str) -> None:
    """Print a warning."""
    print(f"warning: {text}", file=sys.stderr)


class Clock:
    """The seconds of a run by its time stamps, without the pauses before it was resumed.

    seconds: up to the last stamped line; None before the first one.
    """

    def __init__(self) -> None:
        self.seconds: Any = None
        self._marked: Optional[float] = None
        self._now: Optional[datetime] = None

    def read(self, line: str) -> float:
        """Go on to the time of this line, if it has one; return by how much it was set back.

        Stamps are local times, which go back at the end of summer time.
        """
        match, back = STAMP.match(line), 0.0
        if not match:
            return back
        now = datetime.fromisoformat(match[1])
        if self._now is None or BEGUN in line:
            self.seconds = 0.0
        # goes on where the run was at work last; what was trained after its checkpoint counts twice
        elif RESUMED in line and self._marked is not None:
            self.seconds = self._marked
        else:
            passed = (now - self._now).total_seconds()
            self.seconds += max(passed, 0.0)
            back = max(-passed, 0.0)
        self._now = now
        return back

    def mark(self) -> None:
        """Note that the run was at work here: what follows up to a resumption is a pause."""
        self._marked = self.seconds


def wall_times(points: Curves) -> List[Point]:
    """Return [(updates, seconds)] of fairseq's `wall`; [] if it stands still, as after resuming."""
    walls = dict(points.get(("epoch", "wall"), ()))  # {updates: seconds}
    walls.update(points.get(("inner", "wall"), ()))
    times = sorted(walls.items())
    # several runs in one log: the clock falls
    grows = all(before <= after for (_, before), (_, after) in zip(times, times[1:]))
    return times if grows and times and times[-1][1] > 0 else []


def append(curve: List[Point], updates: int, value: Any) -> None:
    """Add a point; points at or after `updates` are of an interrupted run and are dropped.

    Args:
        curve: [(updates, value), ..] in rising order of updates, which it keeps.
        updates, value: the new point.
    """
    cut(curve, updates - 1)
    curve.append((updates, value))


def cut(curve: List[Point], updates: int) -> None:
    """Drop the points after so many updates."""
    while curve and curve[-1][0] > updates:
        curve.pop()


def starting_updates(line: str) -> Optional[int]:
    """Return the updates that a run has behind it that this line begins, None for other lines."""
    resumed = LOADED.search(line)
    if resumed:
        return int(resumed[1])
    return 0 if BEGUN in line else None


def choose_training_values(points: Curves) -> Curves:
    """Return the curves with "train" from values while training, else from epochs' averages."""
    curves = {}
    for (split, metric), curve in points.items():
        if split == "epoch":
            # finer, and not averaged over an epoch in which the model has changed
            if ("inner", metric) in points:
                continue
            split = "train"
        curves["train" if split == "inner" else split, metric] = curve
    return curves


def parse_line(line: str) -> Optional[Parsed]:
    """Return (split, updates, {metric: value}) of a line, or None for a line without numbers.

    split is "inner" while training, "epoch" for an epoch's average, else the validation subset.
    Raises ValueError for a line that begins like one of fairseq's and cannot be read.
    """
    text = PREFIX.sub("", line.rstrip())  # --log-file has no prefix
    if text.startswith('{"epoch"'):
        return parse_json(text)
    match = INNER.match(text)
    if match:
        return with_updates("inner", (item.partition("=") for item in match[2].split(", ")))
    match = SUMMARY.match(text)
    if match:
        split = VALIDATED if match[2] == "train" else match[2] or "epoch"
        return with_updates(split, (item.partition(" ") for item in match[3].split(" | ")))
    return None


def with_updates(split: str, items: Iterable[Tuple[str, str, str]]) -> Parsed:
    """Return what `parse_line` does, of (name, separator, text) triples."""
    values = {}
    for name, separator, text in items:
        if not separator:
            raise ValueError(f"{name!r} has no value")
        try:
            values[name.strip()] = float(text)
        except (ValueError, TypeError):
            continue  # "None" or null, words or lists: nothing to draw
    if UPDATES not in values:
        raise ValueError(f"{UPDATES} is missing")
    return split, int(values.pop(UPDATES)), values


def parse_json(text: str) -> Parsed:
    """Return what `parse_line` does for a line of `--log-format json`."""
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid json ({error.msg})") from error
    record.pop("epoch")
    if UPDATES in record:
        record.pop("update", None)  # the epoch and the part of it that is done
        return with_updates("inner", ((name, "=", text) for name, text in record.items()))
    splits = [match[1] for match in map(SPLIT_KEY.match, record) if match]
    if not splits:
        raise ValueError(f"{UPDATES} is missing")
    prefix = splits[0] + "_"  # valid_loss -> loss
    items = ((name[len(prefix) :], "=", text) for name, text in record.items())
    if splits[0] != "train":
        return with_updates(splits[0], items)
    # both lines have the speed in words, that of an epoch in updates as well
    is_validated = "train_wps" in record and "train_ups" not in record
    return with_updates(VALIDATED if is_validated else "epoch", items)
