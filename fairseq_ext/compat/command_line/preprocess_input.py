"""fairseq-preprocess checks its input before it writes anything."""

from __future__ import annotations

import argparse
import functools
import itertools
import logging
import os
import re
from typing import Iterator

from ..data.data_files import UnreadableFile
from ..patch_registry import PatchedModule, patch
from ..text_lines import BYTE_ORDER_MARK
from ..user_errors import OptionError
from .word_alignments import check_alignments

logger = logging.getLogger("fairseq_cli.preprocess")
# words that are symbols of every dictionary; <unk> is an unknown word, which texts may have
SYMBOLS = re.compile(rb"(?<!\S)(<s>|</s>|<pad>)(?!\S)")


@patch(
    "fairseq.file_chunker_utils",
    because="fairseq 0.12.2 takes a byte order mark for a part of the first word of a file, which "
    "is unknown then",
)
def byte_order_marks_are_no_text(module: PatchedModule) -> None:
    """Remove the mark from the first line of a file, for dictionaries and binarised text."""
    stock = module.ChunkLineIterator.__iter__

    def lines(self: object) -> Iterator[str]:
        is_first = self._start_offset == 0  # type: ignore[attr-defined]
        for line in stock(self):
            yield line.removeprefix(BYTE_ORDER_MARK) if is_first else line
            is_first = False

    module.ChunkLineIterator.__iter__ = lines


@patch(
    "fairseq_cli.preprocess",
    because="fairseq 0.12.2 binarises sides of different length, and finds missing files and lines "
    "that are not UTF-8 after it has written a part",
)
def preprocess_checks_its_input(module: PatchedModule) -> None:
    """Check files, encodings, lengths and dictionaries first."""
    stock = module.main

    @functools.wraps(stock)
    def main(args: argparse.Namespace) -> None:
        module.utils.import_user_module(args)
        check_options(args)
        for path in filter(None, (args.srcdict, args.tgtdict)):
            module.tasks.get_task(args.task).load_dictionary(path)
        for paths in corpora(args):
            lengths = {path: count_lines(path) for path in paths}
            for path, length in lengths.items():
                if not length:
                    raise UnreadableFile(f"{path}: empty; allowed: at least one line")
            if len(set(lengths.values())) > 1:  # of two files: one that is both sides is one here
                (first, count), (second, other) = lengths.items()
                raise UnreadableFile(
                    f"{first} has {count:,} lines and {second} has {other:,}; line by line they "
                    "must be translations of each other"
                )
        if has_target(args) and not args.dict_only:
            check_alignments(args)
        stock(args)

    module.main = main


def check_options(args: argparse.Namespace) -> None:
    """Raise OptionError for missing or contradictory options, OSError for files in the way."""
    if args.dataset_impl in ("huffman", "fasta"):
        raise OptionError(
            f"--dataset-impl {args.dataset_impl} is not written by fairseq-preprocess; allowed: "
            "mmap, cached, lazy, raw"
        )
    if has_target(args):
        _check_sides(args)
    if args.joined_dictionary:
        _check_joined(args)
    _check_sources(args)
    _check_files(args)


def _check_sides(args: argparse.Namespace) -> None:
    """Raise OptionError for two sides of which one has no name, or that have the same files."""
    of_source = args.srcdict, args.thresholdsrc, args.nwordssrc
    of_target = args.tgtdict, args.thresholdtgt, args.nwordstgt
    is_copy = args.source_lang == args.target_lang
    # the second side would replace the first, whose words have other numbers
    if is_copy and of_source != of_target and not args.joined_dictionary:
        raise OptionError(
            f"--target-lang {args.target_lang} is also --source-lang, with another dictionary, and "
            "both have the same files; allowed: another ending, or one dictionary"
        )
    if args.source_lang is None or args.target_lang is None:
        missing = "--source-lang" if args.source_lang is None else "--target-lang"
        raise OptionError(
            f"{missing} is missing; allowed: the ending of the files of that side, or --only-source"
        )


