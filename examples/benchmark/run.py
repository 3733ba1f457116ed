"""Speed of dual learning beside two stock Transformers of the same size, in one run.

Systems take turns on the same minibatches of a made-up corpus; each figure is the median over the
turns. Training is fairseq's own Trainer, generation its own beam search:

    python examples/benchmark/run.py --output build/benchmark

writes build/benchmark.json and build/benchmark.md.
"""

import argparse
import contextlib
import datetime
import io
import itertools
import json
import logging
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

REPOSITORY = Path(__file__).resolve().parents[2]
LANGS = ("aa", "bb")
DIRECTIONS = ("aa-bb", "bb-aa")


def write_corpus(folder: Path, sentences: int, vocab: int, length: int) -> None:
    """Binarised sentence pairs of random words: Zipf frequencies, lengths around ``length``."""
    from fairseq_cli import preprocess

    draw = random.Random(1)
    words = [f"w{number}" for number in range(vocab)]
    weights = list(itertools.accumulate(1 / (rank + 5) for rank in range(vocab)))
    for split, lines in (("train", sentences), ("valid", 128)):
        for lang in LANGS:
            with open(folder / f"{split}.{lang}", "w", encoding="utf-8") as out:
                for _ in range(lines):
                    count = max(2, int(draw.gauss(length, length / 3)))
                    out.write(" ".join(draw.choices(words, cum_weights=weights, k=count)) + "\n")
    arguments = ["-s", LANGS[0], "-t", LANGS[1], "--joined-dictionary", "--destdir"]
    arguments += [str(folder / "bin"), "--trainpref", str(folder / "train")]
    arguments += ["--validpref", str(folder / "valid")]
    from fairseq import options

    preprocess.main(options.get_preprocessing_parser().parse_args(arguments))


class System:
    """One model in training: its task, its trainer and an endless supply of minibatches."""

    def __init__(self, data: Path, flags, args):
        from fairseq import options, tasks
        from fairseq.dataclass.utils import convert_namespace_to_omegaconf
        from fairseq.trainer import Trainer

        flags = [str(data), *flags, *common_flags(args)]
        parser = options.get_training_parser()
        cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, flags))
        torch.manual_seed(1)
        self.cfg, self.task = cfg, tasks.setup_task(cfg.task)
        model = self.task.build_model(cfg.model)
        self.trainer = Trainer(cfg, self.task, model, self.task.build_criterion(cfg.criterion))
        self.task.load_dataset("train")
        self.batches = self._batches()

    def _batches(self):
        iterator = self.trainer.get_train_iterator(1)
        while True:
            yield from iterator.next_epoch_itr(shuffle=False)

    def seconds(self, updates: int):
        """(seconds, target tokens) of so many updates."""
        tokens, start = 0, time.perf_counter()
        for batch in itertools.islice(self.batches, updates):
            self.trainer.train_step([batch])
            parts = [batch] if "net_input" in batch else list(batch.values())
            tokens += sum(part["ntokens"] for part in parts)
        synchronise()
        return time.perf_counter() - start, tokens

    def parameters(self) -> int:
        """Unique trainable parameters."""
        return sum(p.numel() for p in self.trainer.model.parameters() if p.requires_grad)


class Translator:
    """One direction of a system, translating the validation set by beam search."""

    def __init__(self, system: System, pair: str, args):
        from fairseq.tasks.translation import load_langpair_dataset
        from omegaconf import OmegaConf

        self.task, model = system.task, system.trainer.get_model()
        source, target = pair.split("-")
        if hasattr(model, "direction"):
            model = model.direction(pair)
        dictionary = self.task.target_dictionary
        self.dataset = load_langpair_dataset(
            str(system.cfg.task.data), "valid", source, dictionary, target, dictionary,
            combine=False, dataset_impl=None, upsample_primary=1, left_pad_source=True,
            left_pad_target=False, max_source_positions=1024, max_target_positions=1024,
        )  # fmt: skip
        self.sentences = args.sentences
        # all hypotheses of one length: hardly trained models would end them anywhere
        length = {"min_len": args.length, "max_len_a": 0, "max_len_b": args.length}
        generation = OmegaConf.create({"beam": args.beam, **length})
        from fairseq.tasks.translation import TranslationTask

        self.generator = TranslationTask.build_generator(self.task, [model], generation)

    def seconds(self):
        """(seconds, sentences) of one pass."""
        order, start = self.dataset.ordered_indices(), time.perf_counter()
        for first in range(0, len(order), self.sentences):
            chosen = order[first : first + self.sentences]
            batch = self.dataset.collater([self.dataset[int(index)] for index in chosen])
            if torch.cuda.is_available():
                batch = move(batch)
            self.generator.generate(None, batch)
        synchronise()
        return time.perf_counter() - start, len(order)


