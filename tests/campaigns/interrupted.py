"""Kill trainings of every system at random moments and within writes; compare with whole ones.

    python tests/campaigns/interrupted.py --kills 200 --in-writes 50 --into docs/reliability.md

Parameters, optimiser, position in the data, meters and every logged value must be those of a
training that nobody interrupted, to the last bit. Times and speeds are not compared.
"""

import argparse
import json
import platform
import random
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Dict, List, Tuple

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

import processes  # noqa: E402
import results  # noqa: E402
import torch  # noqa: E402
from common.checkpoints import compared, differences, is_time, meters  # noqa: E402
from scenarios import SCENARIOS, clear, command, write_corpora  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def records(log: Path) -> Dict:
    """{(what, update): [logged values]} of all trainings that wrote into a log."""
    entries: Dict = {}
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        tag = "train" if "| train | {" in line else "valid" if "| valid | {" in line else "inner"
        start = line.find('{"epoch"')
        if start < 0:
            continue
        try:
            values = json.loads(line[start:])
        except ValueError:  # the last line of a killed process
            continue
        values = {name: value for name, value in values.items() if not is_time(name)}
        prefix = {"train": "train_", "valid": "valid_", "inner": ""}[tag]
        entries.setdefault((tag, values.get(f"{prefix}num_updates")), []).append(values)
    return entries


class Scenario:
    """A training that nobody interrupts, and interrupted ones that are compared with it."""

    def __init__(self, name: str, corpora: Dict, folder: Path):
        self.name, self.corpora = name, corpora
        self.folder = folder / name.replace(" ", "_").replace(",", "")
        self.end: Tuple = ()

    def whole(self) -> None:
        """Train without interruption, the first time this is asked for."""
        if self.end:
            return
        save_dir = clear(self.folder / "whole")
        before = time.time()
        log = save_dir.parent / "whole.log"
        log.unlink(missing_ok=True)
        status = processes.wait(processes.start(command(self.name, self.corpora, save_dir), log))
        if status:
            raise RuntimeError(f"{self.name}: the whole training ended with {status}; see {log}")
        self.seconds = time.time() - before
        last = save_dir / "checkpoint_last.pt"
        self.end, self.log = (compared(last), meters(last)), records(log)

    def interrupted(self, kills: int, in_writes: int, rng: random.Random) -> Dict:
        """Train with so many kills, then to the end, and compare; the record of the results.

        A training that ends before a kill is compared as well, and another one is begun.
        """
        self.whole()
        result = {"training": self.name, "trainings": 1, "kills": 0, "in_writes": 0}
        result.update(compared=0, problems=[])
        save_dir, log = clear(self.folder / "killed"), self.folder / "killed.log"
        log.unlink(missing_ok=True)
        words = command(self.name, self.corpora, save_dir)
        plan = [None] * kills + [rng.randrange(10**9) for _ in range(in_writes)]
        rng.shuffle(plan)
        for number in plan:
            child = processes.start(words, log, number)
            seconds = None if number is not None else rng.uniform(0.1, self.seconds)
            status = processes.wait(child, seconds)
            if status is None:
                processes.kill(child)
                result["kills"] += 1
            elif status == -9:
                result["in_writes"] += 1
            elif status == 0:
                self.compare(save_dir, log, result)
                clear(save_dir)
                log.unlink()
                result["trainings"] += 1
            else:
                return self.failed(status, log, result)
        status = processes.wait(processes.start(words, log))
        if status:
            return self.failed(status, log, result)
        self.compare(save_dir, log, result)
        return result

    @staticmethod
    def failed(status: int, log: Path, result: Dict) -> Dict:
        """The record of a training that did not go on."""
        end = log.read_text(encoding="utf-8", errors="replace")[-2000:]
        result["problems"].append(f"status {status}: {end}")
        return result

    def compare(self, save_dir: Path, log: Path, result: Dict) -> None:
        """Add to the record what differs."""
        last = save_dir / "checkpoint_last.pt"
        problems = differences(self.end, (compared(last), meters(last)))[:5]
        for path in save_dir.iterdir():
            if path.name.startswith(".") or path.suffix != ".pt":
                problems.append(f"left behind: {path.name}")
        logged = records(log)
        result["compared"] += sum(map(len, logged.values()))
        result["problems"] += problems + log_differences(self.log, logged)


