"""Meaning graphs: what a graph becomes, and back: by hand, random and faulty ones."""

import random
import re

import pytest

from fairseq_ext.routed import scores
from fairseq_ext.routed.formats import DEEPEST, Malformed, graphs, trees

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
