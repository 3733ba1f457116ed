"""Auxiliary tasks as translation: annotated corpora <-> parallel text files (Sec. 3.2).

    ner     named entities in columns (CoNLL-2003)      sentence -> tags
    tree    Penn Treebank .mrg                          sentence -> linearised tree
    amr     PENMAN graphs                               sentence -> linearised graph

What a line looks like is in ``formats``; here are files, and what is done about faulty items.
fairseq-preprocess makes the two files PREFIX.src and PREFIX.tgt into training data; the inverse
turns sentences and predictions into the format of the corpus.
"""

import io
import zipfile
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Tuple, TypeVar, Union

from ..compat.text_lines import UNREADABLE, UnreadableText, decoded, lines_of
from .formats import Format, LinePair, Malformed, graphs, ner, trees

PathName = Union[str, Path]
Item = TypeVar("Item")
FORMATS: Dict[str, Format] = {"ner": ner, "tree": trees, "amr": graphs}
# the members of a .zip that count, by the ending of their names
MEMBERS = {"ner": "", "tree": ".mrg", "amr": ""}


def check_format(name: str) -> Format:
    """Return the module of a format. Raises ValueError for another name."""
    if name not in FORMATS:
        raise ValueError(f"FORMAT {name!r}; allowed: {', '.join(FORMATS)}")
    return FORMATS[name]


def texts(path: PathName, ending: str = "") -> Iterator[Tuple[str, List[str]]]:
    """Yield (name, lines) of a plain or .gz file, or of each member of a .zip by name.

    ending: of the names of the members that are read. Raises ValueError, naming the file, when
    there is none or it cannot be read.
    """
    path = Path(path)
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                # names of folders end in a slash
                names = sorted(
                    name
                    for name in archive.namelist()
                    if name.endswith(ending) and not name.endswith("/")
                )
                if not names:
                    raise ValueError(f"{path} has no member whose name ends in {ending!r}")
                for name in names:
                    member = f"{path}:{name}"
                    yield member, list(decoded(io.BytesIO(archive.read(name)), member))
        else:
            yield str(path), list(lines_of(path))
    except UNREADABLE as error:
        raise UnreadableText(f"cannot read {path}: {error}") from error


def _located(name: str, number: int, error: Malformed) -> Malformed:
    """Return the error with the file and the line; ``number`` is that of the item's first line."""
    # the format counts lines from 0, from the first of the item
    return Malformed(f"{name}, line {number + error.line}: {error}")


def pairs(
    name: str, paths: Iterable[PathName], **options: Any
) -> Iterator[Union[LinePair, Malformed]]:
    """Yield (source line, target line) of every item of the files.

    For a faulty item it is its ``Malformed``, whose text begins with file and line.

    name: of the format. options: of its ``forward``.
    """
    check_format(name)
    for path in paths:
        for text_name, lines in texts(path, MEMBERS[name]):
            yield from text_pairs(name, text_name, lines, **options)


def text_pairs(
    name: str, text_name: str, lines: List[str], **options: Any
) -> Iterator[Union[LinePair, Malformed]]:
    """Yield what ``pairs`` does, of one of the ``texts``."""
    module = check_format(name)
    # what the file as a whole tells, such as the number of columns; the caller's options win
    options = {**module.of_file(lines), **options}
    for number, text in module.blocks(lines):
        try:
            pair = module.forward(text, **options)
            # a block of comments alone is no item
            if pair:
                # the inverse has to read what is written, or it could not judge predictions
                _check(name, *pair)
                yield pair
        except Malformed as error:
            yield _located(text_name, number, error)


def _check(name: str, source: str, target: str) -> None:
    """Raise Malformed unless the inverse would read the pair."""
    if name == "ner" and len(source.split()) != len(target.split()):
        raise Malformed(f"{len(target.split())} tags for {len(source.split())} words")
    if name == "tree" and len(trees.read_line(target).leaves()) != len(source.split()):
        raise Malformed(f"another number of leaves than of words in {target}")
    if name == "amr":
        graphs.read_line(target)


def items(
    name: str, sources: PathName, targets: PathName, **options: Any
) -> Iterator[Union[str, Malformed]]:
    """Yield text in the format of the corpus for every line of two files, or its ``Malformed``.

    Raises ValueError when the files differ in their number of lines.
    """
    module = check_format(name)
    # line N of one file belongs to line N of the other, blank ones too
    sides = [[line for _, lines in texts(path) for line in lines] for path in (sources, targets)]
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"{sources} has {len(sides[0])} lines and {targets} {len(sides[1])}: line N of one "
            "must belong to line N of the other"
        )
    for number, (source, target) in enumerate(zip(*sides), start=1):
        try:
            yield module.backward(source, target, **options)
        except Malformed as error:
            yield _located(str(targets), number, error)


def well_formed(
    results: Iterable[Union[Item, Malformed]],
    skip_bad: bool,
    counts: Dict[str, int],
    problems: List[str],
) -> Iterator[Item]:
    """Yield the results that are not ``Malformed``, and count both kinds.

    Without ``skip_bad`` the first ``Malformed`` is raised; otherwise its text is put in
    ``problems``.
    """
    for result in results:
        if isinstance(result, Malformed):
            if not skip_bad:
                raise result
            counts["skipped"] += 1
            problems.append(str(result))
        else:
            counts["written"] += 1
            yield result
