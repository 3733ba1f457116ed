"""What a synthetic batch costs: updates on pairs, and on the same targets with greedy sources.

    python benchmarks/monolingual.py

Both updates have the same target sentences, of one length; the model that translates them writes as
many words. They take turns, on the CPU, and processor time is counted, which other processes do not
change. "translation" is its share of the synthetic update. Writes OUTPUT.json, OUTPUT.md and
OUTPUT.csv, a line for each figure as docs/results/data has them.
"""

import random
import statistics
import tempfile
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

import torch
from fairseq import optim, options, tasks
from fairseq.data import Dictionary, indexed_dataset
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from speed import cli, passes
from speed.harness import Figures, in_turns
from speed.report import write_rows

import fairseq_ext  # noqa: F401  (registers the systems)
from fairseq_ext.streams.back_translation import BackTranslation, LengthLimit

PAIR, STREAM = "xx-yy", "xx-yy@mono"
COLUMNS = ("ms", "ratio", "translation")
# as the line has: what a trained model writes, and an untrained one does not
AS_MANY_WORDS = LengthLimit(slope=1, constant=0)
BOTH = "--lang-pairs xx-yy,yy-xx"
SYSTEMS = {
    "dual": "--task dual_translation --arch dual_transformer --lang-pairs xx-yy "
    "--layers {layers} --embed-dim {embed_dim} --ffn-embed-dim {ffn_embed_dim} "
    "--attention-heads {heads}",
    "multiway": f"--task multiway_translation --arch multiway_gru {BOTH} "
    "--embed-dim {embed_dim} --hidden-size {hidden} --context-size {context}",
    "routed": f"--task routed_mtl --arch routed_gru {BOTH} --main-pair xx-yy "
    "--embed-dim {embed_dim} --hidden-size {hidden} --attention-size {context}",
}


def write_data(folder: Path, args: Namespace) -> None:
    """Write pairs of random words, and their targets as monolingual lines."""
    dictionary, draw = Dictionary(), random.Random(1)
    for number in range(args.vocab):
        dictionary.add_symbol(f"w{number}")
    sentences = args.max_tokens // args.length + 1
    for lang in ("xx", "yy"):
        dictionary.save(str(folder / f"dict.{lang}.txt"))
        lines = [
            [*(draw.randrange(4, len(dictionary)) for _ in range(args.length)), dictionary.eos()]
            for _ in range(sentences)
        ]
        for name in (f"train.xx-yy.{lang}", f"train.{lang}-None.{lang}"):
            builder = indexed_dataset.make_builder(
                str(folder / f"{name}.bin"), "mmap", len(dictionary)
            )
            for line in lines:
                builder.add_item(torch.IntTensor(line))
            builder.finalize(str(folder / f"{name}.idx"))


def updates(data: Path, name: str, args: Namespace) -> Dict[str, Callable[[], Any]]:
    """Return functions that take an update on pairs, a synthetic one, and translate its batch."""
    words = f"{data} {SYSTEMS[name].format(**vars(args))} --monolingual yy --optimizer adam"
    words += " --criterion chunked_label_smoothed_cross_entropy --label-smoothing 0.1 --batch-size"
    parsed = options.parse_args_and_arch(options.get_training_parser(), [*words.split(), "9"])
    cfg = convert_namespace_to_omegaconf(parsed)
    torch.manual_seed(1)
    task = tasks.setup_task(cfg.task)
    model, criterion = task.build_model(cfg.model), task.build_criterion(cfg.criterion)
    optimizer = optim.build_optimizer(cfg.optimizer, list(model.parameters()))
    task.back_translation = BackTranslation(
        task.cfg, task.dictionaries, task.source_marks, AS_MANY_WORDS
    )
    task.load_dataset("train")
    dataset = task.dataset("train")
    batches = {}
    for stream in (PAIR, STREAM):  # the same targets
        start = dataset.starts[stream]
        count = args.max_tokens // (args.length + 1)
        batches[stream] = dataset.collater([dataset[start + number] for number in range(count)])

    def update(stream: str) -> None:
        optimizer.zero_grad()
        task.train_step(batches[stream], model, criterion, optimizer, 1)
        task.optimizer_step(optimizer, model, 1)

    return {
        "pairs": lambda: update(PAIR),
        "synthetic": lambda: update(STREAM),
        "translation": lambda: task.back_translation(STREAM, batches[STREAM][STREAM], model, 1),
    }


def seconds(compute: Callable[[], Any]) -> Tuple[float, int]:
    """Return the processor time of a call, and 1."""
    start = time.process_time()
    compute()
    return time.process_time() - start, 1


def measure(data: Path, args: Namespace) -> Dict[str, Figures]:
    """Return {system and kind of update: figures}."""
    results: Dict[str, Figures] = {}
    for name in args.system:
        turns = in_turns(updates(data, name, args), seconds, args.repeats)
        medians = {kind: statistics.median(costs) for kind, costs in turns.items()}
        for kind in ("pairs", "synthetic"):
            share = medians["translation"] / medians[kind] if kind == "synthetic" else 0.0
            results[f"{name}, {kind}"] = {
                "ms": medians[kind] * 1e3,
                "ratio": medians[kind] / medians["pairs"],
                "translation": share,
                "turns": turns[kind],
            }
    return results


def write_csv(results: Mapping[str, Figures], path: Path) -> None:
    """Write the figures of the synthetic updates, and the time of both kinds."""
    lines = [["system", "metric", "value"]]
    for name in dict.fromkeys(key.partition(", ")[0] for key in results):
        real, synthetic = (results[f"{name}, {kind}"] for kind in ("pairs", "synthetic"))
        lines += [
            [name, "ms, real", f"{real['ms']:.0f}"],
            [name, "ms, synthetic", f"{synthetic['ms']:.0f}"],
            [name, "ratio", f"{synthetic['ratio']:.2f}"],
            [name, "translation, %", f"{100 * synthetic['translation']:.0f}"],
        ]
    write_rows(path, lines)


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Measure and report."""
    parser = cli.make_parser(__doc__)
    cli.add_systems(parser, list(SYSTEMS))
    cli.add_output(parser, "monolingual")
    sizes = {name: size for name, size in cli.SIZES.items() if name != "updates"}
    cli.add_numbers(parser, **{**sizes, "vocab": 8000})
    cli.add_threads(parser)
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), args)
        results = measure(Path(folder), args)
    text = f"{args.max_tokens} target tokens, {args.length} words a sentence, {args.vocab} words"
    passes.report(args, results, COLUMNS, text, what="update")
    write_csv(results, args.output.with_name(f"{args.output.name}.csv"))


if __name__ == "__main__":
    cli.run_script(main)
