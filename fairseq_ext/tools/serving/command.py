"""`fairseq-ext serve`: trained models over HTTP, with a page that shows what they do."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from .. import UsageError, model_paths
from .hosts import host_name, without_port
from .limits import Limits, add_limits, limits_of, number

if TYPE_CHECKING:
    from .served import ServedModel

DTYPES = ("float32", "bfloat16", "float16")
ENGINES = ("fairseq", "ctranslate2")
NEEDS_EXTRA = "needs the packages starlette and uvicorn: pip install 'fairseq-ext[serve]'"
LARGEST_PORT = 65535


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `fairseq-ext serve`."""
    add = parser.add_argument
    add(
        "models",
        nargs="+",
        metavar="FOLDER",
        help="folder written by fairseq-ext pack, or a checkpoint (FILE:FILE is an ensemble); "
        "NAME=FOLDER names it in requests (default: the last part of the path)",
    )
    add("--data", metavar="DATA", help="data folder of the checkpoints among them")
    add("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    add(
        "--allow-host",
        action="append",
        type=host_name,
        default=[],
        metavar="NAME",
        help="name by which requests may call the server, beside addresses, localhost and the name "
        "in --host; * is any. May be given several times",
    )
    add(
        "--port",
        type=number(0, int, LARGEST_PORT),
        default=8000,
        metavar="N",
        help="0 is any free one (default 8000)",
    )
    add("--engine", choices=ENGINES, default="fairseq", help="what searches (default: fairseq)")
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    add(
        "--dtype",
        choices=DTYPES,
        default="float32",
        help="type of the parameters (default: float32)",
    )
    add("--threads", type=number(1, int), metavar="N", help="of the arithmetic (default: torch's)")
    add("--access-log", action="store_true", help="log a line for each request")
    add_limits(parser)


def named_paths(entries: list[str]) -> dict[str, list[str]]:
    """Return {name: paths} of FOLDER, FILE:FILE or NAME=FOLDER; UsageError."""
    models: dict[str, list[str]] = {}
    for entry in entries:
        name, separator, text = entry.partition("=")
        if not separator or "/" in name or Path(entry).exists():
            name, text = "", entry
        paths = model_paths("FOLDER", text)
        name = name or default_name(Path(paths[0]))
        if name in models:
            raise UsageError(f"FOLDER {entry}: a second {name!r}; allowed: another NAME=FOLDER")
        models[name] = paths
    return models


def default_name(path: Path) -> str:
    """Return the name of a model: that of its folder."""
    resolved = path.resolve()
    return resolved.name if resolved.is_dir() else resolved.parent.name


def load_model(name: str, paths: list[str], args: Namespace, limits: Limits) -> ServedModel:
    """Return a model that is ready."""
    from ...inference.loading import load
    from ...inference.packed import is_packed
    from .served import ServedModel

    data = None if is_packed(Path(paths[0])) else args.data
    model = load(paths, data, device=args.device, dtype=args.dtype)
    if args.engine == "ctranslate2":
        from .ctranslate2_model import CTranslate2Model

        return CTranslate2Model(name, model, limits, paths)
    return ServedModel(name, model, limits)


def serve_models(args: Namespace) -> int:
    """Serve until a signal ends it; print where."""
    try:
        from .app import Application
        from .server import address_of, listening_socket, serve
    except ImportError as error:
        raise UsageError(f"fairseq-ext serve {NEEDS_EXTRA} ({error})") from error
    import torch

    from ...inference.packed import is_packed
    from ...inference.subword_models import SubwordsMissing

    limits = limits_of(args)
    paths = named_paths(args.models)
    if args.data and all(is_packed(Path(files[0])) for files in paths.values()):
        raise UsageError(
            f"--data {args.data}: packed folders hold their dictionaries; leave it out"
        )
    if args.threads:
        torch.set_num_threads(args.threads)
    with listening_socket(args.host, args.port) as listener:
        models = {}
        for name, files in paths.items():
            try:
                models[name] = load_model(name, files, args, limits)
            except SubwordsMissing as error:
                raise UsageError(
                    f"FOLDER {files[0]}: {error.reason}; allowed: its file in one of these places, "
                    "or a folder that fairseq-ext pack has written, with --subwords or --bpe"
                ) from error
            except (ValueError, ImportError, FileNotFoundError) as error:
                raise UsageError(str(error)) from error
            print(f"{name}: {models[name].summary()}", flush=True)

        def started() -> None:
            print(f"serving at {address_of(listener)}; Ctrl-C ends it", flush=True)

        hosts = [without_port(args.host), *args.allow_host]
        serve(Application(models, limits, hosts), listener, started, args.access_log)
    print("all requests are answered", flush=True)
    return 0
