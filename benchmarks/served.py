"""Sentences per second and latency: `fairseq-ext serve` beside fairseq-interactive.

    python benchmarks/served.py CHECKPOINT DATA -s en -t de --input test.en

CHECKPOINT: of any translation model; DATA: its dictionaries. With N clients, each sends a sentence
of --input and waits for its translation before it sends the next. fairseq-interactive has one
input: it gets N lines at a time (--buffer-size N --batch-size N). Both have the same search, in
single precision on the CPU, and take turns with the server's engine ctranslate2, where that is
installed. Figures are medians over the turns. The latency is from sending a sentence to having its
translation. Clients and programs share the machine; the CPU time is that of the program alone
(Linux), which depends little on what else runs. Writes OUTPUT.json, OUTPUT.md and OUTPUT.csv.
"""

import concurrent.futures
import contextlib
import http.client
import importlib.util
import itertools
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Protocol, Sequence

from speed import cli
from speed.harness import Clock
from speed.report import circumstances, heading, publish, settings_of, table, write_rows

from fairseq_ext.tools import AddValues, UsageError
from fairseq_ext.tools.evaluate.inputs import read_lines

SERVER, OTHER, INTERACTIVE = "server", "server, CTranslate2", "fairseq-interactive"
RATE, MEDIAN, LATE = "sentences/s", "median, ms", "99th percentile, ms"
CPU = "CPU ms/sentence"
COLUMNS = (RATE, MEDIAN, LATE, CPU)
PROMPT = 120.0  # seconds that a process may take to start


class Member(Protocol):
    """A program that translates."""

    def seconds(self, sentences: Sequence[str], clients: int) -> List[float]:
        """Return the latency of each sentence, with so many of them under way at a time."""

    def program(self, clients: int) -> "subprocess.Popen[str]":
        """Return the process that translates."""


class Turn(NamedTuple):
    """What a member needed for some sentences: seconds, CPU seconds, and each latency."""

    seconds: float
    cpu: float
    latencies: List[float]


def cpu_seconds(process: "subprocess.Popen[str]") -> float:
    """Return the CPU time that a process has used; NaN where there is no /proc."""
    stat = Path(f"/proc/{process.pid}/stat")
    if not stat.is_file():
        return math.nan
    # the fields behind the name, which may hold blanks: 14 and 15 are user and system time
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def started(words: Sequence[Any], threads: int, **streams: Any) -> "subprocess.Popen[str]":
    """Return a process of this package's command."""
    command = [sys.executable, "-W", "ignore", "-m", "fairseq_ext", *map(str, words)]
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, encoding="utf-8", errors="replace", env=env, **streams
    )


def read_until(process: "subprocess.Popen[str]", pattern: str) -> "re.Match[str]":
    """Return the first match in what a process prints; UsageError if it ends before."""
    assert process.stdout is not None
    printed = ""
    for line in process.stdout:
        printed += line
        match = re.search(pattern, line)
        if match:
            return match
    raise UsageError(f"{process.args!r} has ended: {printed.strip()}")