def move(batch):
    from fairseq import utils

    return utils.move_to_cuda(batch)


def synchronise():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def common_flags(args):
    flags = "--optimizer adam --lr 0.0005 --lr-scheduler fixed --seed 1 --label-smoothing 0.1"
    flags += f" --max-tokens {args.max_tokens} --dropout 0.2 --share-all-embeddings --no-save"
    flags += f" {args.flags}"
    return flags.split()


def stock_flags(args, pair, criterion):
    source, target = pair.split("-")
    flags = f"-s {source} -t {target} --arch transformer --criterion {criterion}"
    for side in ("encoder", "decoder"):
        flags += f" --{side}-layers {args.layers} --{side}-embed-dim {args.embed_dim}"
        flags += f" --{side}-ffn-embed-dim {args.ffn_embed_dim}"
        flags += f" --{side}-attention-heads {args.heads}"
    return flags.split()


def dual_flags(args):
    flags = f"--task dual_translation -s {LANGS[0]} -t {LANGS[1]} --arch dual_transformer"
    flags += f" --criterion {OURS} --layers {args.layers} --embed-dim {args.embed_dim}"
    flags += f" --ffn-embed-dim {args.ffn_embed_dim} --attention-heads {args.heads}"
    return flags.split()


STOCK, OURS = "label_smoothed_cross_entropy", "chunked_label_smoothed_cross_entropy"
TWO_STOCK, TWO_STOCK_OURS, DUAL = "two stock", "two stock, our criterion", "dual"


def measure(args, data: Path):
    """{system: {figure: value}}"""
    systems = {
        TWO_STOCK: [System(data, stock_flags(args, pair, STOCK), args) for pair in DIRECTIONS],
        TWO_STOCK_OURS: [System(data, stock_flags(args, pair, OURS), args) for pair in DIRECTIONS],
        DUAL: [System(data, dual_flags(args), args)],
    }
    turns = {name: [] for name in systems}
    for turn in range(args.repeats + 1):
        for name, members in systems.items():
            found = [member.seconds(args.updates) for member in members]
            rate = sum(tokens for _, tokens in found) / sum(seconds for seconds, _ in found)
            if turn:  # the first is the warm-up
                turns[name].append(rate)
                print(f"training, turn {turn}/{args.repeats}: {name} {rate:.0f} tokens/s")
    rates = {name: statistics.median(values) for name, values in turns.items()}
    results = {
        name: {
            "target tokens/s": round(rates[name], 1),
            "training ratio": round(rates[name] / rates[TWO_STOCK], 3),
            "parameters": sum(member.parameters() for member in members),
        }
        for name, members in systems.items()
    }
    translators = {
        TWO_STOCK: Translator(systems[TWO_STOCK][0], DIRECTIONS[0], args),
        DUAL: Translator(systems[DUAL][0], DIRECTIONS[0], args),
    }
    turns = {name: [] for name in translators}
    for turn in range(args.repeats + 1):
        for name, translator in translators.items():
            seconds, sentences = translator.seconds()
            if turn:
                turns[name].append(sentences / seconds)
                print(f"generation, turn {turn}/{args.repeats}: {name} {turns[name][-1]:.1f}/s")
    for name, values in turns.items():
        rate = statistics.median(values)
        results[name]["sentences/s"] = round(rate, 2)
        results[name]["generation ratio"] = round(rate / statistics.median(turns[TWO_STOCK]), 3)
    return results


def report(args, results):
    """(JSON-able record, Markdown table)"""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else processor()
    record = {
        "date": datetime.date.today().isoformat(),
        "device": device,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "settings": {name: value for name, value in vars(args).items() if name != "output"},
        "results": results,
    }
    columns = ["target tokens/s", "training ratio", "sentences/s", "generation ratio", "parameters"]
    lines = [
        f"{record['date']}, {device}, {record['threads']} thread(s), torch {torch.__version__}; "
        f"{args.layers}+{args.layers} layers, {args.embed_dim}/{args.ffn_embed_dim}, {args.heads} "
        f"heads, vocabulary {args.vocab}, {args.max_tokens} tokens per batch; generation with "
        f"beam {args.beam}, {args.sentences} sentences at a time, {args.length} tokens each; "
        f"medians of {args.repeats}.",
        "",
        "| system | " + " | ".join(columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for name, found in results.items():
        cells = [f"{found[column]:,}" if column in found else "" for column in columns]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return record, "\n".join(lines) + "\n"


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
    for option, value in (
        ("--updates", 10), ("--repeats", 5), ("--max-tokens", 2048), ("--vocab", 4000),
        ("--train-sentences", 4000), ("--length", 16), ("--layers", 4), ("--embed-dim", 128),
        ("--ffn-embed-dim", 256), ("--heads", 4), ("--beam", 5), ("--sentences", 64),
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
