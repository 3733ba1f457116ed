"""What one item of each format becomes, and back: examples by hand, random ones, faulty ones."""

import random
import re

import pytest

from fairseq_ext.routed import linearise, scores
from fairseq_ext.routed.formats import DEEPEST, Malformed, graphs, ner, trees
from fairseq_ext.routed.formats.ner import Span

# ---------------------------------------------------------------- named entities


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
        for scheme, wanted in (("iob1", iob1), ("iob2", iob2), ("keep", " ".join(tags))):
            assert ner.forward(conll(words, tags), scheme) == (" ".join(words), wanted)
            written = ner.backward(" ".join(words), " ".join(tags), scheme).split("\n")[:-1]
            assert [row.split() for row in written] == [list(p) for p in zip(words, wanted.split())]


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
    found = list(linearise.pairs("ner", [path]))
    assert found[0] == ("EU", "B-ORG")
    assert f"{path}, line 5: row 'Peter NNP I-NP' has 3 columns; allowed: as many" in str(found[1])
    assert f"{path}, line 7: row 'he O' has 2 columns" in str(found[2]) and len(found) == 3


def test_as_many_tags_as_words():
    with pytest.raises(Malformed, match="3 tags for 2 words"):
        ner.backward("a b", "O O O")


# ---------------------------------------------------------------- trees

TREEBANK = """
( (S
    (NP-SBJ-1 (NNP John) )
    (VP (VBZ has) (SBAR (-NONE- 0) (S (-NONE- *T*-1) ))
      (NP=2 (DT a) (NN and\\/or) ) )
    (-LRB- -LRB-) (NP (-NONE- *) ) (. .) ))
"""
WORDS = "John has a and/or ( ."


@pytest.mark.parametrize(
    "options, line",
    [
        ({}, "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP -LRB- . )S"),
        ({"leaves": "xx"}, "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX XX )S"),
        ({"leaves": "word"}, "(S (NP John )NP (VP has (NP a and/or )NP )VP -LRB- . )S"),
        ({"function_tags": True}, "(S (NP-SBJ NNP )NP-SBJ (VP VBZ (NP DT NN )NP )VP -LRB- . )S"),
    ],
)
def test_tree_to_line(options, line):
    assert trees.forward(TREEBANK, **options) == (WORDS, line)


def test_line_to_tree():
    line = "(S (NP NNP )NP (VP VBZ )VP -LRB- . )S"
    expected = "( (S (NP (NNP John)) (VP (VBZ has)) (-LRB- -LRB-) (. .)) )\n"
    assert trees.backward("John has ( .", line) == expected
    words = line.replace("NNP", "John").replace("VBZ", "has")
    expected = "( (S (NP (XX John)) (VP (XX has)) (XX -LRB-) (XX .)) )\n"
    assert trees.backward("John has ( .", words, leaves="word") == expected


def random_tree(rng, depth):
    """Text of a tree without empty elements."""
    if depth == 0 or rng.random() < 0.3:
        return f"({rng.choice(['NN', '.', '-LRB-', 'PRP$'])} {rng.choice(['a', '-RRB-', 'c.d'])})"
    parts = " ".join(random_tree(rng, depth - 1) for _ in range(rng.randint(1, 3)))
    return f"({rng.choice(['S', 'NP', 'ADVP|PRT'])} {parts})"


def test_random_trees_survive_both_ways():
    rng = random.Random(2)
    for _ in range(100):
        text = f"( (S {random_tree(rng, 4)} (NN end)) )"
        assert trees.backward(*trees.forward(text)) == text + "\n"


@pytest.mark.parametrize(
    "text, reason",
    [
        ("(S (NP (NN a))", "not a tree .*expected"),
        ("(S (NN a)))", "not a tree"),
        ("(S (NP a b))", "word 'a' has no part of speech"),
        ("(S (NP a (NN b)))", "word 'a' has no part of speech"),
        ("(S (NP) (NN a))", "a bracket without content"),
        ("(S ((NP (NN a)) (NN b)))", "a bracket without label"),
        ("(S (NP (-NONE- *)))", "no words"),
    ],
)
def test_faulty_trees_are_named(text, reason):
    with pytest.raises(Malformed, match=reason):
        trees.forward(text)


