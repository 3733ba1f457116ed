"""Named entities in columns (CoNLL-2003): a sentence and as many tags as it has words.

    EU NNP I-NP I-ORG
    rejects VBZ I-VP O          ->  EU rejects German call      B-ORG O B-MISC O
    German JJ I-NP I-MISC
    call NN I-NP O

A row is a word; its first column is the word, its last one the tag. Blank lines and the marks of
documents part sentences.
"""

from collections import Counter
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

from . import Block, LinePair, Malformed, paragraphs

DOCUMENT = "-DOCSTART-"
OUTSIDE = "O"


def blocks(lines: Iterable[str]) -> Iterator[Block]:
    """Yield the paragraphs, without the marks of documents."""
    # such a line parts sentences, as a blank one does
    return paragraphs("" if line.split()[:1] == [DOCUMENT] else line for line in lines)


class Span(NamedTuple):
    """An entity: words ``start`` to ``end`` - 1, counted from 0."""

    kind: str
    start: int
    end: int


def split_tag(tag: str) -> Tuple[str, str]:
    """Return ("B", "ORG") of "B-ORG", ("O", "") of "O". Raises Malformed for anything else."""
    prefix, _, kind = tag.partition("-")
    if tag == OUTSIDE or (prefix in ("B", "I") and kind):
        return prefix, kind
    raise Malformed(f"tag {tag!r}; allowed: O, B-TYPE, I-TYPE")


def spans(tags: List[str]) -> List[Span]:
    """Return the entities of a sentence, by start.

    One begins at B-TYPE, and at I-TYPE where the word before is outside or of another type. This
    reads IOB1 (B- only between two entities of one type) and IOB2 (B- at every beginning) alike.
    Raises Malformed for a tag that is none.
    """
    entities: List[Span] = []
    before = ""
    for place, tag in enumerate(tags):
        prefix, kind = split_tag(tag)
        # after another type, or after none, I- begins an entity as well (IOB1)
        if kind and (prefix == "B" or kind != before):
            entities.append(Span(kind, place, place + 1))
        elif kind:
            entities[-1] = entities[-1]._replace(end=place + 1)
        before = kind  # "" for O
    return entities


def tags_of(entities: List[Span], length: int, scheme: str) -> List[str]:
    """Return ``length`` tags that say ``entities``, in "iob2" or "iob1"."""
    tags, last = [OUTSIDE] * length, Span("", -1, -1)
    for entity in entities:
        kind, start, end = entity
        # IOB1 writes B- only where it would otherwise run into the entity before
        touches = (kind, start) == (last.kind, last.end)
        first = "B" if scheme == "iob2" or touches else "I"
        tags[start:end] = [f"{first}-{kind}"] + [f"I-{kind}"] * (end - start - 1)
        last = entity
    return tags


def of_file(lines: List[str]) -> Dict[str, Any]:
    """Return the number of columns that most rows of a file have, as an option of ``forward``."""
    rows_of_words = (line.split() for line in lines if line.strip())
    counts = Counter(len(columns) for columns in rows_of_words if columns[0] != DOCUMENT)
    return {"width": counts.most_common(1)[0][0]} if counts else {}


def rows(text: str, width: int) -> Iterator[List[str]]:
    """Yield the columns of each row.

    Raises Malformed where there are fewer than two, or not ``width``; 0 for that of the first row.
    """
    for place, line in enumerate(text.split("\n")):
        columns = line.split()
        # without a width all rows are held against the first
        width = width or len(columns)
        if len(columns) < 2 or len(columns) != width:
            allowed = f"as many as the others have ({width})" if width > 1 else "a word and a tag"
            raise Malformed(f"row {line!r} has {len(columns)} columns; allowed: {allowed}", place)
        yield columns


def forward(text: str, scheme: str = "iob2", width: int = 0) -> LinePair:
    """Return (words, tags) of a block of rows.

    scheme: of the tags that are written; "keep" leaves them as they are. width: see ``rows``.
    """
    table = list(rows(text, width))
    tags = [columns[-1] for columns in table]
    for place, tag in enumerate(tags):
        try:
            split_tag(tag)
        except Malformed as error:
            raise Malformed(str(error), place) from error
    if scheme != "keep":
        tags = tags_of(spans(tags), len(tags), scheme)
    return " ".join(columns[0] for columns in table), " ".join(tags)


def backward(source: str, target: str, scheme: str = "keep") -> str:
    """Return rows of two columns. Raises Malformed unless there are as many tags as words."""
    words, tags = source.split(), target.split()
    if len(words) != len(tags):
        raise Malformed(f"{len(tags)} tags for {len(words)} words")
    entities = spans(tags)  # raises Malformed for what is no tag, also if all are kept as they are
    if scheme != "keep":
        tags = tags_of(entities, len(tags), scheme)
    return "".join(f"{word} {tag}\n" for word, tag in zip(words, tags))