def log_differences(whole: Dict, logged: Dict) -> List[str]:
    """What a training that was interrupted has logged otherwise, or not at all.

    whole, logged: as of ``records``. A moment may be logged again after each kill. The record of an
    epoch is written after its checkpoint: a kill between both loses it.
    """
    lost = [moment for moment in whole if moment not in logged and moment[0] != "train"]
    problems = [f"logged {moment}: not by the interrupted training" for moment in lost]
    for moment, entries in logged.items():
        expected = whole.get(moment, [None])[0]
        for values in entries:
            if values != expected:
                problems.append(f"logged {moment}: {_changed(expected, values)}")
    return problems


def _changed(expected, values) -> str:
    if expected is None:
        return "not in the whole training"
    names = [name for name in {**expected, **values} if expected.get(name) != values.get(name)]
    return ", ".join(f"{name} {expected.get(name)} / {values.get(name)}" for name in names[:4])


def table(entries: List[Dict]) -> str:
    """The result, as the page has it."""
    import fairseq

    versions = f"Python {platform.python_version()}, torch {torch.__version__}, fairseq "
    total = [_total(entries, name) for name in ("kills", "in_writes")]
    lines = [
        f"Made by `make campaign` on {date.today()} ({versions}{fairseq.__version__}, one thread): "
        f"{total[0]} kills (SIGKILL) at random moments and {total[1]} within the write of a "
        "checkpoint. Compared with a training that nobody interrupted: parameters, optimiser, "
        "position in the data and every logged value, to the last bit.",
        "",
        "| training | trainings | kills | within a write | logged records compared | differences |",
        "|---|---|---|---|---|---|",
    ]
    for name in SCENARIOS:
        rows = [entry for entry in entries if entry["training"] == name]
        counts = [_total(rows, what) for what in ("trainings", "kills", "in_writes", "compared")]
        counts.append(sum(len(entry["problems"]) for entry in rows))
        if rows:
            lines.append(f"| {name} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def _total(entries: List[Dict], name: str) -> int:
    return sum(entry[name] for entry in entries)


def main() -> int:
    """Run the campaign; the status is 1 when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="kills at random moments")
    parser.add_argument("--in-writes", type=int, default=50, help="kills within a write")
    parser.add_argument("--only", default="", help="scenarios whose name has this in it")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments")
    parser.add_argument("--folder", type=Path, help="where to train; default: a temporary one")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "interrupted.jsonl")
    parser.add_argument("--into", type=Path, help="page that gets the table")
    args = parser.parse_args()
    entries = results.read(args.results)
    if _missing(entries, args):
        _campaign(args, entries)
    text = table(entries)
    print(text)
    problems = [(entry["training"], text) for entry in entries for text in entry["problems"]]
    for name, problem in problems:
        print(f"{name}: {problem}")
    if args.into:
        results.into_page(args.into, "interrupted", text)
    return int(bool(problems))


def _campaign(args, entries: List[Dict]) -> None:
    """Train until there are enough kills; a record a training, also in the file."""
    folder = args.folder or Path(tempfile.mkdtemp(prefix="interrupted-"))
    folder = clear(folder.resolve())
    torch.set_num_threads(1)
    import fairseq_cli.train  # noqa: F401  (once, for all processes)

    import fairseq_ext  # noqa: F401

    corpora = write_corpora(folder)
    scenarios = [Scenario(name, corpora, folder) for name in SCENARIOS if args.only in name]
    while left := _missing(entries, args):
        number = len(entries)
        rng = random.Random(f"{args.seed} {number}")
        scenario = scenarios[number % len(scenarios)]
        entries.append(scenario.interrupted(min(4, left[0]), min(1, left[1]), rng))
        results.append(args.results, entries[-1])
        print(entries[-1], flush=True)


def _missing(entries: List[Dict], args):
    """(kills, kills within a write) still to do; empty when all are done."""
    left = (
        max(0, args.kills - _total(entries, "kills")),
        max(0, args.in_writes - _total(entries, "in_writes")),
    )
    return left if any(left) else ()


if __name__ == "__main__":
    sys.exit(main())
