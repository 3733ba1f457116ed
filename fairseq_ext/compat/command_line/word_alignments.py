"""fairseq-preprocess: alignments of words, and the most frequent translation of each word.

--align-suffix names the files that --load-alignments reads in a training; from --alignfile, one
file, comes the list of translations that --replace-unk reads.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from ..data.data_files import UnreadableFile
from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.data import Dictionary


class NumbersOfWords:
    """A dictionary whose lines are lists of numbers in place of tensors."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dictionary, name)

    def __getitem__(self, number: int) -> str:
        return str(self._dictionary[number])

    def encode_line(self, line: str, **options: Any) -> list[int]:
        """Return the numbers of the words of a line."""
        numbers: list[int] = self._dictionary.encode_line(line, **options).tolist()
        return numbers


@patch(
    "fairseq_cli.preprocess",
    because="fairseq 0.12.2: --alignfile counts each occurrence of a word by itself, so that "
    "alignment.xx-yy.txt has a line for each of them, and --replace-unk takes the last translation "
    "of a word in place of the most frequent",
)
def translations_are_counted(module: PatchedModule) -> None:
    """Count by numbers: tensors, which stock counts by, differ from each other as keys."""
    stock = module._align_files

    @functools.wraps(stock)
    def _align_files(args: argparse.Namespace, src_dict: Dictionary, tgt_dict: Dictionary) -> None:
        stock(args, NumbersOfWords(src_dict), NumbersOfWords(tgt_dict))

    module._align_files = _align_files


@patch(
    "fairseq_cli.preprocess",
    because="fairseq 0.12.2: where --validpref or --testpref name several sets, --align-suffix "
    "looks for one file beside them, finds none, and leaves out their alignments",
)
def every_set_is_aligned(module: PatchedModule) -> None:
    """Write the alignments of each set under the name of its texts: valid, valid1 and so on."""

    def _make_all_alignments(args: argparse.Namespace) -> None:
        for path, output in alignment_files(args).items():
            module._make_binary_alignment_dataset(path, output, num_workers=args.workers, args=args)

    module._make_all_alignments = _make_all_alignments


def alignment_files(args: argparse.Namespace) -> dict[str, str]:
    """Return {file of alignments: its name in the data folder}, of the sets that have one."""
    files = {}
    for name in ("train", "valid", "test"):
        prefixes = getattr(args, f"{name}pref") or ""
        # a training set has no second part
        listed = [prefixes] if name == "train" else prefixes.split(",")
        for number, prefix in enumerate(listed):
            path = f"{prefix}.{args.align_suffix}"
            if prefix and os.path.exists(path):
                files[path] = f"{name}{number or ''}.align"
    return files


def check_alignments(args: argparse.Namespace) -> None:
    """Raise UnreadableFile for alignments that are not those of the texts, naming file and line.

    OptionError where --align-suffix finds no file, and for --alignfile without texts.
    """
    languages = (args.source_lang, args.target_lang)
    if args.align_suffix:
        files = alignment_files(args)
        if not files:
            raise OptionError(
                f"--align-suffix {args.align_suffix}: no set has a file of alignments; allowed: "
                f"such as {args.trainpref or args.validpref or args.testpref}.{args.align_suffix}"
            )
        for path in files:
            prefix = path.removesuffix(f".{args.align_suffix}")
            _check_lines(path, *(f"{prefix}.{language}" for language in languages))
    if args.alignfile:
        if not args.trainpref:
            raise OptionError(
                f"--alignfile {args.alignfile}: aligns the words of --trainpref, which is missing"
            )
        _check_lines(args.alignfile, *(f"{args.trainpref}.{language}" for language in languages))


def _check_lines(path: str, source: str, target: str) -> None:
    """Raise UnreadableFile unless each line has pairs of numbers of words of its sentences."""
    files = [open(name, encoding="utf-8", newline="\n") for name in (path, source, target)]
    with files[0] as alignments, files[1] as sources, files[2] as targets:
        for number, (line, *texts) in enumerate(zip_longest(alignments, sources, targets), 1):
            if None in (line, *texts):
                shorter = path if line is None else source if texts[0] is None else target
                raise UnreadableFile(
                    f"{path}, line {number}: {shorter} has no such line; allowed: a line for each "
                    f"pair of sentences of {source} and {target}"
                )
            lengths = [len(text.split()) for text in texts]
            for entry in line.split():
                words = re.fullmatch(r"(\d+)-(\d+)", entry, re.ASCII)
                if not words or any(int(w) >= n for w, n in zip(words.groups(), lengths)):
                    raise UnreadableFile(
                        f"{path}, line {number}: {entry!r}; allowed: I-J, where I counts the "
                        f"{lengths[0]} words of the source and J the {lengths[1]} of the target, "
                        "both from 0"
                    )
