"""What the logs of a run tell: its updates, their time, its curves, likelihoods of references."""

import math
import re
import statistics
from pathlib import Path
from typing import Sequence

from fairseq_ext.tools.curves.training_log import read_run
from fairseq_ext.tools.evaluate.inputs import read_lines, sentence_lines

from . import UsageError

EPOCH_END = re.compile(
    r"\| INFO \| train \| epoch (\d+) \|.*\| train_wall (\d+(?:\.\d+)?)(?: \||$)"
)
PLACE = re.compile(r"'save_dir': '([^']*)'")
# number of the line, words with the logarithms of their probabilities in brackets
WORDS = re.compile(r"(?m)\| INFO \| fairseq_cli\.eval_lm \| (\d+) (.* \[\S+\])$")
CHANCE = re.compile(r" \[(\S+)\](?=\t|$)")
RESUMED = re.compile(r"Loaded checkpoint .*\(epoch (\d+) @ (\d+) updates\)")
# of an epoch, in a line while training
LENGTH = re.compile(r"\| INFO \| train_inner \| epoch \d+: +\d+ / (\d+) ")
UPDATES = re.compile(r"\| num_updates (\d+)\b")
# Seconds: fairseq prints whole ones for each epoch. The sum over the epochs of a training tells the
# time of an update where it is longer than this, and an epoch's where the epoch itself is longer.
SHORTEST = 10
STOPPED = "Stopping training due to "  # the number of updates, or the time


def likelihoods(log: Path, count: int) -> list[str]:
    """Return "nats tokens" of each reference, the ends of the sentences included.

    log: of fairseq-generate --score-reference, which prints the base-2 logarithm of each token, or
    of fairseq-eval-lm --output-word-probs, which prints each word with its natural logarithm.
    """
    printed = "\n".join(read_lines(log))
    words = {int(number): text for number, text in WORDS.findall(printed)}
    if not words:
        lines = [list(map(float, text.split())) for text in sentence_lines(log, "P", count)]
        return [f"{-math.log(2) * math.fsum(line)!r} {len(line)}" for line in lines]
    if words.keys() != set(range(count)):
        raise UsageError(f"{log}: likelihoods of {len(words)} lines of {count}")
    chances = (list(map(float, CHANCE.findall(words[number]))) for number in range(count))
    return [f"{-math.fsum(line)!r} {len(line)}" for line in chances]


def epochs_of(log: Path) -> tuple[list[tuple[float, int]], int]:
    """Return ([(seconds, updates) of each epoch], all updates) of a log of fairseq-train.

    Only the updates count: no validation, no writing of checkpoints. An epoch that was resumed is
    left out because its time is that of its rest, and one behind an epoch whose line a kill cut off
    because its updates are not known. The log may hold several trainings, one after the other, that
    save to different folders. Raises UsageError when no epoch ended, nor the rest of one.
    """
    # folder of the checkpoints -> epoch -> (seconds, updates so far)
    trainings: dict[str, dict[int, tuple[float, int]]] = {}
    resumed: set[tuple[str, int]] = set()
    place = ""
    try:
        stream = open(log, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"cannot read {log}: {error.strerror}") from error
    with stream:
        for line in stream:
            folder = PLACE.search(line)
            place = folder.group(1) if folder else place
            epochs = trainings.setdefault(place, {})
            # at 0 updates it is another training's, to begin with
            loaded = RESUMED.search(line)
            if loaded and int(loaded.group(2)):
                resumed.add((place, int(loaded.group(1))))
            match = EPOCH_END.search(line)
            if match:
                updates = UPDATES.search(line)
                total = int(updates.group(1)) if updates else 0
                epochs[int(match.group(1))] = float(match.group(2)), total
    whole, every = [], 0
    for name, epochs in trainings.items():
        before = 0
        for epoch, (seconds, total) in sorted(epochs.items()):
            follows = epoch - 1 in epochs or epoch == min(epochs)
            if follows and (name, epoch) not in resumed:
                whole.append((seconds, total - before))
            before = total
        every += before
    if not any(trainings.values()):
        raise UsageError(f"{log}: it has no finished training epoch")
    return whole, every


def updates_per_epoch(log: Path) -> int:
    """Return the updates of a whole epoch of a log of fairseq-train.

    Lines while training tell them. In a log without these they are those of the longest epoch: the
    last may be cut off, none is longer than the others. Raises UsageError where it is the only one
    and --max-update or --stop-time-hours ended it.
    """
    epochs = epochs_of(log)[0]
    text = log.read_text(encoding="utf-8", errors="replace")
    lengths = [int(length) for length in LENGTH.findall(text)]
    if not lengths and (not epochs or len(epochs) == 1 and STOPPED in text):
        raise UsageError(
            f"{log}: its only epoch ended early, and no line while training tells how long it is; "
            "allowed: --by updates, or a smaller --log-interval in training"
        )
    return max(lengths or [updates for _, updates in epochs])


def timed(logs: Sequence[Path]) -> dict[str, float]:
    """Return the updates of all logs together, and the time of an update and of an epoch.

    Without a time where no epoch is whole: with many pairs, a training that goes on from another
    may end before its first one.
    """
    values: dict[str, float] = {"updates": 0}
    seconds = updates = 0.0
    medians = []
    for log in logs:
        whole, last = epochs_of(log)
        values["updates"] += last
        seconds += sum(time for time, _ in whole)
        updates += sum(count for _, count in whole)
        medians.append(statistics.median(time for time, _ in whole) if whole else 0)
    if seconds >= SHORTEST and updates:
        values["ms per update"] = 1000 * seconds / updates
    if all(medians) and sum(medians) >= SHORTEST * len(medians):
        values["seconds per epoch"] = sum(medians)
    return values


def curve(log: Path, metric: str) -> list[tuple[int, float]]:
    """Return [(updates, value)] of a metric of the validation set in a log of fairseq-train.

    Raises UsageError when the log has no such metric.
    """
    points = read_run(log, log.stem).curves.get(("valid", metric))
    if not points:
        raise UsageError(f"{log}: it has no validation with {metric}")
    return points
