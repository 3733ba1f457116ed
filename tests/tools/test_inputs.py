"""Reading translations: plain files, output of fairseq-generate, joined sub-words."""

import gzip

import pytest
from tools.translations import generated, sentences, write

from fairseq_ext.tools import UsageError
from fairseq_ext.tools.evaluate import inputs


@pytest.mark.parametrize("mark", ["D", "H"])
def test_what_fairseq_generate_printed_is_read(tmp_path, mark):
    lines = [*sentences(12), ""]
    path = write(tmp_path / "log", generated(lines, mark))
    assert inputs.read_hypotheses(path, lines, "ref") == lines
    assert inputs.sentence_lines(path, "P", 13) == ["-0.5 -0.25"] * 13
    with pytest.raises(UsageError, match="log: 13 translations of 15 sentences; without one: 14"):
        inputs.read_hypotheses(path, [*lines, "", ""], "ref")


@pytest.mark.parametrize("mark", ["D", "H"])
def test_output_of_two_commands_is_refused(tmp_path, mark):
    """As `>>` leaves it: the first output would be scored for the last."""
    before, after = (generated(sentences(12, seed=seed), mark) for seed in (0, 1))
    path = write(tmp_path / "log", [*before, *after])
    with pytest.raises(UsageError, match=rf"log: {mark}-\d+ is there again, behind other sentence"):
        inputs.read_hypotheses(path, sentences(12), "ref")


def test_plain_files_are_read(tmp_path):
    # a form feed or U+2028 inside a sentence does not end it
    lines = ["a\x0cb", "", "c\u2028d"]
    plain = write(tmp_path / "plain", lines)
    assert inputs.read_lines(plain) == lines
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert inputs.read_lines(packed) == lines
    plain.write_bytes(b"\xef\xbb\xbfmarked\n")  # a byte order mark
    assert inputs.read_lines(plain) == ["marked"]
    plain.write_bytes(b"good\nbad \xff\n")
    with pytest.raises(UsageError, match=r"plain, line 2: not UTF-8"):
        inputs.read_lines(plain)
    packed.write_bytes(packed.read_bytes()[:12] + b"damaged")
    with pytest.raises(UsageError, match="cannot read .*packed.gz"):
        inputs.read_lines(packed)
    packed.write_bytes(b"plain\n")
    with pytest.raises(UsageError, match="cannot read .*packed.gz: Not a gzipped file"):
        inputs.read_lines(packed)
    with pytest.raises(UsageError, match="log: .* has no number after D-"):
        inputs.marked_lines(["D-x\t1"], "D", 1, "log")
    with pytest.raises(UsageError, match="cannot read .*none"):
        inputs.read_lines(tmp_path / "none")


def test_subwords_are_joined():
    join = inputs.join_subwords
    assert join("▁A ▁sm all ▁house .", "sentencepiece") == "A small house."
    # bytes of a model with byte_fallback
    assert join("▁ <0xE1> <0x88> <0xB0> ላ ም ▁a", "sentencepiece") == "ሰላም a"
    for name in ("subword_nmt", "fastbpe"):
        assert join("a sm@@ all hou@@ se cut@@", name) == "a small house cut"
    assert join("a@@ b", None) == "a@@ b"
    assert inputs.subwords_left(["▁a", "sm@@ all", "end@@", "me@@you", "plain"]) == 3


@pytest.mark.parametrize(
    "lines, joined",
    [
        (["word", ""], 0),  # there is no blank to lose
        (["a small", "house"], 1),
        (["fill in \u2581\u2581 here", "a small", "a house", ""], 2),  # the mark as a character
        (["\u2581a \u2581small", "ho use", "\u2581a"], 0),
    ],
)
def test_lines_that_are_joined(lines, joined):
    assert inputs.joined_lines(lines, "sentencepiece") == joined
    assert inputs.joined_lines(lines, "fastbpe") == inputs.joined_lines(lines, None) == 0


def test_moses_tokens_are_joined():
    pytest.importorskip("sacremoses")
    assert inputs.moses_detokenizer("en")("It 's good , she said .") == ("It's good, she said.")
