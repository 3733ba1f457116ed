"""Type thousands of odd lines into fairseq-interactive, for every system that reads lines.

    python tests/campaigns/odd_lines.py --lines 10000 --into docs/reliability.md

Each line must have one answer, in order, and no session may end early. A warning must name the line
of each empty answer, and of no other.
"""

import argparse
import re
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

import results  # noqa: E402
import torch  # noqa: E402
from common import inprocess  # noqa: E402
from conftest import ToyCorpus  # noqa: E402
from inference.odd import odd_lines  # noqa: E402
from inference.test_interactive_command import EVERY, SEVERAL, answers, typed  # noqa: E402
from options.systems import SYSTEMS, Data  # noqa: E402

SEED = 7


class Folders:
    """New folders below one."""

    def __init__(self, root: Path):
        self.root, self.made = root, 0

    def __call__(self, name: str) -> Path:
        self.made += 1
        folder = self.root / f"{name}{self.made}"
        folder.mkdir(parents=True)
        return folder


def checkpoint(name: str, more: Sequence[object], data: Data, folders: Folders) -> Path:
    """A model of the system, one update old."""
    folder = folders("checkpoint")
    inprocess.train(
        *SYSTEMS[name].words(data[SYSTEMS[name].data], *more),
        *("--max-update", 1, "--batch-size", 8, "--disable-validation"),
        *("--save-dir", folder, "--no-epoch-checkpoints"),
    )
    return folder / "checkpoint_last.pt"


def row(entry: Tuple, count: int, data: Data, folders: Folders) -> Dict[str, object]:
    """What became of the lines in one system."""
    name, options = entry
    lines, several = odd_lines(count, SEED), "xx+zz" in options
    if several:  # some lines stay as they are, and do not have two texts
        lines[::2] = [b" ||| ".join(lines[start : start + 2]) for start in range(0, count, 2)]
    file = folders("lines") / "lines"
    file.write_bytes(b"\n".join(lines) + b"\n")
    path = checkpoint(name, SEVERAL if several else (), data, folders)
    start = time.time()
    batches = ("--buffer-size", 64, "--max-tokens", 2_000)
    output = typed(name, data, path, file, *options, *batches)
    numbers = answers(output)
    empty = {int(answer) for answer in re.findall(r"^H-(\d+)\t-inf\t$", output, re.M)}
    named = {int(line) - 1 for line in re.findall(r": line (\d+) is not translated: ", output)}
    direction = " ".join(map(str, options))
    return {
        "system": f"{name} {direction}".strip(),
        "answers": len(numbers),
        "in order": numbers == list(range(count)),
        "empty": len(empty),
        "not named": len(empty ^ named),
        "seconds": time.time() - start,
    }


def table(rows: List[Dict[str, object]], count: int) -> str:
    """The result, as the page has it."""
    lines = [
        f"Made by `tests/campaigns/odd_lines.py` on {date.today()} (torch {torch.__version__}): "
        f"{count:,} lines for each system. The lines are empty or have up to 5,000 words. They "
        "contain emoji, right-to-left text, combining and control characters, NUL, `</s>`, "
        "`<pad>`, tabs, other line separators, and bytes that are not UTF-8. If a line cannot be "
        "translated, for example because it is too long, its answer is empty and a warning names "
        "the line.",
        "",
        "| system | lines | answers | in order | of them empty |",
        "|---|---|---|---|---|",
    ]
    for entry in rows:
        order = "yes" if entry["in order"] else "no"
        cells = f"{entry['answers']:,} | {order} | {entry['empty']:,}"
        lines.append(f"| `{entry['system']}` | {count:,} | {cells} |")
    return "\n".join(lines)


def main() -> int:
    """Run all systems; the status is 1 when a line has not exactly one answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--only", default="", help="systems whose name has this in it")
    parser.add_argument("--into", type=Path, help="page that gets the table")
    args = parser.parse_args()
    torch.set_num_threads(1)
    folders = Folders(Path(tempfile.mkdtemp(prefix="odd-lines-")))
    data = Data(ToyCorpus(folders("toy")), folders)
    rows = []
    for entry in EVERY:
        if args.only in entry[0]:
            rows.append(row(entry, args.lines, data, folders))
            print(rows[-1], flush=True)
    text = table(rows, args.lines)
    print(text)
    if args.into:
        results.into_page(args.into, "odd lines", text)
    return 0 if all(entry["in order"] and not entry["not named"] for entry in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
