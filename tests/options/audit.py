"""Every option of fairseq's commands, in every task: does it work, and if not, is that said?

    python tests/options/audit.py            run all rows of audit.txt and write their verdicts
    python tests/options/audit.py --page     write the table of docs/reliability.md

A row is "command | words | verdict | note". The command runs without and with the words, on a very
small model of each system:

    changes     the log, the parameters, the files or the output are others
    keeps       they are the same, and the note says why
    refused     the command ends with an error that begins with the option

Lines "# stock COMMANDS | reason | options" list what is not run: the suite does not touch it.
"changes a,b; keeps c" holds for these systems.
"""

import argparse
import contextlib
import io
import re
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

import torch  # noqa: E402
from common import inprocess  # noqa: E402
from fairseq import options  # noqa: E402
from options.systems import SYSTEMS, Data, System  # noqa: E402

TABLE = HERE / "audit.txt"
PAGE = HERE.parents[1] / "docs" / "reliability.md"
BEGIN, END = "<!-- begin options -->", "<!-- end options -->"
COMMANDS = ("train", "generate", "interactive", "validate")
# columns of the summary on the page
KINDS = ("changes", "keeps", "refused", "by system", "stock")
NAMES = (
    "dual_transformer",
    "dual_supervised_transformer",
    "tagged_transformer",
    "dual_lstm_classifier",
    "multiway_gru",
    "routed_gru",
    "transformer",
    "twin_lstm",
    "duo_classifier",
    "twin_caption_lstm",
    "twin_speech_lstm",
)
TRIAL = ["--max-update", 3, "--log-interval", 100, "--max-tokens", 200]
TIMES = ("wps", "ups", "wall")
RESULT = re.compile(r"[STHDPAE]-\d|Generate \w+ with")
NUMBER = re.compile(r"-?\d+\.\d+(e-?\d+)?")
# an error of the data folder, not of an option: there is no test set of captions and recordings
NO_DATA = re.compile(r"test\.(bin|tsv)|Train splits should be named")


class Row(NamedTuple):
    """A line of the table."""

    command: str
    words: str
    verdict: str
    note: str

    def line(self) -> str:
        return " | ".join(self).rstrip(" |")


def rows() -> List[Row]:
    """Return the lines of audit.txt; "#" begins a comment."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    cells = [line.split(" | ") for line in lines if line.strip() and not line.startswith("#")]
    return [Row(*(cell.strip() for cell in (*line, "", "")[:4])) for line in cells]


class Group(NamedTuple):
    """Options that are not run: nothing of the suite reads or changes them."""

    commands: List[str]
    reason: str
    options: List[str]


def stock_groups() -> List[Group]:
    """Return the lines "# stock COMMANDS | reason | options" of audit.txt."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    cells = [line[len("# stock ") :].split(" | ") for line in lines if line.startswith("# stock ")]
    return [Group(first.split(","), reason, names.split()) for first, reason, names in cells]


def system(name: str) -> System:
    """Return a system; recordings with the suite's task."""
    kind = SYSTEMS[name]
    return kind._replace(task="transcription") if name == "twin_speech_lstm" else kind


def listed_options(command: str) -> Dict[str, str]:
    """Return {any spelling: main spelling} of all options that a command has for these systems."""
    parsers = {
        "train": options.get_training_parser,
        "generate": options.get_generation_parser,
        "interactive": lambda: options.get_generation_parser(interactive=True),
        "validate": options.get_validation_parser,
    }
    spellings = {}
    for action in parsers[command]()._actions:
        names = [name for name in action.option_strings if name.startswith("--")]
        spellings.update(dict.fromkeys(names, names[-1] if names else ""))
    return spellings