@pytest.mark.parametrize(
    "line, reason",
    [
        ("(S NN )NP", "'\\)NP' where '\\)S' is due"),
        ("(S NN", r"\(S is not closed"),
        ("(S NN )S )S", "'no closing bracket' is due"),
        ("(S )S", r"nothing between \(S and \)S"),
        ("(S NN )S (S NN )S", "is not one bracket with everything inside"),
        ("NN", "'NN' is not one bracket"),
        ("", "'' is not one bracket"),
        ("( NN )", "'\\(' where"),
        ("(S NN) )S", r"a bracket within 'NN\)'"),
        ("(( NN )(", r"a bracket within '\(\('"),
        ("(S NN )S NN", "is not one bracket with everything inside"),
    ],
)
def test_lines_that_are_no_trees_are_named(line, reason):
    with pytest.raises(Malformed, match=reason):
        trees.read_line(line)


def test_as_many_leaves_as_words():
    with pytest.raises(Malformed, match="1 leaves for 2 words"):
        trees.backward("a b", "(S NN )S")


def test_trees_of_a_file_with_their_lines():
    text = "( (S (NN a)\n   (NN b)))\n\n(S (NN c)) (S\n(NN d))\n"
    assert list(trees.blocks(text.split("\n"))) == [
        (1, "( (S (NN a)\n   (NN b)))"),
        (4, "(S (NN c))"),
        (4, "(S\n(NN d))"),
    ]


@pytest.mark.parametrize("faulty", ["(S (NN b)", "(S (NN b)))", "S (NN b)"])
def test_a_faulty_tree_takes_no_other_with_it(faulty):
    lines = ["(S (NN a)", "   (NN b))", faulty, "(S (NN c))", "(S (NN d))"]
    good, bad = [], []
    for number, text in trees.blocks(lines):
        try:
            good.append(trees.forward(text)[0])
        except Malformed:
            bad.append(number)
    assert good[0] == "a b" and good[-2:] == ["c", "d"] and bad == [3]


# ---------------------------------------------------------------- graphs

PENMAN = """# ::id one.1 ::date today
# ::snt The boy wants to  visit New York .
(w / want-01~e.2
   :ARG0 (b / boy)
   :ARG1 (v / visit-01
            :ARG0 b
            :ARG1 (c / city :wiki "New_York_City"
                     :name (n / name :op1 "New York")
                     :quant 1))
   :polarity -)"""
BOY = "The boy wants to visit New York ."


@pytest.mark.parametrize("senses, mark", [(False, ""), (True, "-01")])
def test_graph_to_line(senses, mark):
    line = (
        f"( want{mark} :ARG0 boy :ARG1 ( visit{mark} :ARG0 boy :ARG1 ( city "
        ':name ( name :op1 "New_York" ) :quant 1 ) ) :polarity - )'
    )
    assert graphs.forward(PENMAN, senses) == (BOY, line)


def test_line_to_graph():
    expected = """# ::snt It is .
(k / know
   :ARG0 (i / i)
   :ARG1 (i2 / it
             :mod i3)
   :quant 3
   :polarity -)

"""
    expected = expected.replace("i3)", "(i3 / i))")
    line = "( know :ARG0 i :ARG1 ( it :mod i ) :quant 3 :polarity - )"
    assert graphs.backward("It  is .", line) == expected
    assert graphs.backward("x", "4chan")[:30] == "# ::snt x\n(x / 4chan)\n\n"


def random_line(rng, depth):
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(["boy", "want", "3.5", "-", '"A"', "imperative"])
    children = " ".join(
        f"{rng.choice([':ARG0', ':op1', ':ARG1-of'])} {random_line(rng, depth - 1)}"
        for _ in range(rng.randint(1, 3))
    )
    return f"( {rng.choice(['boy', 'go', 'and'])} {children} )"


def test_random_graphs_survive_both_ways():
    rng = random.Random(3)
    for _ in range(100):
        line = f"( top :ARG0 {random_line(rng, 4)} )"
        text = graphs.backward("some words", line)
        assert graphs.forward(text.strip()) == ("some words", line)


@pytest.mark.parametrize(
    "symbol", ['"a', 'a"', '"a"b', "a/b", "a:b", ":", ":r:", "a~1", "#a", "a)", "/", '"']
)
def test_symbols_that_penman_would_misread_are_named(symbol):
    line = f"( b {symbol} c )" if symbol.startswith(":") else f"( b :r {symbol} )"
    with pytest.raises(Malformed, match=f"^'{re.escape(symbol)}' is no bracket, role, concept"):
        graphs.backward("x", line)


