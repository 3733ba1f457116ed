"""Named entities in columns: rows as tags and back, and faulty ones."""

import random

import pytest

from fairseq_ext.routed import linearise
from fairseq_ext.routed.formats import Malformed, ner
from fairseq_ext.routed.formats.ner import Span


def conll(words, tags):
    """Rows of four columns."""
    return "\n".join(f"{word} NN I-NP {tag}" for word, tag in zip(words, tags))


@pytest.mark.parametrize(
    "iob1, iob2, entities",
    [
        ("I-ORG O I-MISC O", "B-ORG O B-MISC O", [("ORG", 0, 1), ("MISC", 2, 3)]),
        # two entities of one type side by side: only here does IOB1 write B-
        ("I-PER B-PER I-PER", "B-PER B-PER I-PER", [("PER", 0, 1), ("PER", 1, 3)]),
        ("I-PER I-PER I-LOC O", "B-PER I-PER B-LOC O", [("PER", 0, 2), ("LOC", 2, 3)]),
        ("O", "O", []),
    ],
)
def test_both_schemes_say_the_same_entities(iob1, iob2, entities):
    entities = [Span(*entity) for entity in entities]
    for tags in (iob1.split(), iob2.split()):
        assert ner.spans(tags) == entities
        words = "abcd"[: len(tags)]
        for scheme, expected in (("iob1", iob1), ("iob2", iob2), ("keep", " ".join(tags))):
            assert ner.forward(conll(words, tags), scheme) == (" ".join(words), expected)
            written = ner.backward(" ".join(words), " ".join(tags), scheme).split("\n")[:-1]
            rows = [list(row) for row in zip(words, expected.split())]
            assert [row.split() for row in written] == rows


@pytest.mark.parametrize("scheme", ["iob1", "iob2"])
def test_random_entities_survive_the_tags(scheme):
    rng = random.Random(1)
    for _ in range(200):
        entities, place = [], 0
        while place < 9:
            end = place + rng.randint(1, 3)
            if rng.random() < 0.6:
                entities.append(Span(rng.choice("AB"), place, end))
            place = end
        assert ner.spans(ner.tags_of(entities, 12, scheme)) == entities


def test_marks_of_documents_are_no_sentences():
    lines = ["-DOCSTART- -X- O O", "EU O", "says O", "-DOCSTART- O", "", "he O"]
    assert list(ner.blocks(lines)) == [(2, "EU O\nsays O"), (6, "he O")]


@pytest.mark.parametrize(
    "text, line, reason",
    [
        ("a NN O\nb NN X-PER", 1, "tag 'X-PER'; allowed: O, B-TYPE, I-TYPE"),
        ("a NN O\nb NN B-", 1, "tag 'B-'"),
        ("a NN O\nb O\nc NN O", 1, r"row 'b O' has 2 columns; allowed: .* \(3\)"),
        ("word", 0, "row 'word' has 1 columns; allowed: a word and a tag"),
    ],
)
def test_faulty_rows_are_named(text, line, reason):
    with pytest.raises(Malformed, match=reason) as error:
        ner.forward(text)
    assert error.value.line == line


def test_the_rows_of_a_file_have_as_many_columns(tmp_path):
    """Of a word's three columns the last is no tag, and a faulty first row is named itself."""
    path = tmp_path / "file"
    path.write_text(
        "-DOCSTART- O\n\nEU NNP I-NP I-ORG\n\nPeter NNP I-NP\n\nhe O\nsays VBZ I-VP O\n",
        encoding="utf-8",
    )
    items = list(linearise.pairs("ner", [path]))
    assert items[0] == ("EU", "B-ORG")
    assert f"{path}, line 5: row 'Peter NNP I-NP' has 3 columns; allowed: as many" in str(items[1])
    assert f"{path}, line 7: row 'he O' has 2 columns" in str(items[2]) and len(items) == 3


def test_as_many_tags_as_words():
    with pytest.raises(Malformed, match="3 tags for 2 words"):
        ner.backward("a b", "O O O")
