"""Sub-words are joined once, of references as of translations."""

import pytest
from common.words import numbered_words
from fairseq.data import LanguagePairDataset, data_utils, indexed_dataset
from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE

from fairseq_ext.compat.context_values import holding
from fairseq_ext.compat.generation.joined_texts import joining_symbol

PIECES = "\u2581ein \u2581Hu nd"


def test_pieces_are_joined_once():
    coder = SentencepieceBPE.__new__(SentencepieceBPE)  # without a model, which cuts
    assert coder.decode(PIECES) == "ein Hund"
    for symbol in ("sentencepiece", None):  # with --post-process, and without
        assert coder.decode(data_utils.post_process(PIECES, symbol)) == "ein Hund"
    assert coder.decode("u nd") == "und"  # of one word's pieces alone


@pytest.mark.parametrize(
    "symbol, line, expected",
    [
        ("sentencepiece", PIECES, "ein Hund"),
        ("@@ ", "ein Hu@@ nd", "ein Hund"),
        (None,) + 2 * (PIECES,),
    ],
)
def test_original_references_are_joined(symbol, line, expected, tmp_path):
    """The words of a source are those that an alignment counts."""
    (tmp_path / "text").write_text(f"{line}\n", encoding="utf-8")
    words = numbered_words(6)
    source, target = (
        indexed_dataset.make_dataset(str(tmp_path / "text"), "raw", dictionary=words)
        for _ in range(2)
    )
    pairs = LanguagePairDataset(source, source.sizes, words, target, target.sizes, words)
    with holding(joining_symbol, symbol):
        assert pairs.src.get_original_text(0) == line
        assert pairs.tgt.get_original_text(0) == expected
