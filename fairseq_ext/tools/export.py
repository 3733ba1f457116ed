"""`fairseq-ext export`: checkpoints for programs without this package.

Of a dual model, or of two models that dual supervised learning ties, one direction: `--to fairseq`
writes a checkpoint of fairseq's own `transformer`, `--to ctranslate2` the folder that CTranslate2
translates with. Of a model trained with a twin (export_twin.py) the forward network, for fairseq.
"""

from pathlib import Path

from . import UsageError, atomic_path
from .checkpoint import model_of, read
from .export_stock import KINDS, stock_checkpoint
from .export_twin import plain_checkpoint, twin_models, use


def add_arguments(parser):
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        help=f"of a {' or '.join(KINDS)}, of which -s and -t choose a direction, or of a model "
        "with a twin",
    )
    parser.add_argument("-s", "--source-lang", metavar="SOURCE")
    parser.add_argument("-t", "--target-lang", metavar="TARGET")
    parser.add_argument("--to", required=True, choices=("fairseq", "ctranslate2"))
    parser.add_argument(
        "--output",
        required=True,
        metavar="PATH",
        help="a file for fairseq, a folder for ctranslate2; it must not exist yet",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="folder with dict.SOURCE.txt and dict.TARGET.txt (default: that of the training)",
    )
    parser.add_argument(
        "--ema",
        action="store_true",
        help="export the moving average of the parameters (of a training with --store-ema)",
    )
    parser.add_argument(
        "--quantization",
        choices=("int8", "int8_float32", "int8_float16", "int8_bfloat16")
        + ("int16", "float16", "bfloat16", "float32"),
        help="for ctranslate2: type of the stored weights (default: as in the checkpoint)",
    )
    parser.add_argument("--force", action="store_true", help="replace what --output names")


def check_output(args):
    """Raise UsageError when --output cannot be written."""
    output = Path(args.output)
    if not output.parent.is_dir():
        raise UsageError(f"--output {output}: {output.parent} is not a folder")
    if not output.exists():
        return
    if output.samefile(args.checkpoint):
        raise UsageError(f"--output {output} is the checkpoint itself; allowed: another file")
    if not args.force:
        raise UsageError(f"--output {output} exists; give another name, or --force to replace it")
    # --force replaces what an earlier export wrote, never a folder with something else in it
    if args.to == "fairseq" and not output.is_file():
        raise UsageError(f"--output {output} is a folder; --to fairseq writes a file")
    if args.to == "ctranslate2" and not (output / "model.bin").is_file():
        raise UsageError(f"--output {output} is no folder of CTranslate2; --force leaves it alone")


def chosen_parameters(state, ema, path):
    """The model's state dict, or that of its moving average; UsageError when there is none."""
    if not ema:
        return state["model"]
    average = state.get("extra_state", {}).get("ema")
    if average is None:
        raise UsageError(f"--ema: {path} holds no moving average; train with --store-ema")
    return average


def data_folder(args, kind, state):
    """The folder with the dictionaries; UsageError unless it fits the checkpoint.

    None for --to fairseq without --data, which needs no dictionaries.
    """
    from fairseq.data import Dictionary
    from fairseq.utils import split_paths

    if args.data is None and args.to == "fairseq":
        return None
    folder = Path(args.data or split_paths(state["cfg"]["task"]["data"])[0])
    for language, name in kind.embeddings(args.source_lang, args.target_lang).items():
        rows = state["model"][name].size(0)
        path = folder / f"dict.{language}.txt"
        if not path.is_file():
            raise UsageError(
                f"--data {folder}: there is no {path}; name the folder of the training"
            )
        entries = len(Dictionary.load(str(path)))
        if entries != rows:
            raise UsageError(
                f"--data {folder}: {path} has {entries} entries, the embedding of {language} in "
                f"{args.checkpoint} has {rows} rows"
            )
    return folder


def check_direction(args, kind, state):
    """Raise UsageError unless the options name a direction that the checkpoint has."""
    source, target = args.source_lang, args.target_lang
    if None in (source, target):
        model = model_of(state)
        raise UsageError(f"-s and -t: {args.checkpoint} is of a {model}; give the direction")
    lack = kind.lack(state, source, target)
    if lack:
        raise UsageError(f"-s {source} -t {target}: {args.checkpoint} {lack}")


def without_twin(args, state):
    """The plain checkpoint; UsageError for options that choose a part of it."""
    if args.to != "fairseq" or args.source_lang or args.target_lang or args.data:
        raise UsageError(
            f"--to {args.to}, -s, -t, --data: {args.checkpoint} is of a {model_of(state)}, which "
            "is exported whole; allowed: --to fairseq without -s, -t and --data"
        )
    parameters = chosen_parameters(state, args.ema, args.checkpoint)
    return plain_checkpoint(state, parameters, model_of(state), Path(args.checkpoint).name)


def exported(args):
    """(checkpoint, folder with its dictionaries or None) for the command line `args`."""
    state = read(args.checkpoint, *KINDS, *twin_models())
    kind = KINDS.get(model_of(state))
    if kind is None:
        return without_twin(args, state), None
    check_direction(args, kind, state)
    folder = data_folder(args, kind, state)
    if args.data is not None:
        state["cfg"]["task"]["data"] = args.data
    parameters = chosen_parameters(state, args.ema, args.checkpoint)
    direction, name = (args.source_lang, args.target_lang), Path(args.checkpoint).name
    try:
        stock = stock_checkpoint(kind, state, parameters, direction, name)
    except KeyError as error:
        raise UsageError(
            f"CHECKPOINT {args.checkpoint}: {error} has no place in fairseq's transformer; it was "
            "written by another version of this package"
        ) from error
    return stock, folder


def run(args):
    """Export; prints what was written and the command that uses it."""
    import torch

    if args.quantization and args.to != "ctranslate2":
        raise UsageError(f"--quantization {args.quantization} belongs to --to ctranslate2")
    if not Path(args.checkpoint).is_file():
        raise UsageError(f"CHECKPOINT {args.checkpoint} is not a file")
    check_output(args)
    if args.to == "ctranslate2":
        from .export_ctranslate2 import import_converter, write_folder

        converter = import_converter()
        stock, folder = exported(args)
        write_folder(converter, stock, folder, args.output, args.quantization)
        example = f"ctranslate2.Translator({str(args.output)!r})"
    else:
        stock, _ = exported(args)
        with atomic_path(args.output) as temporary:
            torch.save(stock, temporary)
        example = f"fairseq-generate DATA -s {args.source_lang} -t {args.target_lang}"
        example += f" --path {args.output}"
    origin = stock["extra_state"]["exported_from"]
    if "direction" not in origin:
        example = use(stock, args.output)
    part = origin.get("direction", "forward network")
    print(f"{part} of {args.checkpoint} written to {args.output}; use it with:\n  {example}")
    return 0
