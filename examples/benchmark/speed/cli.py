"""Options of the scripts, and what they check."""

import os

from recipe_tools import RecipeError

PRECISIONS = {"cpu": ("fp32", "bf16", "amp"), "cuda": ("fp32", "tf32", "bf16", "fp16")}
SIZES = {
    "--updates": (3, "updates per measurement, or of a whole training"),
    "--repeats": (5, "measurements, after one for warming up"),
    "--max-tokens": (1024, "target tokens of a minibatch"),
    "--vocab": (4000, "entries of the dictionary"),
    "--length": (16, "mean number of words of a sentence, and number of words of every hypothesis"),
    "--layers": (3, "layers in encoder and decoder of the Transformers"),
    "--embed-dim": (256, "width of the embeddings and of the Transformers"),
    "--ffn-embed-dim": (1024, "units of the feed-forward layers of the Transformers"),
    "--heads": (4, "attention heads of the Transformers"),
    "--hidden": (256, "units of the recurrent models"),
    "--context": (256, "units of the attention of the recurrent models"),
}


# what growth.py varies
AXES = {
    "length": (8, 16, 32, 64, 128, 256),
    "batch": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    "vocab": (4000, 8000, 16000, 32000, 64000),
    "pairs": (2, 4, 6, 8, 10),
}
# of these axes, or set by them
VARIED = ("--updates", "--max-tokens", "--vocab", "--length")


def add_sizes(parser, varied=False, **others) -> None:
    """Add SIZES to the parser, without VARIED where these are varied.

    others: defaults of a script that differ.
    """
    for option, (value, words) in SIZES.items():
        if varied and option in VARIED:
            continue
        value = others.get(option[2:].replace("-", "_"), value)
        parser.add_argument(
            option, type=int, default=value, metavar="N", help=f"{words} (default {value})"
        )
    parser.add_argument(
        "--flags", default="", help="additional options of fairseq-train for all systems, in quotes"
    )


def every_precision():
    return tuple(dict.fromkeys(precision for names in PRECISIONS.values() for precision in names))


def add_device(parser) -> None:
    parser.add_argument(
        "--device",
        choices=tuple(PRECISIONS),
        help="device (default: cuda if torch finds one, else cpu)",
    )


def check_sizes(args) -> None:
    """Raise RecipeError naming an option of SIZES that is no positive number, or does not fit."""
    for option in SIZES:
        value = getattr(args, option[2:].replace("-", "_"), 1)
        if value < 1:
            raise RecipeError(f"{option} {value}: must be at least 1")
    if args.embed_dim % args.heads:
        raise RecipeError(
            f"--heads {args.heads}: --embed-dim {args.embed_dim} must be a multiple of it"
        )
    for option in ("--embed-dim", "--hidden"):
        value = getattr(args, option[2:].replace("-", "_"))
        if value % 2:
            raise RecipeError(f"{option} {value}: must be even")
    if "vocab" not in args:
        return
    if args.vocab < 10:
        raise RecipeError(f"--vocab {args.vocab}: must be at least 10")
    if args.max_tokens < 4 * args.length:
        raise RecipeError(
            f"--max-tokens {args.max_tokens}: must be at least four times --length {args.length}"
        )


def chosen_device(args) -> str:
    """Return --device, or the available device. Raises RecipeError for a GPU that torch lacks."""
    import torch

    has_cuda = torch.cuda.is_available()
    if args.device == "cuda" and not has_cuda:
        raise RecipeError("--device cuda: torch finds no CUDA device; allowed: cpu")
    return args.device or ("cuda" if has_cuda else "cpu")


def chosen_precisions(args):
    """Return --precision, or fp32 on a CPU and all on a GPU. Raises RecipeError if unsupported."""
    allowed = PRECISIONS[args.device]
    for precision in args.precision or ():
        if precision not in allowed:
            raise RecipeError(
                f"--precision {precision}: with --device {args.device} it must be one of "
                f"{', '.join(allowed)}"
            )
    return args.precision or (allowed if args.device == "cuda" else ("fp32",))


def usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def chosen_threads(args):
    """Return --threads, or one and all there are; on a GPU all. RecipeError if there are fewer."""
    cpus = usable_cpus()
    for threads in args.threads or ():
        if not 1 <= threads <= cpus:
            raise RecipeError(
                f"--threads {threads}: must be between 1 and the {cpus} of this machine"
            )
    default = (cpus,) if args.device == "cuda" else tuple(sorted({1, cpus}))
    return args.threads or default


def parse_searches(texts):
    """Return [(5, 64)], beam and sentences at a time, for ["5:64"]. RecipeError for other texts."""
    searches = []
    for text in texts:
        beam, _, sentences = text.partition(":")
        if not (beam.isdecimal() and sentences.isdecimal() and int(beam) and int(sentences)):
            raise RecipeError(f"--search {text}: must be BEAM:SENTENCES, both positive, e.g. 5:64")
        searches.append((int(beam), int(sentences)))
    return searches