class Server:
    """`fairseq-ext serve`, asked by clients that keep their connections."""

    def __init__(self, args: Namespace, engine: str):
        words = ["serve", args.checkpoint, "--data", args.data, "--port", 0, "--engine", engine]
        self.process = started([*words, "--threads", args.threads], args.threads)
        self.address = read_until(self.process, r"http://(127\.0\.0\.1:\d+)/").group(1)
        self.options = {"direction": f"{args.source_lang}-{args.target_lang}", "beam": args.beam}

    def seconds(self, sentences: Sequence[str], clients: int) -> List[float]:
        """Return the latency of each sentence."""
        waiting = iter(list(sentences))  # next() of a list's iterator is atomic

        def client() -> List[float]:
            connection = http.client.HTTPConnection(self.address, timeout=PROMPT)
            latencies = []
            for sentence in waiting:
                begin = time.monotonic()
                self.ask(connection, sentence)
                latencies.append(time.monotonic() - begin)
            connection.close()
            return latencies

        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            parts = [pool.submit(client) for _ in range(clients)]
            return list(itertools.chain.from_iterable(part.result() for part in parts))

    def program(self, clients: int) -> "subprocess.Popen[str]":
        """Return the server."""
        return self.process

    def ask(self, connection: http.client.HTTPConnection, sentence: str) -> str:
        """Return the translation of a sentence."""
        body = json.dumps({"sentences": [sentence], **self.options})
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise UsageError(f"the server answers {response.status}: {answer}")
        return answer["translations"][0]["hypotheses"][0]["text"]

    def close(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.communicate()


class Interactive:
    """fairseq-interactive with one size of its buffer; several sizes are several processes."""

    def __init__(self, args: Namespace):
        self.args = args
        self.processes: Dict[int, "subprocess.Popen[str]"] = {}

    def start(self, lines: int) -> "subprocess.Popen[str]":
        """Return a process that reads so many lines at a time."""
        args = self.args
        words = ["run", "fairseq-interactive", args.data, "--path", args.checkpoint, "--cpu"]
        words += ["-s", args.source_lang, "-t", args.target_lang, "--beam", args.beam]
        words += ["--buffer-size", lines, "--batch-size", lines, "--task", args.task]
        words += ["--user-dir", Path(__file__).parents[1] / "fairseq_ext"]
        if args.sentencepiece_model:
            words += ["--bpe", "sentencepiece", "--sentencepiece-model", args.sentencepiece_model]
        streams = {"stdin": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return started(words, args.threads, **streams)

    def program(self, clients: int) -> "subprocess.Popen[str]":
        """Return the process that reads as many lines at a time."""
        if clients not in self.processes:
            self.processes[clients] = self.start(clients)
        return self.processes[clients]

    def seconds(self, sentences: Sequence[str], clients: int) -> List[float]:
        """Return the latency of each sentence."""
        process, latencies = self.program(clients), []
        assert process.stdin is not None
        for start in range(0, len(sentences), clients):
            part = sentences[start : start + clients]
            begin = time.monotonic()
            process.stdin.write("".join(f"{sentence}\n" for sentence in part))
            process.stdin.flush()
            for _ in part:
                read_until(process, r"^D-")
                latencies.append(time.monotonic() - begin)
        return latencies

    def close(self) -> None:
        """End the processes."""
        for process in self.processes.values():
            process.communicate()  # the end of its input


def figures(turns: Sequence[Turn]) -> Dict[str, float]:
    """Return rate, latencies and CPU time: medians over the turns."""
    late = [
        sorted(turn.latencies)[math.ceil(0.99 * len(turn.latencies)) - 1] for turn in turns
    ]  # the nearest rank
    return {
        RATE: statistics.median(len(turn.latencies) / turn.seconds for turn in turns),
        MEDIAN: 1e3 * statistics.median(statistics.median(turn.latencies) for turn in turns),
        LATE: 1e3 * statistics.median(late),
        CPU: 1e3 * statistics.median(turn.cpu / len(turn.latencies) for turn in turns),
    }


def turn_of(member: Member, sentences: Sequence[str], clients: int) -> Turn:
    """Return what a member needs for the sentences."""
    process = member.program(clients)
    cpu, begin = cpu_seconds(process), time.monotonic()
    latencies = member.seconds(sentences, clients)
    return Turn(time.monotonic() - begin, cpu_seconds(process) - cpu, latencies)


def measure(args: Namespace, sentences: Sequence[str]) -> Dict[str, Dict[str, Dict[str, float]]]:
    """Return {clients: {system: figures}}."""
    say = Clock()
    with contextlib.ExitStack() as stack:
        members: Dict[str, Member] = {}
        engines = {SERVER: "fairseq", OTHER: "ctranslate2"}
        if importlib.util.find_spec("ctranslate2") is None:
            del engines[OTHER]
        for name, engine in engines.items():
            server = Server(args, engine)
            stack.callback(server.close)
            members[name] = server
        interactive = Interactive(args)
        stack.callback(interactive.close)
        members[INTERACTIVE] = interactive
        results = {}
        for clients in args.clients:
            turns: Dict[str, List[Turn]] = {name: [] for name in members}
            for turn in range(args.repeats + 1):
                for name, member in members.items():
                    measured = turn_of(member, sentences, clients)
                    if turn:  # the first warms up
                        turns[name].append(measured)
                    say(f"{clients} clients, turn {turn}/{args.repeats}: {name}")
            results[str(clients)] = {name: figures(series) for name, series in turns.items()}
    return results


def rows(results: Dict[str, Dict[str, Dict[str, float]]]) -> Iterator[List[Any]]:
    """Yield clients, system and figures."""
    for clients, systems in results.items():
        for name, values in systems.items():
            yield [int(clients), name, *(values[column] for column in COLUMNS)]


def write_csv(results: Dict[str, Dict[str, Dict[str, float]]], path: Path) -> None:
    """Write a line for each figure, as docs/results/data has them."""
    lines = [["clients", "system", "metric", "value"]]
    for clients, name, *values in rows(results):
        lines += [[clients, name, column, f"{v:.1f}"] for column, v in zip(COLUMNS, values)]
    write_rows(path, lines)


def chosen(args: Namespace) -> List[str]:
    """Return the sentences, as many as --sentences; UsageError."""
    uneven = [clients for clients in args.clients if args.sentences % clients]
    if uneven:
        raise UsageError(f"--sentences {args.sentences}: must be a multiple of {uneven[0]} clients")
    lines = list(filter(None, read_lines(args.input)))
    if len(lines) < args.sentences:
        raise UsageError(f"--input {args.input}: {len(lines)} lines, --sentences {args.sentences}")
    return lines[: args.sentences]


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Measure and report."""
    parser = cli.make_parser(__doc__)
    parser.add_argument("checkpoint", metavar="CHECKPOINT")
    parser.add_argument("data", metavar="DATA")
    parser.add_argument("-s", "--source-lang", required=True, metavar="SOURCE")
    parser.add_argument("-t", "--target-lang", required=True, metavar="TARGET")
    parser.add_argument("--task", default="dual_translation", help="of the checkpoint")
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="raw sentences")
    parser.add_argument("--sentencepiece-model", metavar="FILE", help="for fairseq-interactive")
    parser.add_argument("--clients", type=cli.positive, nargs="+", action=AddValues,
                        default=[1, 8, 32], metavar="N")  # fmt: skip
    cli.add_output(parser, "serving")
    cli.add_numbers(parser, beam=5, sentences=256, repeats=3)
    cli.add_threads(parser)
    args = parser.parse_args(arguments)
    results = measure(args, chosen(args))
    record = {
        **circumstances("cpu"),
        "threads": args.threads,
        "settings": {**settings_of(args, "output", "input"), "input": args.input.name},
        "results": results,
    }
    text = (
        f"{heading(record)}, {args.threads} thread(s); {args.source_lang}-{args.target_lang}, beam "
        f"{args.beam}, {args.sentences} sentences; medians of {args.repeats}."
    )
    lines = [[str(clients), *values] for clients, *values in rows(results)]
    publish(record, f"{text}\n\n{table(['clients', 'system', *COLUMNS], lines)}", args.output)
    write_csv(results, args.output.with_name(f"{args.output.name}.csv"))


if __name__ == "__main__":
    cli.run_script(main)