def test_whatever_is_written_can_be_read():
    rng, written = random.Random(5), 0
    for _ in range(2000):
        symbol = "".join(rng.choice('ab"()/:~#-1.,\\') for _ in range(rng.randint(1, 4)))
        line = f"( b {symbol} c )" if symbol.startswith(":") else f"( b :r {symbol} )"
        try:
            text = graphs.backward("x", line)
        except Malformed:
            continue
        written += 1
        assert graphs.forward(text.strip(), senses=True) == ("x", line)
    assert written > 100


def test_deep_graphs_and_trees_are_named():
    """Those below the limit pass through every function that calls itself."""
    graph = "( a :r " * (DEEPEST - 1) + "b" + " )" * (DEEPEST - 1)
    assert graphs.forward(graphs.backward("x", graph).strip()) == ("x", graph)
    tree = "(S " * (DEEPEST - 2) + "(NN a)" + ")" * (DEEPEST - 2)
    sentence, line = trees.forward(tree)
    assert trees.forward(trees.backward(sentence, line).strip()) == (sentence, line)
    assert scores.bracket_f1([line], [line])["matched"] == DEEPEST - 2
    for call in (
        lambda: graphs.backward("x", f"( a :r {graph} )"),
        lambda: graphs.forward("# ::snt x\n" + "(a / a :r " * 2000 + "(b / b)" + ")" * 2000),
        lambda: trees.forward(f"(S {tree} (S {tree}))"),
        lambda: trees.read_line("(S " * 2000 + "NN" + " )S" * 2000),
    ):
        with pytest.raises(Malformed, match=f"more than {DEEPEST} brackets within one another"):
            call()


def test_brackets_in_texts_and_comments_are_none():
    text = '# ::snt a (b\n(a / b\n  :op1 "x)" :op2 "y\\")")'
    assert graphs.forward(text) == ("a (b", '( b :op1 "x)" :op2 "y\\")" )')


def test_comments_are_no_graphs():
    assert graphs.forward("# AMR release; corpus: lpp\n# of a day") is None


@pytest.mark.parametrize(
    "text, line, reason",
    [
        ("# ::snt a\n(a / b\n  :ARG0 (c / d)", 2, "not a graph: "),
        ("# ::snt a\n(a / b :ARG0 x)", 0, "variable x is nowhere introduced"),
        ("# ::snt a\n(a / b :ARG0)", 0, "relation :ARG0 of a has no value"),
        ("# ::snt a\n(a :ARG0 (b / c))", 0, "variable a has no concept"),
        ("# ::snt a\n(a / b :ARG0 (a / c))", 0, "variable a has two concepts"),
        ("# ::snt a\n(a / b)\n(c / d)", 0, "2 graphs; allowed: one"),
        ("# ::snt a\n(a / b)\n   :ARG1 (c / d))", 2, "':ARG1' after the last bracket"),
        ("# ::snt a\n(a / b))", 1, r"'\)' after the last bracket"),
        ("# ::snt a\n()", 0, "a bracket without content"),
        ("# ::snt a\n(a / b :ARG0 ())", 0, "a bracket without content"),
        ("(a / b)", 0, "no sentence: a line '# ::snt"),
        ("# ::snt a", 0, "no graph after the sentence"),
    ],
)
def test_faulty_graphs_are_named(text, line, reason):
    with pytest.raises(Malformed, match=reason) as error:
        graphs.forward(text)
    assert error.value.line == line


@pytest.mark.parametrize(
    "line, reason",
    [
        ("( a :r b", "a bracket is not closed"),
        ("( a :r b ) )", "a closing bracket where none"),
        ("( a )", "a closing bracket where none"),
        ("( a :r )", "a closing bracket where none"),
        ("( a :r", "ends after :r"),
        ("( a :r b :s )", "a closing bracket where none"),
        ("( a :r :s b )", "relation :s where none"),
        ("( :r a )", "relation :r where none"),
        ("( ( a :r b ) :r c )", "an opening bracket where none"),
        ("( a b )", "value 'b' without a relation"),
        ("a b", "value 'b' without a relation"),
        (":r a", "relation :r where none"),
        ("", "ends after :top"),
    ],
)
def test_lines_that_are_no_graphs_are_named(line, reason):
    with pytest.raises(Malformed, match=reason):
        graphs.read_line(line)


def test_a_constant_is_no_graph():
    with pytest.raises(Malformed, match="the top node is the constant 3"):
        graphs.backward("x", "3")
