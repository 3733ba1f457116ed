"""Sub-words are joined once, of references as of translations, and words are kept apart."""

import io
from types import SimpleNamespace

import pytest
from common import inprocess
from common.words import numbered_words
from fairseq.data import LanguagePairDataset, data_utils, indexed_dataset
from fairseq.data.encoders.byte_bpe import ByteBPE, ByteBpeConfig, byte_encode
from fairseq.data.encoders.bytes import Bytes
from fairseq.data.encoders.characters import Characters
from fairseq.data.encoders.fastbpe import fastBPE
from fairseq.data.encoders.gpt2_bpe import GPT2BPE
from fairseq.data.encoders.gpt2_bpe_utils import Encoder, bytes_to_unicode
from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE, SentencepieceConfig
from fairseq.data.encoders.subword_nmt_bpe import SubwordNMTBPE
from fairseq_cli import preprocess
from inference.stock import ONE_LAYER
from options.systems import SMOOTHED, flat

from fairseq_ext.compat.context_values import holding
from fairseq_ext.compat.generation.joined_texts import joining_symbol, prints_lines
from fairseq_ext.compat.generation.line_translator import Coders, LineTranslator

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


def byte_coders():
    """fairseq's coders of bytes; the pieces of each are those of "a", a line break and "b"."""
    gpt2 = GPT2BPE.__new__(GPT2BPE)  # without files
    gpt2.bpe = Encoder(dict(zip(bytes_to_unicode().values(), range(256))), [])
    return [(Bytes(), "a \u010a b"), (ByteBPE, "a \u010a b"), (gpt2, "64 198 65")]


def test_translations_with_a_line_break_are_one_line():
    """In Python, a text of several lines remains one."""
    for coder, pieces in byte_coders():
        assert coder.decode(pieces) == "a\nb"
        with holding(prints_lines, True):
            assert coder.decode(pieces) == "a b"
        # as fairseq-interactive, fairseq-ext translate and serve have it
        translator = SimpleNamespace(coders=Coders(None, coder))
        assert LineTranslator.decode(translator, pieces) == "a b"


def test_generate_prints_a_translation_with_a_line_break_in_one_line(tmp_path):
    (tmp_path / "text.xx").write_text("a b\n" * 8)
    (tmp_path / "text.yy").write_text("a \u010a b\n" * 8, encoding="utf-8")
    text, data, run = (str(tmp_path / name) for name in ("text", "data", "run"))
    words = ["-s", "xx", "-t", "yy", "--destdir", data]
    words += [word for name in ("train", "valid", "test") for word in (f"--{name}pref", text)]
    preprocess.main(preprocess.options.get_preprocessing_parser().parse_args(words))
    inprocess.train(
        *(data, "--task", "translation", "--arch", "transformer", *flat(ONE_LAYER).split()),
        *(*SMOOTHED.split(), "--max-update", 1, "--batch-size", 8, "--disable-validation"),
        *("--save-dir", run),
    )
    path = f"{run}/checkpoint_last.pt"
    words = ["--task", "translation", "--path", path, "--bpe", "bytes", "--prefix-size", 3]
    output = inprocess.generate(data, *words, "--beam", 1, "--max-len-b", 4)
    texts = [line.split("\t")[-1] for line in output.split("\n") if line.startswith("D-")]
    assert len(texts) == 8 and all(text.startswith("a b") for text in texts)
    assert "T-0\ta b" in output.split("\n")


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