class Audit:
    """Runs commands on small models, which are made when first asked for.

    Args:
        data: {kind of data: folder}.
        folder: a new folder for what the runs write.
    """

    def __init__(self, data: Data, folder: Path):
        self.data, self.folder, self.number = data, folder, 0
        self.checkpoints: Dict[str, Path] = {}
        self.plain: Dict[Tuple[str, str], Any] = {}

    def verdict(self, row: Row, name: str) -> Optional[str]:
        """Return "changes", "keeps" or the words of an error; None where it does not apply."""
        key = row.command, name
        if row.command == "interactive" and not system(name).lines:
            return None
        if key not in self.plain:
            self.plain[key] = self.outcome(row.command, name, [])
        try:
            outcome = self.outcome(row.command, name, row.words.split())
        except (Exception, SystemExit) as error:  # noqa: BLE001  (whatever ends it is the verdict)
            text = str(error)
            if NO_DATA.search(text):
                return None
            named = any(text.startswith(word) for word in row.words.split() if word[:2] == "--")
            return "refused" if named else f"{type(error).__name__}: {text}"
        return "keeps" if same(outcome, self.plain[key]) else "changes"

    def outcome(self, command: str, name: str, words: List[str]) -> Any:
        """Return what a command leaves: its log or output, parameters and files."""
        self.number += 1
        folder = self.folder / str(self.number)
        folder.mkdir()
        more = [word.replace("{folder}", str(folder)) for word in words]
        more = [word.replace("{path}", str(self.checkpoint(name))) for word in more]
        if command == "train":
            return self.trained(name, folder, more)
        return self.read(command, name, folder, more)

    def trained(self, name: str, folder: Path, more: List[str]) -> Any:
        kind = system(name)
        words = kind.words(self.data[kind.data], *TRIAL, "--save-dir", folder, *more)
        records = without_times(inprocess.train(*words))
        files = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
        last, state = folder / "checkpoint_last.pt", {}
        if last.is_file():
            stored = torch.load(last, weights_only=True)
            state = {key: value for key, value in stored["model"].items() if "_float" not in key}
            files.append(f"optimiser {'last_optimizer_state' in stored}")
        return records, files, state

    def checkpoint(self, name: str) -> Path:
        """Return a checkpoint with random weights, so that its outputs differ."""
        if name not in self.checkpoints:
            kind, folder = system(name), self.folder / name
            words = ["--max-update", 1, "--max-tokens", 200, "--disable-validation"]
            inprocess.train(*kind.words(self.data[kind.data], *words, "--save-dir", folder))
            stored = torch.load(folder / "checkpoint_last.pt", weights_only=True)
            generator = torch.Generator().manual_seed(2)
            for key, value in stored["model"].items():
                if value.is_floating_point() and value.dim():
                    stored["model"][key] = 0.5 * torch.randn(value.shape, generator=generator)
            self.checkpoints[name] = folder / "random.pt"
            torch.save(stored, self.checkpoints[name])
        return self.checkpoints[name]

    def read(self, command: str, name: str, folder: Path, more: List[str]) -> Any:
        kind = system(name)
        path, data = self.checkpoint(name), self.data[kind.data]
        words = kind.inference_words(data, path, "--max-len-b", 12)
        if not {"--max-tokens", "--batch-size"} & set(more):
            words += ["--max-tokens", 300]
        if command == "validate":
            words = [data, "--task", kind.task, "--path", path, "--max-tokens", 300, *more]
            return without_times(inprocess.validate(*words)), []
        if command == "interactive":
            typed = folder / "typed.txt"
            typed.write_text("".join(f"{line}\n" for line in kind.lines), encoding="utf-8")
            output = inprocess.interactive(*words, "--input", typed, *more)
        else:
            output = inprocess.generate(*words, *more)
        files = sorted(file.name for file in folder.iterdir())
        lines = (line for line in output.splitlines() if RESULT.match(line))
        return [split_numbers(line) for line in sorted(lines)], files


def split_numbers(line: str) -> Tuple[str, torch.Tensor]:
    """Return a line with its fractions left out, and the fractions."""
    numbers = [float(number.group()) for number in NUMBER.finditer(line)]
    return NUMBER.sub("", line), torch.tensor(numbers, dtype=torch.double)


