"""What fairseq-preprocess leaves after an error or a signal: nothing that looks like a set."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
from typing import Iterator

from ..atomic_files import NO_SPACE, remove, removers
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_within


@patch(
    "fairseq_cli.preprocess",
    because="fairseq 0.12.2: a full disk leaves a part of a text (--dataset-impl raw) or of a "
    "dictionary, which reads as a whole one, and the error names no file",
)
def unfinished_sets_are_removed(module: PatchedModule) -> None:
    """Remove what the command has written when it ends early; an error names the folder."""
    call_within(module, "main", whole_or_nothing)


@contextlib.contextmanager
def whole_or_nothing(args: argparse.Namespace) -> Iterator[None]:
    """Remove the sets and dictionaries that the block has written if an error or signal ends it.

    Other files stay: preprocess.log, a dictionary that --srcdict or --tgtdict names, and the sets
    of other languages that another process writes meanwhile. Raises OSError that names the folder
    where a full disk is why.
    """
    before = _written(args)

    def remove_written() -> None:
        for name, state in _written(args).items():
            if state != before.get(name):
                remove(os.path.join(args.destdir, name))

    removers.append(remove_written)
    try:
        yield
    except BaseException as error:
        remove_written()
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            raise OSError(error.errno, error.strerror, args.destdir) from error
        raise
    finally:
        removers.remove(remove_written)


def _written(args: argparse.Namespace) -> dict[str, tuple[int, int, int]]:
    """Return {name: what tells a file from one that is written later} of the command's files."""
    langs = [lang for lang in (args.source_lang, args.target_lang) if lang is not None]
    dictionaries = "|".join(re.escape(lang) for lang in langs)
    # without a language, sets are named train.bin, not train.xx-yy.xx.bin, and train.pt1.bin the
    # part that the first of several processes makes
    pair = rf"\.{args.source_lang}-{args.target_lang}(\..*)?"
    ending = pair if langs else r"((\.pt\d+)?\.(bin|idx))?"
    sets = rf"(train|valid|test)\d*(\.align)?{ending}"
    names = re.compile(rf"dict(\.({dictionaries}))?\.txt|{sets}")
    if not os.path.isdir(args.destdir):
        return {}
    dictionaries_read = {os.path.realpath(path) for path in (args.srcdict, args.tgtdict) if path}
    files = {}
    for entry in os.scandir(args.destdir):
        is_read = os.path.realpath(entry.path) in dictionaries_read
        if names.fullmatch(entry.name) and entry.is_file() and not is_read:
            state = entry.stat()
            files[entry.name] = state.st_ino, state.st_size, state.st_mtime_ns
    return files
