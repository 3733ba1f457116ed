"""What callers give becomes lines that tasks read, one for each, or an error that names it."""

from types import SimpleNamespace

import numpy as np
import pytest
from common.pieces import learn_pieces

import fairseq_ext
from fairseq_ext.inference.inputs import Inputs


def texts(*sources):
    return Inputs("translation", sources, None)


def lines(inputs, original, size=2, progress=False):
    return [[entry.line for entry in part] for part in inputs.buffers(original, size, progress)]


def test_buffers_keep_the_order_and_read_no_further_than_needed():
    read = []

    def endless():
        for number in range(10**9):
            read.append(number)
            yield f"line {number}"

    buffers = texts("xx").buffers(endless(), 3, False)
    assert [entry.line for entry in next(buffers)] == ["line 0", "line 1", "line 2"]
    assert read == [0, 1, 2]
    assert lines(texts("xx"), iter("abcde")) == [["a", "b"], ["c", "d"], ["e"]]
    assert lines(texts("xx"), []) == []


def test_progress_is_written_to_the_standard_error(capsys):
    lines(texts("xx"), iter("abc"), progress=True)
    lines(texts("xx"), ["a", "b", "c"], progress=True)
    captured = capsys.readouterr()
    assert captured.out == "" and "3/3" in captured.err and "sentences" in captured.err


def test_the_bar_is_closed_after_an_error(capsys):
    with pytest.raises(TypeError, match="sentence 1: int; allowed: str"):
        lines(texts("xx"), ["a", 3], progress=True)
    assert capsys.readouterr().err.endswith("\n")


@pytest.mark.parametrize("original", ["one text", b"bytes", {"id": "text"}])
def test_a_text_is_no_list_of_texts(original):
    with pytest.raises(TypeError, match=f"sentences: a {type(original).__name__}; allowed: "):
        lines(texts("xx"), original)


def test_texts_are_stripped_and_bytes_that_were_no_text_are_shown():
    (entry,) = next(texts("xx").buffers(["  a \udcff b\n"], 1, False))
    assert entry.line == "a \ufffd b" and entry.original == "  a \udcff b\n"
    with pytest.raises(TypeError, match="sentence 0: NoneType; allowed: str"):
        lines(texts("xx"), [None])


def test_line_breaks_are_blanks():
    """Sub-word models would join "a" and "b": fairseq's commands never show them a line break."""
    texts_with_breaks = ["a\nb", "a \r\n b", "\ra\n \n\nb\n", "a\u2028b"]
    assert lines(texts("xx"), texts_with_breaks, 4) == [["a b", "a b", "a b", "a\u2028b"]]
    assert lines(texts("xx", "zz"), [("a\nb", "c\rd")]) == [["a b ||| c d"]]


def test_a_byte_order_mark_is_no_part_of_the_first_word():
    """As in fairseq-interactive and fairseq-preprocess: the word would be unknown."""
    assert lines(texts("xx"), ["\ufeffa b", "a \ufeffb"]) == [["a b", "a \ufeffb"]]
    assert lines(texts("xx", "zz"), [("\ufeffa", "\ufeffb")]) == [["a ||| b"]]


def test_several_sources_are_tuples():
    inputs = texts("xx", "zz")
    pairs = [("a ", " b"), ["c", "d"], "e ||| f"]
    assert lines(inputs, pairs, 3) == [["a ||| b", "c ||| d", "e ||| f"]]
    for wrong in (("a",), ("a", "b", "c"), ("a", 3), {"xx": "a", "zz": "b"}, 7):
        with pytest.raises(TypeError, match="sentence 0: .*; allowed: a tuple of 2 texts, in xx"):
            lines(inputs, [wrong])


def test_features_are_files_while_they_are_needed():
    inputs = Inputs("captions", (), SimpleNamespace(cfg=SimpleNamespace(features=None, data="no")))
    with inputs:
        ((entry,),) = inputs.buffers([np.ones((3, 4), dtype=np.float32)], 1, False)
        assert np.load(entry.line).shape == (3, 4)
        path = entry.line
    with pytest.raises(FileNotFoundError):
        np.load(path)


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "broken.npy").write_bytes(b"no features")
    np.save(tmp_path / "there.npy", np.ones((2, 3), dtype=np.float32))
    cfg = SimpleNamespace(features=str(tmp_path), data="no")
    inputs = Inputs("captions", (), SimpleNamespace(cfg=cfg))
    files = ["there.npy", tmp_path / "there.npy", "nowhere.npy", tmp_path / "broken.npy"]
    (entries,) = inputs.buffers(files, 9, False)
    assert [entry.line for entry in entries[:2]] == [str(tmp_path / "there.npy")] * 2
    assert entries[2].error == "there is no nowhere.npy" and "broken.npy" in entries[3].error
    with pytest.raises(TypeError, match="input 0: int; allowed: the name of a file, or an array"):
        list(inputs.buffers([3], 1, False))


def test_an_empty_text_has_no_translation(data, checkpoint_of):
    """A model would invent one; blank lines between paragraphs are frequent."""
    model = fairseq_ext.load(checkpoint_of("transformer"), data["two"])
    first, *blank, last = model.translate(["an1 av2", "", " \t", "\n", "\u00a0", "an1 av2"])
    assert {(result.text, result.error) for result in blank} == {("", "an empty text")}
    assert first.text == last.text != ""
    several_sources = checkpoint_of("multiway_gru", "--lang-pairs", "xx-yy,zz-yy")
    several = fairseq_ext.load(several_sources, data["three"], "xx+zz-yy")
    both, neither = several.translate([("an1", ""), ("", " ")])
    assert (both.error, neither.error) == (None, "an empty text")


def test_a_text_of_which_no_piece_is_left_has_no_translation(
    toy_corpus, data, checkpoint_of, tmp_path
):
    """sentencepiece drops invisible characters; a task may encode lines without the coders."""
    pieces = learn_pieces(toy_corpus.text / "train.xx", tmp_path / "xx")
    model = fairseq_ext.load(checkpoint_of("transformer"), data["two"], subwords=pieces)
    texts = ["an1", "\u200b", "\u2581", " \u200b \u2581"]
    first, *nothing = model.translate(texts, max_len_b=4, nbest=2)
    assert first.error is None and first.text
    assert {(result.text, result.error) for result in nothing} == {("", "an empty text")}
    assert [result.source for result in nothing] == texts[1:]

    model = fairseq_ext.load(checkpoint_of("transformer"), data["two"])
    tokens = model.task.source_dictionary.encode_line("an1 av2", add_if_not_exist=False).long()
    model.task.get_interactive_tokens_and_lengths = lambda lines, encode: ([tokens], [3])
    assert model.translate(["an1"], max_len_b=4)[0].error is None


def test_a_result_is_shown_without_its_arrays(data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of("transformer"), data["two"])
    (result,) = model.translate(["an1 av2 an3"])
    assert result.hypotheses[0].attention is not None
    assert "array" not in repr(result) and repr(result.text) in repr(result)
