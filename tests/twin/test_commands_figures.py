"""Pictures of L_t along sentences and against frequency."""

import pytest

from fairseq_ext.twin.commands import figures
from fairseq_ext.twin.commands.words import Token, Word


def tokens(sentence, symbols):
    return [Token(sentence, place, text, place / 2, 1.0) for place, text in enumerate(symbols)]


def test_a_panel_for_each_sentence_with_its_tokens_below():
    sentences = [tokens(3, ["a@@", "b", "$5"]), tokens(8, ["c"])]
    axes = figures.draw_sentences(sentences, "token").axes
    assert [panel.get_title() for panel in axes] == ["sentence 3", "sentence 8"]
    assert list(axes[0].lines[0].get_ydata()) == [0.0, 0.5, 1.0]
    labels = [label.get_text() for label in axes[0].get_xticklabels()]
    assert labels == ["a@@", "b", r"\$5"]  # a dollar sign would begin a formula


@pytest.mark.parametrize("unit, begins", [("token", []), ("subword_nmt", [-0.5, 1.5])])
def test_dotted_lines_where_words_begin(unit, begins):
    (panel,) = figures.draw_sentences([tokens(0, ["a@@", "b", "c"])], unit).axes
    assert [line.get_xdata()[0] for line in panel.lines[1:]] == begins


@pytest.mark.parametrize("least, scale", [(1, "log"), (0, "symlog")])
def test_frequencies_of_zero_have_a_place(least, scale):
    words = [Word("a", 9, 2, 0.5, 0.1), Word("b", least, 1, 1.5, 0.0)]
    left, right = figures.draw_frequency(words, tokens(0, "ab")).axes
    assert left.get_xscale() == scale
    left.figure.canvas.draw()
    shown = {label.get_text() for label in left.get_xticklabels(which="both")} - {""}
    assert shown and all(text.replace(",", "").replace(".", "").isdigit() for text in shown), shown
    assert left.collections[0].get_offsets().tolist() == [[9, 0.5], [least, 1.5]]
    assert right.collections[0].get_offsets().tolist() == [[1, 0], [1, 0.5]]
