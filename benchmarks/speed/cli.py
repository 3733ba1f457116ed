"""Options that several scripts have, what is allowed, and how a script is run."""

import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Callable, Optional, Sequence, Tuple

import torch

from fairseq_ext.tools import AddValues, UsageError
from fairseq_ext.tools.installation.hardware import usable_cpus

from . import BUILD

PRECISIONS = {"cpu": ("fp32", "bf16", "amp"), "cuda": ("fp32", "tf32", "bf16", "fp16")}
ALL_PRECISIONS = tuple(dict.fromkeys(PRECISIONS["cpu"] + PRECISIONS["cuda"]))
# options that are positive numbers
NUMBERS = {
    "--updates": "updates per measurement, or of a whole training",
    "--repeats": "measurements, after one for warming up",
    "--max-tokens": "target tokens of a minibatch",
    "--train-sentences": "training sentences of the corpus",
    "--vocab": "entries of the dictionary",
    "--length": "mean number of words of a sentence, and number of words of every hypothesis",
    "--layers": "layers in encoder and decoder of the Transformers",
    "--embed-dim": "width of the embeddings and of the Transformers",
    "--ffn-embed-dim": "units of the feed-forward layers of the Transformers",
    "--heads": "attention heads of the Transformers",
    "--hidden": "units of the recurrent models",
    "--context": "units of the attention of the recurrent models",
    "--beam": "beam size",
    "--longest": "maximum length of a hypothesis",
    "--limit": "approximate number of sentences to translate",
    "--sentences": "sentences per batch",
    "--steps": "positions of a sentence",
    "--hidden-size": "units of the LSTM",
    "--words": "entries of the dictionary",
    "--size": "units of a block",
    "--shared-blocks": "number of shared blocks",
}
SIZES = {
    **{"updates": 3, "repeats": 5, "max_tokens": 1024, "vocab": 4000, "length": 16, "layers": 3},
    **{"embed_dim": 256, "ffn_embed_dim": 1024, "heads": 4, "hidden": 256, "context": 256},
}


def run_script(main: Callable[[], None]) -> None:
    """Run a script; show a problem that the user can solve without a traceback.

    SIGTERM ends it as Ctrl-C does, together with the processes that it started.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        main()
    except UsageError as error:
        sys.exit(f"{Path(sys.argv[0]).name}: {error}")


def make_parser(doc: Optional[str]) -> ArgumentParser:
    """Return a parser that is described by the first line of a script's docstring."""
    return ArgumentParser(description=(doc or "").splitlines()[0])


def positive(text: str) -> int:
    """Return the value of an option. Raises ArgumentTypeError unless it is at least 1."""
    if int(text) < 1:
        raise ArgumentTypeError(f"{text}: must be at least 1")
    return int(text)


def thread_count(text: str) -> int:
    """Return a value of --threads. Raises ArgumentTypeError unless there are as many CPUs."""
    if not 1 <= int(text) <= usable_cpus():
        raise ArgumentTypeError(f"{text}: must be between 1 and {usable_cpus()}")
    return int(text)


def beam_and_sentences(text: str) -> Tuple[int, int]:
    """Return (5, 64) for "5:64". Raises ArgumentTypeError for another text."""
    beam, _, sentences = text.partition(":")
    if not (beam.isdecimal() and sentences.isdecimal() and int(beam) and int(sentences)):
        raise ArgumentTypeError(f"{text}: must be BEAM:SENTENCES, both positive, e.g. 5:64")
    return int(beam), int(sentences)


def add_numbers(parser: ArgumentParser, **defaults: int) -> None:
    """Add options that are positive numbers; those of ``NUMBERS`` with _ for -."""
    for name, default in defaults.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=positive, metavar="N", default=default,
                            help=f"{NUMBERS[option]} (default %(default)s)")  # fmt: skip


def add_systems(parser: ArgumentParser, names: Sequence[str]) -> None:
    """Add --system, with all ``names`` as its default."""
    parser.add_argument("--system", nargs="+", action=AddValues, choices=names, default=names,
                        metavar="NAME",
                        help=f"systems, of {', '.join(names)} (default: all)")  # fmt: skip


def add_device(parser: ArgumentParser) -> None:
    """Add --device. Its default is the GPU, if torch finds one."""
    devices = list(PRECISIONS) if torch.cuda.is_available() else ["cpu"]
    parser.add_argument("--device", choices=devices, default=devices[-1],
                        help="device, of those that torch finds (default %(default)s)")  # fmt: skip


def add_flags(parser: ArgumentParser) -> None:
    """Add --flags."""
    text = "additional options of fairseq-train for all systems, in quotes"
    parser.add_argument("--flags", default="", help=text)


def add_threads(parser: ArgumentParser) -> None:
    """Add --threads, a single number."""
    parser.add_argument("--threads", type=thread_count, metavar="N", default=1,
                        help="number of threads (default %(default)s)")  # fmt: skip


def output_file(text: str) -> Path:
    """Return the path of the output. Refuses, before hours of measuring, one below a file."""
    path = Path(text)
    there = next(folder for folder in path.absolute().parents if folder.exists())
    if not there.is_dir():
        raise ArgumentTypeError(f"{text}: {there} is not a folder")
    return path


def add_output(parser: ArgumentParser, name: str) -> None:
    """Add --output with the default build/benchmark/NAME."""
    parser.add_argument("--output", type=output_file, metavar="FILE", default=BUILD / name,
                        help=f"name of the output files (default: build/benchmark/{name})",
                        )  # fmt: skip


def add_page(parser: ArgumentParser) -> None:
    """Add --into and --output, the default of which `chosen_output` returns."""
    parser.add_argument("--into", type=Path, metavar="PAGE",
                        help="page whose marked part is replaced by the tables")  # fmt: skip
    parser.add_argument("--output", type=output_file, metavar="FILE",
                        help="name of the output files "
                             "(default: in build/benchmark, or beside PAGE)")  # fmt: skip


def chosen_output(args: Namespace, name: str) -> Path:
    """Return --output, or a file of this name beside --into or in build/benchmark."""
    return args.output or (args.into.parent if args.into else BUILD) / name


def check_models(args: Namespace) -> None:
    """Raise UsageError naming a size that does not fit the models."""
    if args.embed_dim % args.heads:
        raise UsageError(
            f"--heads {args.heads}: --embed-dim {args.embed_dim} must be a multiple of it"
        )
    for option, value in (("--embed-dim", args.embed_dim), ("--hidden", args.hidden)):
        if value % 2:
            raise UsageError(f"{option} {value}: must be even")


def check_corpus(args: Namespace) -> None:
    """Raise UsageError naming a size that does not fit the corpus."""
    if args.vocab < 10:
        raise UsageError(f"--vocab {args.vocab}: must be at least 10")
    if args.max_tokens < 4 * args.length:
        raise UsageError(
            f"--max-tokens {args.max_tokens}: must be at least four times --length {args.length}"
        )


def check_precision(device: str, *precisions: str) -> None:
    """Raise UsageError naming a precision that the device does not have."""
    for precision in precisions:
        if precision not in PRECISIONS[device]:
            raise UsageError(
                f"--precision {precision}: with --device {device} it must be one of "
                f"{', '.join(PRECISIONS[device])}"
            )