def without_times(records: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    return [
        {name: value for name, value in record.items() if not name.endswith(TIMES)}
        for record in records
    ]


def same(first: Any, second: Any) -> bool:
    """True if two outcomes are equal; wider batches add numbers up in another order."""
    if torch.is_tensor(first):
        # printed scores are double here, parameters float
        error = 1e-3 if first.dtype == torch.double else 1e-6
        is_alike = first.shape == second.shape and first.dtype == second.dtype
        return is_alike and torch.allclose(first.double(), second.double(), rtol=0, atol=error)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return first == second


def summary(verdicts: Dict[str, Optional[str]]) -> str:
    """Return {system: verdict} as the table writes it."""
    groups: Dict[str, List[str]] = {}
    for name, verdict in verdicts.items():
        if verdict is not None:
            groups.setdefault(verdict, []).append(name)
    if len(groups) == 1:
        return next(iter(groups))
    return "; ".join(f"{verdict} {','.join(names)}" for verdict, names in sorted(groups.items()))


def judged(row: Row, audit: Audit) -> Row:
    """Return the row with the verdicts of a run."""
    return row._replace(verdict=summary({name: audit.verdict(row, name) for name in NAMES}))


@contextlib.contextmanager
def made() -> Iterator[Audit]:
    """Data and models in a temporary folder."""
    from tests.conftest import ToyCorpus

    with tempfile.TemporaryDirectory(prefix="options-") as text:
        root = Path(text)

        def folder(name: str) -> Path:
            new = Path(tempfile.mkdtemp(prefix=name, dir=root))
            return new

        (root / "runs").mkdir()
        yield Audit(Data(ToyCorpus(root / "toy"), folder), root / "runs")


def page() -> str:
    """Return the tables of the manual: counts, and folded away every option."""
    full = ["| command | option | verdict | note |", "|---|---|---|---|"]
    counts: Dict[str, Dict[str, int]] = {name: {} for name in COMMANDS}
    for row in rows():
        words = row.words.replace("{folder}", "FOLDER").replace("{path}", "PATH")
        verdict = row.verdict.replace(",", ", ")
        full.append(f"| {row.command} | `{words}` | {verdict} | {row.note} |")
        first = row.verdict.split()[0]
        kind = "by system" if row.verdict != first else first
        counts[row.command][kind] = counts[row.command].get(kind, 0) + 1
    for group in stock_groups():
        listed = ", ".join(f"`{name}`" for name in group.options)
        full.append(f"| {', '.join(group.commands)} | {listed} | stock | {group.reason} |")
        for name in group.commands:
            counts[name]["stock"] = counts[name].get("stock", 0) + len(group.options)
    summary = [f"| command | {' | '.join(KINDS)} |", "|---" * (len(KINDS) + 1) + "|"]
    for name, count in counts.items():
        cells = " | ".join(str(count.get(kind, 0)) for kind in KINDS)
        summary.append(f"| {name} | {cells} |")
    fold = [
        '<details markdown="1">',
        "<summary>Every option</summary>",
        "",
        *full,
        "",
        "</details>",
    ]
    return "\n".join([*summary, "", *fold])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--new", action="store_true", help="run only rows whose verdict is -")
    parser.add_argument("--page", action="store_true", help="write the manual's table, run nothing")
    args = parser.parse_args()
    if args.page:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        after = rest.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{page()}\n{END}{after}", encoding="utf-8")
        return
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    comments = [line for line in TABLE.read_text("utf-8").splitlines() if line.startswith("#")]
    with made() as audit:
        lines = []
        for row in rows():
            new = row
            if not args.new or row.verdict in ("", "-"):
                with contextlib.redirect_stdout(io.StringIO()):
                    new = judged(row, audit)
            if new != row:
                print(f"{row.line()}\n  -> {new.verdict}", flush=True)
            lines.append(new.line())
            TABLE.with_suffix(".new").write_text("\n".join([*comments, *lines]) + "\n", "utf-8")
    TABLE.with_suffix(".new").replace(TABLE)


if __name__ == "__main__":
    main()
