"""Equations in plain text become MathML; commands and sentences stay as they are."""

import xml.etree.ElementTree as ElementTree

import equations
import markdown
import pytest


def text_of(text):
    """The MathML of an equation without namespace and spaces."""
    return "".join(equations.mathml(text).itertext())


@pytest.mark.parametrize(
    "text, shown",
    [
        ("h_t = tanh(W h_{t-1} + b)", "ht=tanh(Wht−1+b)"),
        ("tau = softmax(W_tau s + b_tau)", "τ=softmax(Wτs+bτ)"),
        ("a_ti * b . c", "ati∗b·c"),
        ("L_t = || g(h^f_t) - h^b_t ||", "Lt=‖g(htf)−htb‖"),
        ("P(x_t | x_<t)", "P(xt|x<t)"),
        ("sum_i x_i^2 -> x'", "∑ixi2→x′"),
    ],
)
def test_notation(text, shown):
    assert text_of(text) == shown


def test_scripts_are_below_and_above():
    (both,) = equations.mathml("h^f_t").iter("msubsup")
    assert ["".join(part.itertext()) for part in both] == ["h", "t", "f"]
    (accent,) = equations.mathml("z~").iter("mover")
    assert [part.text for part in accent] == ["z", "~"]


@pytest.mark.parametrize(
    "text",
    [
        "the mean of all states",
        "$HOME",
        "tanh(x",
        "x_",
        "C_Z = h of the other component",
        "layer reads every state",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(equations.NotAnEquation):
        equations.mathml(text)


def test_a_block_is_a_row_for_each_line_with_its_remark():
    table = equations.equation_table(
        "h_i  = W x_i + b      annotations      (Eq. 9)\n"
        "c_t = sum_i a_ti h_i, and the same for d_t\n"
    )
    remarks = [row[1].text for row in table.iter("tr")]
    assert remarks == ["annotations (Eq. 9)", "and the same for d_t"]


def test_a_line_without_an_equation_is_kept_as_text():
    table = equations.equation_table("x = 1\ny = 2 x\nwhich holds for the other states\n")
    assert [row[0].text for row in table.iter("tr")][2] == "which holds for the other states"


@pytest.mark.parametrize(
    "block",
    [
        "fairseq-train: error: --update-freq 0 is not allowed",
        "FOO=bar make demo $HOME",
        "embedding S from glove.txt: 14210 of 18765 words",
        "encoder    V D + 2 (3G (D + G) + 3G)",
    ],
)
def test_blocks_that_stay_preformatted(block):
    html = markdown.markdown(f"Text:\n\n    {block}\n", extensions=[equations.EquationExtension()])
    assert "<pre>" in html and "<math" not in html


def test_markdown_shows_mathematics():
    html = markdown.markdown(
        "Text:\n\n    z = x_t * y      remark <b>\n\nMore.\n",
        extensions=[equations.EquationExtension()],
    )
    assert "<math" in html and "remark &lt;b&gt;" in html and "<pre>" not in html
    ElementTree.fromstring(f"<div>{html}</div>")
