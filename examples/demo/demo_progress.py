"""Run a command with its output in a file and one line of progress on the screen."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional, TextIO, Tuple

TAIL_LINES = 15
Clock = Callable[[], float]  # seconds
Describe = Callable[[str], Optional[str]]  # a line of output, as the user is shown it


class StepFailed(Exception):
    """A step of the demo failed; the message says which one and where to look."""


def duration(seconds: float) -> str:
    """Return minutes and seconds, such as "2:05"."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Progress:
    """The state of the present step: one line, rewritten on a terminal, repeated elsewhere.

    Nothing is ever silent for longer than ``interval`` seconds while ``show`` is called at least
    once a second.
    """

    def __init__(self, step: str, stream: Optional[TextIO] = None, clock: Clock = time.monotonic):
        self.step, self.stream, self.clock = step, stream or sys.stdout, clock
        self.terminal = self.stream.isatty()
        self.interval = 0.5 if self.terminal else 5.0
        self.start = clock()
        self.text, self.width, self.shown = "", 0, self.start

    def elapsed(self) -> float:
        """Return the seconds since the step began."""
        return self.clock() - self.start

    def show(self, text: Optional[str] = None, force: bool = False) -> None:
        """Take over the text, unless it is None, and print the line when it is due."""
        if text is not None:
            self.text = text
        now = self.clock()
        if not force and now - self.shown < self.interval:
            return
        self.shown = now
        line = f"  {self.step} {duration(self.elapsed())}  {self.text}".rstrip()
        if self.terminal:
            self.stream.write("\r" + line.ljust(self.width))
            self.width = len(line)
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def close(self, text: str) -> None:
        """Print the last state of the step."""
        self.show(text, force=True)
        if self.terminal:
            self.stream.write("\n")
            self.stream.flush()


class TrainingStatus:
    """Turns lines of ``fairseq-train --log-format json`` into a readable line.

    :param updates: --max-update
    :param pairs: directions whose validation BLEU is shown
    """

    def __init__(self, updates: int, pairs: List[str], clock: Clock = time.monotonic):
        self.updates, self.pairs, self.clock = updates, pairs, clock
        self.first: Optional[Tuple[int, float]] = None
        self.loss, self.bleu = "", ""

    def __call__(self, line: str) -> Optional[str]:
        """Return the new status, or None when the line has no numbers."""
        start = line.find('{"epoch"')
        if start < 0:
            return None
        record = json.loads(line[start:])
        scores = [record.get(f"valid_{pair}_bleu") for pair in self.pairs]
        if all(scores):
            self.bleu = "".join(f", {p} {s} BLEU" for p, s in zip(self.pairs, scores))
        done = int(record.get("num_updates", record.get("valid_num_updates", 0)))
        if not done:
            return None
        if "loss" in record:
            self.loss = f", loss {record['loss']}"
        return f"update {done}/{self.updates}{self.loss}{self.bleu}{self._remaining(done)}"

    def _remaining(self, done: int) -> str:
        """Return the remaining time, from the speed since the first line (for resumed runs)."""
        if self.first is None:
            self.first = (done, self.clock())
        seen, since = done - self.first[0], self.clock() - self.first[1]
        if not seen:
            return ""
        return f", about {duration((self.updates - done) * since / seen)} to go"


def _forward(stream: TextIO, lines: "queue.Queue[Optional[str]]") -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def run_command(
    step: str,
    command: List[str],
    log: Path,
    env: Dict[str, str],
    describe: Describe = lambda line: None,
) -> str:
    """Run ``command`` with a line of progress; its output goes to the file ``log``.

    :param describe: turns a line of output into the text to show, or None to keep the last one
    :returns: the last text shown
    :raises StepFailed: when the command ends non-zero, after printing the end of its output
    """
    progress = Progress(step)
    progress.show("running", force=True)
    lines: "queue.Queue[Optional[str]]" = queue.Queue()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=env,
        encoding="utf-8",
        errors="replace",
    )
    threading.Thread(target=_forward, args=(process.stdout, lines), daemon=True).start()
    tail: List[str] = []
    try:
        with open(log, "w", encoding="utf-8") as file:
            while True:
                try:
                    line = lines.get(timeout=0.5)
                except queue.Empty:
                    progress.show()
                    continue
                if line is None:
                    break
                file.write(line)
                tail = [*tail, line][-TAIL_LINES:]
                progress.show(describe(line))
        status = process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    if status:
        progress.close("failed; the end of its output:")
        sys.stdout.write("".join(tail))
        raise StepFailed(f"{step} ended with status {status}; its output is in {log}")
    progress.close("done" if not progress.text or progress.text == "running" else progress.text)
    return progress.text
