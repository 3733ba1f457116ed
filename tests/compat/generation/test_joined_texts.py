"""Sub-words are joined once, of references as of translations, and words are kept apart."""

import io

import pytest
from common.words import numbered_words
from fairseq.data import LanguagePairDataset, data_utils, indexed_dataset
from fairseq.data.encoders.byte_bpe import ByteBPE, ByteBpeConfig, byte_encode
from fairseq.data.encoders.characters import Characters
from fairseq.data.encoders.fastbpe import fastBPE
from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE, SentencepieceConfig
from fairseq.data.encoders.subword_nmt_bpe import SubwordNMTBPE

from fairseq_ext.compat.context_values import holding
from fairseq_ext.compat.generation.joined_texts import joining_symbol

PIECES = "\u2581ein \u2581Hu nd"
WHITE_SPACE = "\t\f\r\x1c\x85\xa0\u2003\u2028\u202f\u3000"


def test_pieces_are_joined_once():
    coder = SentencepieceBPE.__new__(SentencepieceBPE)  # without a model, which cuts
    assert coder.decode(PIECES) == "ein Hund"
    for symbol in ("sentencepiece", None):  # with --post-process, and without
        assert coder.decode(data_utils.post_process(PIECES, symbol)) == "ein Hund"
    assert coder.decode("u nd") == "und"  # of one word's pieces alone


@pytest.fixture
def coder_of(tmp_path):
    """Function (options of a sentencepiece model...) -> fairseq's coder of such a model."""
    sentencepiece = pytest.importorskip("sentencepiece")

    def coder_of(**options):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["ein kleiner Hund", "10 000 kleine Hunde"] * 9),
            model_writer=model,
            model_type="bpe",
            minloglevel=2,
            **options,
        )
        (tmp_path / "model").write_bytes(model.getvalue())
        return SentencepieceBPE(SentencepieceConfig(sentencepiece_model=str(tmp_path / "model")))

    return coder_of


@pytest.mark.parametrize("normalisation", ["nmt_nfkc", "nfkc", "identity"])
def test_words_on_both_sides_of_white_space_are_two(normalisation, coder_of):
    """The dictionary cuts at any white space, where sentencepiece sees a blank alone."""
    coder = coder_of(vocab_size=30, normalization_rule_name=normalisation)
    expected = coder.encode("10 000 Hund")
    for white_space in WHITE_SPACE:
        line = f"10{white_space}000 Hund"
        assert coder.encode(line).split() == expected.split(), ascii(white_space)
    assert coder.decode(expected) == "10 000 Hund"


class MarkedCharacters:
    """What fastBPE and subword-nmt make of words without merges: each character is a sub-word."""

    def process_line(self, line):
        return " ".join("@@ ".join(word) for word in line.split(" "))

    def apply(self, lines):
        return [self.process_line(line) for line in lines]


@pytest.mark.parametrize("kind", [fastBPE, SubwordNMTBPE, Characters])
def test_other_encoders_know_blanks_alone_too(kind):
    coder = kind.__new__(kind)  # without a file of merges
    coder.bpe, coder.bpe_symbol = MarkedCharacters(), "@@ "
    expected = coder.encode("10 000")
    for white_space in WHITE_SPACE:
        assert coder.encode(f"10{white_space}000").split() == expected.split(), ascii(white_space)
    assert coder.decode(expected) == "10 000"


def test_characters_in_bytes_are_characters(coder_of):
    """A model with byte_fallback spells what it has not learnt in bytes."""
    coder = coder_of(vocab_size=290, byte_fallback=True, normalization_rule_name="identity")
    for line in ("\u1200\u120b\u121d Hund", "ein \U0001f469\u200d\U0001f467", "<0x41> Hund"):
        pieces = coder.encode(line)
        assert "<0x" in pieces
        assert coder.decode(pieces) == line
        assert data_utils.post_process(pieces, "sentencepiece") == line
    assert data_utils.post_process("<0x41> <0x42>", None) == "<0x41> <0x42>"


@pytest.mark.parametrize(
    "pieces, text",
    [
        ("\u2581 <0xE1> <0x88> Hund", "\ufffdHund"),  # a translation may end within a character
        ("\u2581a <0x0A> b", "a b"),  # a line break would begin another line of the output
        ("\u2581a <0x0A>", "a"),
        ("\u2581<0x41>", "<0x41>"),  # a text with these letters is spelt in other pieces
    ],
)
def test_odd_bytes_are_no_other_lines(pieces, text):
    assert data_utils.post_process(pieces, "sentencepiece") == text


@pytest.mark.parametrize(
    "normalisation, text", [("identity", "a \u00ea \u00b2"), ("nmt_nfkc", "a a 2")]
)
def test_bytes_that_a_model_replaces_are_named(normalisation, text, tmp_path, caplog):
    """The bytes of a letter are characters such as \u00aa, which the default normalises."""
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([byte_encode("a b \u00ea \u00e9 \u00b2 c")] * 9),
        model_writer=model,
        vocab_size=16,
        model_type="bpe",
        character_coverage=1.0,
        normalization_rule_name=normalisation,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path = tmp_path / "model"
    path.write_bytes(model.getvalue())
    coder = ByteBPE(ByteBpeConfig(sentencepiece_model_path=str(path)))
    assert coder.decode(coder.encode("a \u00ea \u00b2")).strip() == text
    warned = f"--bpe byte_bpe --sentencepiece-model-path {path}: the model replaces" in caplog.text
    assert warned == (normalisation != "identity")


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
