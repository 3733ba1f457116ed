"""Many short trainings, and how their processes end: none may abort after `done training`.

    python tests/campaigns/aborts.py --trainings 500 --into docs/reliability.md

Each is `fairseq-train` in a fresh process: an abort happens while the interpreter ends. Half of the
trainings load data in two more processes. Results are appended to --results: the campaign goes on
from there when it was cut off.
"""

import argparse
import collections
import os
import platform
import random
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Dict, List

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

import results  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
TINY = ["--arch", "transformer", "--share-all-embeddings", "--optimizer", "adam", "--lr", "1e-3"]
for _side in ("encoder", "decoder"):
    TINY += [f"--{_side}-layers", "1", f"--{_side}-embed-dim", "16", f"--{_side}-ffn-embed-dim"]
    TINY += ["16", f"--{_side}-attention-heads", "2"]
REST = ["--criterion", "cross_entropy", "--cpu", "--no-save", "--disable-validation"]


def train(corpus: Path, number: int) -> Dict:
    """Train once in a fresh process; the record of how it ended."""
    workers, updates = 2 * (number % 2), random.Random(number).randint(1, 3)
    command = Path(sys.executable).parent / "fairseq-train"
    words = [command, corpus, "-s", "xx", "-t", "yy", *TINY, *REST, "--batch-size", 8]
    words += ["--max-update", updates, "--num-workers", workers, "--save-dir", corpus / "none"]
    ended = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    record = {"workers": workers, "updates": updates, "status": ended.returncode}
    record["is_done"] = "done training" in ended.stdout
    if ended.returncode or not record["is_done"]:
        record["output"] = ended.stdout[-1000:]
    return record


def section(records: List[Dict]) -> str:
    """The result, as the page has it."""
    import fairseq
    import torch

    versions = f"Python {platform.python_version()}, torch {torch.__version__}, fairseq "
    lines = [
        f"Made by `make campaign` on {date.today()} ({versions}{fairseq.__version__}): "
        f"{len(records)} trainings of 1 to 3 updates, each in a fresh process.",
        "",
        "| `--num-workers` | trainings | status 0 | other statuses | without `done training` |",
        "|---|---|---|---|---|",
    ]
    for workers in sorted({record["workers"] for record in records}):
        ends = [record for record in records if record["workers"] == workers]
        counts = collections.Counter(record["status"] for record in ends)
        good = counts.pop(0, 0)
        others = ", ".join(f"{status}: {count}" for status, count in sorted(counts.items()))
        undone = sum(not record["is_done"] for record in ends)
        lines.append(f"| {workers} | {len(ends)} | {good} | {others or 'none'} | {undone} |")
    return "\n".join(lines)


def main() -> int:
    """Train until there are enough results; the status is 1 when any training ended badly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainings", type=int, default=500)
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "aborts.jsonl")
    parser.add_argument("--into", type=Path, help="page that gets the table")
    args = parser.parse_args()
    records = results.read(args.results)
    if len(records) < args.trainings:
        from conftest import ToyCorpus

        folder = Path(tempfile.mkdtemp(prefix="aborts-"))
        corpus = Path(ToyCorpus(folder / "toy").two)
    while len(records) < args.trainings:
        records.append(train(corpus, len(records)))
        results.append(args.results, records[-1])
    text = section(records)
    print(text)
    if args.into:
        results.into_page(args.into, "aborts", text)
    bad = [record for record in records if record["status"] or not record["is_done"]]
    for record in bad:
        print(record)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
