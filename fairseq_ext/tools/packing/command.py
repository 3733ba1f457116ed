"""`fairseq-ext pack`: a trained model as one folder, for use elsewhere.

The folder holds the parameters (safetensors), the dictionaries, the sub-word models, the options
and a model card; `fairseq_ext.load(FOLDER)` needs nothing else. It is written whole or not at all.
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Dict, Optional, Union

from .. import UsageError, model_paths


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `fairseq-ext pack`."""
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        help="checkpoint to pack; FILE:FILE is an ensemble, as in --path of fairseq-generate",
    )
    parser.add_argument(
        "data", metavar="DATA", help="data folder of the training, with its dictionaries"
    )
    parser.add_argument(
        "--output", required=True, metavar="FOLDER", help="folder to write; it must not exist yet"
    )
    parser.add_argument(
        "--subwords",
        metavar="FILE",
        help="sub-word model, or LANGUAGE=FILE,LANGUAGE=FILE, or none for texts that are cut "
        "already (default: looked for beside the dictionaries and the checkpoint)",
    )
    parser.add_argument(
        "--bpe",
        metavar="KIND",
        help="kind of the sub-word model, as in --bpe of fairseq (default: seen in the file); "
        "characters and bytes have no file",
    )
    parser.add_argument(
        "--tokenizer",
        metavar="NAME",
        help="tokenizer of words in front of the sub-words, such as moses (default: that of the "
        "training)",
    )
    parser.add_argument(
        "--scores",
        metavar="FILE",
        help="Markdown to put into the model card, such as fairseq-ext evaluate --output writes",
    )
    parser.add_argument(
        "--without-twin",
        action="store_true",
        help="leave out the backward network of a twin, which only analyses need",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace --output if it is a packed folder"
    )


def subwords_of(text: Optional[str]) -> Union[None, str, Dict[str, str]]:
    """Return what --subwords says: a file, {language: file}, "none", or None."""
    if text is None or "=" not in text:
        return text
    files: Dict[str, str] = {}
    for entry in text.split(","):
        language, separator, path = entry.strip().partition("=")
        if not (language and separator and path) or language in files:
            raise UsageError(
                f"--subwords {text!r}: {entry!r}; allowed: FILE, none, or LANGUAGE=FILE for "
                "different languages with commas between them"
            )
        files[language] = path
    return files


def pack_model(args: Namespace) -> int:
    """Write the packed folder; print its name and the lines that use it."""
    paths = model_paths("CHECKPOINT", args.checkpoint)
    for path in paths:
        if not Path(path).is_file():
            raise UsageError(f"CHECKPOINT {path} is not a file")
    if args.scores is not None and not Path(args.scores).is_file():
        raise UsageError(f"--scores {args.scores} is not a file")
    subwords = subwords_of(args.subwords)
    # imported here: --help does without torch
    from ...inference.packing import PackOptions, pack
    from ...inference.subword_models import WITHOUT_FILE, SubwordsMissing

    options = PackOptions(
        subwords,
        args.bpe,
        args.tokenizer,
        Path(args.scores) if args.scores else None,
        not args.without_twin,
        args.force,
    )
    try:
        folder = pack(paths, args.data, args.output, options)
    except SubwordsMissing as error:
        kinds = " or ".join(WITHOUT_FILE)
        raise UsageError(
            f"{error.reason}; allowed: --subwords with its file, a file for each language, or none "
            f"for texts that are cut already; --bpe {kinds}"
        ) from error
    except (ValueError, ImportError, FileNotFoundError) as error:
        raise UsageError(str(error)) from error
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{args.checkpoint} packed into {folder}, {size / 1e6:.1f} MB; use it with:")
    print(f"  import fairseq_ext\n  model = fairseq_ext.load({str(folder)!r})")
    return 0
