"""`fairseq-ext export`: checkpoints for programs without this package.

Of a dual model, or of two models that dual supervised learning ties, one direction: `--to fairseq`
writes a checkpoint of fairseq's own `transformer`, `--to ctranslate2` the folder that CTranslate2
translates with. Of a model trained with a twin the forward network, for fairseq. What is exported
how is said by the systems, see protocol.py.
"""

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import NamedTuple, Optional

from ...compat.checkpoints.dictionary_digests import digest, stored_digests
from .. import UsageError, check_new, save_atomically
from ..checkpoint.reading import model_of, read
from .protocol import (
    Checkpoint,
    DirectionExporter,
    Parameters,
    WholeExporter,
    all_exporters,
    stock_checkpoint,
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `fairseq-ext export`."""
    models = " or ".join(all_exporters().directions)
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        help=f"checkpoint of a {models}, of which -s and -t choose a direction, or of a model "
        "with a twin",
    )
    parser.add_argument(
        "-s", "--source-lang", metavar="SOURCE", help="source language of the direction"
    )
    parser.add_argument(
        "-t", "--target-lang", metavar="TARGET", help="target language of the direction"
    )
    parser.add_argument(
        "--to",
        required=True,
        choices=("fairseq", "ctranslate2"),
        help="program that reads the result; ctranslate2 takes single directions alone",
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="PATH",
        help="what to write: a file for fairseq, a folder for ctranslate2; it must not exist yet",
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
    parser.add_argument("--force", action="store_true", help="replace --output if it exists")


def check_output(args: Namespace) -> None:
    """Raise UsageError when --output cannot be written."""
    output = Path(args.output)
    if not output.parent.is_dir():
        raise UsageError(f"--output {output}: {output.parent} is not a folder")
    if not output.exists():
        return
    if output.samefile(args.checkpoint):
        raise UsageError(f"--output {output} is the checkpoint itself; allowed: another file")
    check_new(output, args.force)
    # --force replaces what an earlier export wrote, never a folder with something else in it
    if args.to == "fairseq" and not output.is_file():
        raise UsageError(f"--output {output} is a folder; --to fairseq writes a file")
    if args.to == "ctranslate2" and not (output / "model.bin").is_file():
        raise UsageError(f"--output {output} is no folder of CTranslate2; --force leaves it alone")


def chosen_parameters(state: Checkpoint, ema: bool, path: str) -> Parameters:
    """Return the model's state dict, or its moving average's; UsageError when there is none."""
    if not ema:
        return state["model"]
    average = state.get("extra_state", {}).get("ema")
    if average is None:
        raise UsageError(f"--ema: {path} holds no moving average; train with --store-ema")
    return average


def data_folder(args: Namespace, exporter: DirectionExporter, state: Checkpoint) -> Optional[Path]:
    """Return the folder with the dictionaries; UsageError unless it fits the checkpoint.

    None for --to fairseq without --data, which needs no dictionaries.
    """
    from fairseq.data import Dictionary
    from fairseq.utils import split_paths

    if args.data is None and args.to == "fairseq":
        return None
    folder = Path(args.data or split_paths(state["cfg"]["task"]["data"])[0])
    for language, name in exporter.embeddings(args.source_lang, args.target_lang).items():
        # another size: rows without words, or words without rows
        rows = state["model"][name].size(0)
        path = folder / f"dict.{language}.txt"
        if not path.is_file():
            raise UsageError(
                f"--data {folder}: there is no {path}; name the folder of the training"
            )
        dictionary = Dictionary.load(str(path))
        entries = len(dictionary)
        if entries != rows:
            raise UsageError(
                f"--data {folder}: {path} has {entries} entries, the embedding of {language} in "
                f"{args.checkpoint} has {rows} rows"
            )
        # as many words in another order would be those of other rows
        if stored_digests(state).get(language, digest(dictionary)) != digest(dictionary):
            raise UsageError(
                f"--data {folder}: {args.checkpoint} was trained with another dictionary of "
                f"{language} than {path}; name the folder of the training"
            )
    return folder


def check_direction(args: Namespace, exporter: DirectionExporter, state: Checkpoint) -> None:
    """Raise UsageError unless the options name a direction that the checkpoint has."""
    source, target = args.source_lang, args.target_lang
    if None in (source, target):
        model = model_of(state)
        raise UsageError(f"-s and -t: {args.checkpoint} is of a {model}; give the direction")
    lack = exporter.lack(state, source, target)
    if lack:
        raise UsageError(f"-s {source} -t {target}: {args.checkpoint} {lack}")


class Exported(NamedTuple):
    """A checkpoint to be written.

    part: what of the old checkpoint it holds. usage: the command that uses the file. folder: where
    its dictionaries are, or None.
    """

    checkpoint: Checkpoint
    part: str
    usage: str
    folder: Optional[Path] = None


def export_whole(args: Namespace, exporter: WholeExporter, state: Checkpoint) -> Exported:
    """Return the plain checkpoint; UsageError for options that choose a part of it."""
    model = model_of(state)
    if args.to != "fairseq" or args.source_lang or args.target_lang or args.data:
        raise UsageError(
            f"--to {args.to}, -s, -t, --data: {args.checkpoint} is of a {model}, which "
            "is exported whole; allowed: --to fairseq without -s, -t and --data"
        )
    parameters = chosen_parameters(state, args.ema, args.checkpoint)
    stock = exporter.plain_checkpoint(state, parameters, model, Path(args.checkpoint).name)
    return Exported(stock, "forward network", exporter.usage(stock, args.output))


def export_direction(args: Namespace, exporter: DirectionExporter, state: Checkpoint) -> Exported:
    """Return the stock checkpoint of the direction that the options name."""
    check_direction(args, exporter, state)
    folder = data_folder(args, exporter, state)
    if args.data is not None:
        state["cfg"]["task"]["data"] = args.data  # the folder that the exported model looks in
    parameters = chosen_parameters(state, args.ema, args.checkpoint)
    direction, name = (args.source_lang, args.target_lang), Path(args.checkpoint).name
    try:
        stock = stock_checkpoint(exporter, state, parameters, direction, name)
    except KeyError as error:
        raise UsageError(
            f"CHECKPOINT {args.checkpoint}: {error} has no place in fairseq's transformer; it was "
            "written by another version of this package"
        ) from error
    path = shlex.quote(args.output)
    usage = f"fairseq-generate DATA -s {direction[0]} -t {direction[1]} --path {path}"
    return Exported(stock, "-".join(direction), usage, folder)


def export(args: Namespace) -> Exported:
    """Return what the command line asks for; UsageError where the checkpoint has no exporter."""
    exporters = all_exporters()
    state = read(args.checkpoint, *exporters.directions, *exporters.whole)
    model = model_of(state)
    if model in exporters.directions:
        return export_direction(args, exporters.directions[model], state)
    return export_whole(args, exporters.whole[model], state)


def export_model(args: Namespace) -> int:
    """Write the exported model; print what was written and the command that uses it."""
    if args.quantization and args.to != "ctranslate2":
        raise UsageError(f"--quantization {args.quantization} belongs to --to ctranslate2")
    if not Path(args.checkpoint).is_file():
        raise UsageError(f"CHECKPOINT {args.checkpoint} is not a file")
    check_output(args)  # before the checkpoint is read, which takes longer
    if args.to == "ctranslate2":
        from .ctranslate2 import import_converter, write_folder

        converter = import_converter()  # missing: said before anything else is done
        exported = export(args)
        write_folder(
            converter, exported.checkpoint, exported.folder, args.output, args.quantization
        )
        usage = f"ctranslate2.Translator({str(args.output)!r})"
    else:
        exported = export(args)
        save_atomically(exported.checkpoint, args.output)
        usage = exported.usage
    print(f"{exported.part} of {args.checkpoint} written to {args.output}; use it with:\n  {usage}")
    return 0