def _check_joined(args: argparse.Namespace) -> None:
    """Raise OptionError for what two dictionaries may have, but not one for both sides."""
    if args.srcdict and args.tgtdict:
        raise OptionError("--srcdict and --tgtdict exclude each other with --joined-dictionary")
    for name, default in (("threshold", 0), ("nwords", -1)):
        source, target = getattr(args, f"{name}src"), getattr(args, f"{name}tgt")
        if target not in (default, source):
            raise OptionError(
                f"--{name}tgt {target} has no effect with --joined-dictionary, which counts the "
                f"words of both languages together; allowed: that of --{name}src, {source}"
            )


def _check_sources(args: argparse.Namespace) -> None:
    """Raise OptionError where there is no text, or no text to make a dictionary of."""
    if args.joined_dictionary:
        has_dictionaries = args.srcdict or args.tgtdict
    else:
        has_dictionaries = args.srcdict and (args.tgtdict or not has_target(args))
    if not args.trainpref and not has_dictionaries:
        raise OptionError(
            "--trainpref is missing, from which dictionaries are made; allowed without it: "
            "--srcdict, and --tgtdict for the target"
        )
    if not (args.trainpref or args.validpref or args.testpref):
        raise OptionError(
            "--trainpref, --validpref and --testpref are missing; allowed: any of them"
        )


def _check_files(args: argparse.Namespace) -> None:
    """Raise OSError for files that are named and missing, and for dictionaries in the way."""
    for name in ("srcdict", "tgtdict", "alignfile"):
        path = getattr(args, name)
        if path and not os.path.isfile(path):
            raise FileNotFoundError(2, f"no such file, named by --{name}", path)
    langs = [(args.source_lang, args.srcdict)]
    if has_target(args):
        langs.append((args.target_lang, args.tgtdict))
    for lang, dictionary in langs:
        name = "dict.txt" if lang is None else f"dict.{lang}.txt"
        path = os.path.join(args.destdir, name)
        if not dictionary and os.path.exists(path):
            raise FileExistsError(
                17,  # EEXIST
                "there already; name it with --srcdict or --tgtdict to use it, or take another "
                "--destdir",
                path,
            )


def has_target(args: argparse.Namespace) -> bool:
    """Return True if there are two sides; a language model has one, often without a language."""
    both_missing = args.source_lang is None and args.target_lang is None
    return not args.only_source and not both_missing


def corpora(args: argparse.Namespace) -> list[tuple[str, ...]]:
    """Return the text files that will be read; those of one tuple must have as many lines."""
    langs = [args.source_lang] + ([args.target_lang] if has_target(args) else [])
    # --validpref and --testpref may name several sets, --trainpref is one
    lists = [[args.trainpref] if args.trainpref else []]
    lists += [(prefixes or "").split(",") for prefixes in (args.validpref, args.testpref)]
    # --dict-only reads the training files only
    chosen = lists[:1] if args.dict_only else lists
    prefixes = [prefix for prefix in itertools.chain(*chosen) if prefix]  # "" is no set
    return [
        tuple(prefix if lang is None else f"{prefix}.{lang}" for lang in langs)
        for prefix in prefixes
    ]


def count_lines(path: str) -> int:
    """Return the number of lines of a text file; warn of words that are symbols.

    Raises OSError for a missing file and UnreadableFile for a line that is not UTF-8, or that has a
    carriage return inside, after which fairseq would begin a line that the other side has not.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(21, "a folder, not a text file", path)
    number = count = 0
    first = ""
    with open(path, "rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise UnreadableFile(
                    f"{path}, line {number}: not UTF-8 (byte 0x{line[error.start]:02x} at "
                    f"{error.start})"
                ) from error
            if b"\r" in line.removesuffix(b"\n").removesuffix(b"\r"):
                raise UnreadableFile(
                    f"{path}, line {number}: a carriage return within the line, where fairseq "
                    "would begin another one; allowed: carriage returns at the ends of lines"
                )
            symbol = SYMBOLS.search(line) if b"<" in line else None
            if symbol:
                count += 1
                first = first or f"{path}, line {number}: the word {symbol[1].decode()}"
    if count:
        more = f" ({count:,} lines in all)" if count > 1 else ""
        logger.warning(
            f"{first} is a symbol of fairseq's, not text{more}: </s> ends a sentence, and none of "
            "<s>, </s> and <pad> is in the references of fairseq-generate"
        )
    return number
