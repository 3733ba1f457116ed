"""Speed of a system beside stock fairseq at the same size, in one run.

    python examples/benchmark/run.py --system dual --output build/benchmark
    python examples/benchmark/run.py --system duo --output build/benchmark-duo
    python examples/benchmark/run.py --system multiway --embed-dim 256 --hidden 512 --context 512
    python examples/benchmark/run.py --system routed --embed-dim 256 --hidden 256 --context 256

dual stands beside two stock Transformers, duo beside one, multiway and routed (one pair each)
beside the stock ``lstm`` with attention. Systems take turns on the same minibatches of a made-up
corpus; each figure is the median over the turns. Training is fairseq's own Trainer, generation its
own beam search. The operations of an update are those of its matrix products, counted while it
runs; the expected ratio is what they would give at the speed of the first system, the limit is the
time of the same products alone. Writes build/benchmark.json and build/benchmark.md.
"""

import argparse
import contextlib
import datetime
import functools
import io
import json
import logging
import os
import platform
import statistics
import sys
import tempfile
from pathlib import Path

import torch
from corpus import write_corpus
from systems import DIRECTIONS, RECURRENT, TWO_STOCK_OURS, Translator, build

SYSTEMS = ("dual", "duo", *RECURRENT)
REPOSITORY = Path(__file__).resolve().parents[2]
COLUMNS = ["target tokens/s", "training ratio", "expected ratio", "MFLOP/token", "GFLOP/s"]
COLUMNS += ["ratio at equal FLOP", "share of the limit"]
COLUMNS += ["sentences/s", "generation ratio", "parameters"]


def in_turns(args, label, members, measure):
    """{name: median of ``measure(member)`` over the repetitions}, the members taking turns."""
    turns = {name: [] for name in members}
    for turn in range(args.repeats + 1):
        for name, member in members.items():
            rate = measure(member)
            if turn:  # the first is the warm-up
                turns[name].append(rate)
                print(f"{label}, turn {turn}/{args.repeats}: {name} {rate:.0f}/s", flush=True)
    return {name: statistics.median(values) for name, values in turns.items()}


def training_rate(args, systems):
    """Target tokens a second."""
    found = [system.seconds(args.updates) for system in systems]
    return sum(tokens for _, tokens in found) / sum(seconds for seconds, _ in found)


def generation_rate(translator):
    """Sentences a second."""
    seconds, sentences = translator.seconds()
    return sentences / seconds


def measure(args, data: Path):
    """{system: {figure: value}}"""
    systems = build(args, data)
    stock = next(iter(systems))
    rates = in_turns(args, "training", systems, functools.partial(training_rate, args))
    results = {}
    for name, members in systems.items():
        found = [member.products() for member in members]
        tokens = sum(products.tokens for products in found)
        operations = sum(products.operations() for products in found) / tokens
        alone = sum(products.seconds() for products in found) / tokens
        results[name] = {
            "target tokens/s": round(rates[name], 1),
            "training ratio": round(rates[name] / rates[stock], 3),
            "MFLOP/token": round(operations / 1e6, 2),
            "GFLOP/s": round(operations * rates[name] / 1e9, 1),
            "share of the limit": round(alone * rates[name], 3),
            "parameters": sum(member.parameters() for member in members),
        }
    for name, found in results.items():
        cost = found["MFLOP/token"] / results[stock]["MFLOP/token"]
        found["expected ratio"] = round(1 / cost, 3)
        found["ratio at equal FLOP"] = round(cost * rates[name] / rates[stock], 3)
    translators = {
        name: Translator(members[0], DIRECTIONS[0], args)
        for name, members in systems.items()
        if name != TWO_STOCK_OURS
    }
    rates = in_turns(args, "generation", translators, generation_rate)
    for name, rate in rates.items():
        results[name]["sentences/s"] = round(rate, 2)
        results[name]["generation ratio"] = round(rate / rates[stock], 3)
    return results


def report(args, results):
    """(JSON-able record, Markdown table)"""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else processor()
    record = {
        "date": today(),
        "device": device,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "settings": {name: value for name, value in vars(args).items() if name != "output"},
        "results": results,
    }
    sizes = f"{args.layers}+{args.layers} layers, {args.embed_dim}/{args.ffn_embed_dim}, "
    sizes += f"{args.heads} heads"
    if args.system in RECURRENT:
        sizes = f"embeddings {args.embed_dim}, units {args.hidden}, attention {args.context}"
    lines = [
        f"{record['date']}, {device}, {record['threads']} thread(s), torch {torch.__version__}; "
        f"{sizes}, vocabulary {args.vocab}, {args.max_tokens} tokens per batch; generation with "
        f"beam {args.beam}, {args.sentences} sentences at a time, {args.length} tokens each; "
        f"medians of {args.repeats}.",
        "",
        "| system | " + " | ".join(COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]
    for name, found in results.items():
        cells = [f"{found[column]:,}" if column in found else "" for column in COLUMNS]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return record, "\n".join(lines) + "\n"


def today() -> str:
    return datetime.date.today().isoformat()


def processor() -> str:
    with contextlib.suppress(OSError):
        for line in open("/proc/cpuinfo", encoding="utf-8"):
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
    print(f"wrote {path}")


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default=str(REPOSITORY / "build" / "benchmark"))
    parser.add_argument("--system", choices=SYSTEMS, default="dual")
    for option, value in (
        ("--updates", 10), ("--repeats", 5), ("--max-tokens", 2048), ("--vocab", 4000),
        ("--train-sentences", 4000), ("--length", 16), ("--layers", 4), ("--embed-dim", 128),
        ("--ffn-embed-dim", 256), ("--heads", 4), ("--hidden", 256), ("--context", 256),
        ("--beam", 5), ("--sentences", 64),
    ):  # fmt: skip
        parser.add_argument(option, type=int, default=value, help=f"(default {value})")
    parser.add_argument("--flags", default="", help='more options of fairseq-train, e.g. "--bf16"')
    return parser.parse_args(arguments)


def main(arguments=None) -> int:
    args = parse(arguments)
    from fairseq import utils

    utils.import_user_module(argparse.Namespace(user_dir=str(REPOSITORY / "fairseq_ext")))
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(io.StringIO()):
            write_corpus(Path(folder), args.train_sentences, args.vocab, args.length)
        results = measure(args, Path(folder) / "bin")
    record, table = report(args, results)
    print(table)
    write(Path(args.output).with_suffix(".json"), json.dumps(record, indent=2) + "\n")
    write(Path(args.output).with_suffix(".md"), table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
