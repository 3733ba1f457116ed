"""Sub-words are joined once, of references as of translations, and words are kept apart."""

import io

import pytest
from common.words import numbered_words
from fairseq.data import LanguagePairDataset, data_utils, indexed_dataset
from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE, SentencepieceConfig

from fairseq_ext.compat.context_values import holding
from fairseq_ext.compat.generation.joined_texts import joining_symbol

PIECES = "\u2581ein \u2581Hu nd"


def test_pieces_are_joined_once():
    coder = SentencepieceBPE.__new__(SentencepieceBPE)  # without a model, which cuts
    assert coder.decode(PIECES) == "ein Hund"
    for symbol in ("sentencepiece", None):  # with --post-process, and without
        assert coder.decode(data_utils.post_process(PIECES, symbol)) == "ein Hund"
    assert coder.decode("u nd") == "und"  # of one word's pieces alone


@pytest.mark.parametrize("normalisation", ["nmt_nfkc", "nfkc", "identity"])
def test_words_on_both_sides_of_white_space_are_two(normalisation, tmp_path):
    """The dictionary cuts at any white space, where sentencepiece sees a blank alone."""
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["ein kleiner Hund", "10 000 kleine Hunde"] * 9),
        model_writer=model,
        vocab_size=30,
        model_type="bpe",
        normalization_rule_name=normalisation,
        minloglevel=2,
    )
    (tmp_path / "model").write_bytes(model.getvalue())
    coder = SentencepieceBPE(SentencepieceConfig(sentencepiece_model=str(tmp_path / "model")))
    expected = coder.encode("10 000 Hund")
    for white_space in "\t\f\r\x1c\x85\xa0\u2003\u2028\u202f\u3000":
        line = f"10{white_space}000 Hund"
        assert coder.encode(line).split() == expected.split(), ascii(white_space)
    assert coder.decode(expected) == "10 000 Hund"


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
