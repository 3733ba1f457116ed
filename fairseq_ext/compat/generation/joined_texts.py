"""Sub-words are joined once, of references as of translations, and words are kept apart."""

from __future__ import annotations

import functools
import logging
import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ContextManager

from ..context_values import holding
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after, call_within
from ..text_lines import without_line_breaks

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig

# of --post-process, while fairseq-generate runs
joining_symbol: ContextVar[str | None] = ContextVar("joining_symbol", default=None)

# the source that fairseq-generate read last as text, in the sub-words that the model read: it
# joins them before it replaces unknown words, whose number counts sub-words
source_in_pieces: ContextVar[str | None] = ContextVar("source_in_pieces", default=None)

# whether texts are printed as lines, as fairseq-generate does
prints_lines: ContextVar[bool] = ContextVar("prints_lines", default=False)

OTHER_WHITE_SPACE = re.compile(r"[^\S ]")
# what a sentencepiece model with byte_fallback writes for a character that is none of its pieces
BYTE_PIECES = re.compile(r"(?<!\S)<0x[0-9A-F]{2}>(?: <0x[0-9A-F]{2}>)*(?!\S)")
# encoders whose words end at a blank alone: {module of fairseq.data.encoders: class}
BLANKS_ALONE = {
    "sentencepiece_bpe": "SentencepieceBPE",
    "fastbpe": "fastBPE",
    "subword_nmt_bpe": "SubwordNMTBPE",
    "characters": "Characters",
}
# encoders that spell any byte, that of a line break too
BYTE_CODERS = {
    "gpt2_bpe": "GPT2BPE",
    "hf_byte_bpe": "HuggingFaceByteLevelBPE",
    "bytes": "Bytes",
    "byte_bpe": "ByteBPE",
}


class JoinedText(str):
    """A text whose pieces have been joined: the blanks in it are between words."""


def bytes_as_text(pieces: str) -> str:
    """Return pieces of sentencepiece with characters in place of the pieces that are bytes.

    Bytes that are no UTF-8 become U+FFFD, and white space, such as a line break, which would begin
    another line of the output, the mark of a blank.
    """

    def text_of(match: re.Match[str]) -> str:
        values = bytes(int(piece[3:5], 16) for piece in match[0].split())
        return re.sub(r"\s", "\u2581", values.decode("utf-8", errors="replace"))

    return BYTE_PIECES.sub(text_of, pieces) if "<0x" in pieces else pieces


@patch(
    "fairseq.data.data_utils",
    because="fairseq 0.12.2: texts have <0xE1> and the like for characters that a sentencepiece "
    "model with byte_fallback spells in bytes, and scores are of these",
)
def byte_pieces_are_joined(module: PatchedModule) -> None:
    """Put the characters in place of the bytes before --post-process joins the pieces."""
    stock = module.post_process

    @functools.wraps(stock)
    def post_process(sentence: str, symbol: str) -> str:
        if symbol == "sentencepiece":
            sentence = bytes_as_text(sentence)
        return str(stock(sentence, symbol))

    module.post_process = post_process


@patch("fairseq.data.encoders.sentencepiece_bpe", because="fairseq 0.12.2, as before")
def byte_pieces_are_decoded(module: PatchedModule) -> None:
    """Put the characters in place of the bytes before --bpe sentencepiece joins the pieces."""
    coder = module.SentencepieceBPE
    stock = coder.decode

    @functools.wraps(stock)
    def decode(self: Any, x: str) -> str:
        return str(stock(self, bytes_as_text(x)))

    coder.decode = decode


@patch(
    "fairseq.data.data_utils",
    because="fairseq 0.12.2: with --post-process sentencepiece beside --bpe sentencepiece, as on "
    "its page of mBART, pieces are joined twice: texts lose all blanks, and scores are of these",
)
def joined_texts_are_marked(module: PatchedModule) -> None:
    """Let texts of --post-process sentencepiece say that they are joined."""
    stock = module.post_process

    @functools.wraps(stock)
    def post_process(sentence: str, symbol: str) -> str:
        joined: str = stock(sentence, symbol)
        return JoinedText(joined) if symbol == "sentencepiece" else joined

    module.post_process = post_process


@patch(
    "fairseq.data.encoders.sentencepiece_bpe",
    because="fairseq 0.12.2: --post-process beside --bpe, as before: decoding takes the blanks "
    "between words for those between pieces",
)
def texts_are_joined_once(module: PatchedModule) -> None:
    """Leave joined texts as they are."""
    coder = module.SentencepieceBPE
    stock = coder.decode

    @functools.wraps(stock)
    def decode(self: Any, x: str) -> str:
        return x if isinstance(x, JoinedText) else stock(self, x)

    coder.decode = decode


@patch(
    *(f"fairseq.data.encoders.{name}" for name in BLANKS_ALONE),
    because="fairseq 0.12.2: sub-word models end a word at a blank alone: a tab, U+00A0 or U+3000 "
    "is a character of a word; the dictionary cuts there, so that two words become one",
)
def white_space_is_a_blank(module: PatchedModule) -> None:
    """Give them blanks, behind which they begin a word."""
    coder = getattr(module, BLANKS_ALONE[module.__name__.rpartition(".")[2]])
    stock = coder.encode
    if isinstance(vars(coder)["encode"], staticmethod):

        @functools.wraps(stock)
        def encode_text(x: str) -> str:
            return str(stock(OTHER_WHITE_SPACE.sub(" ", x)))

        coder.encode = staticmethod(encode_text)
        return

    @functools.wraps(stock)
    def encode(self: Any, x: str) -> str:
        return str(stock(self, OTHER_WHITE_SPACE.sub(" ", x)))

    coder.encode = encode


@patch(
    "fairseq.data.encoders.byte_bpe",
    because="fairseq 0.12.2: --bpe byte_bpe takes a model of sentencepiece that was trained with "
    "the default normalisation, which replaces characters that stand for bytes: the letter "
    "\u00ea becomes an a, without a message",
)
def bytes_are_not_normalised(module: PatchedModule) -> None:
    """Warn of a model that does not return all bytes."""

    def warn(self: Any, cfg: Any) -> None:
        from fairseq.data.encoders.byte_utils import BYTE_TO_BCHAR

        lost = [
            byte
            for byte, character in BYTE_TO_BCHAR.items()
            if byte != ord(module.SPACE)
            and "".join(self.sp.EncodeAsPieces(character)).strip("\u2581") != character
        ]
        if lost:
            logging.getLogger(module.__name__).warning(
                f"--bpe byte_bpe --sentencepiece-model-path {cfg.sentencepiece_model_path}: the "
                f"model replaces {len(lost)} of the 256 bytes, and characters with one of them are "
                "changed or lost; train it with --normalization_rule_name=identity"
            )

    call_after(module.ByteBPE, "__init__", warn)


@patch(
    "fairseq_cli.generate",
    because="fairseq 0.12.2: translations with a line break, which --bpe gpt2, hf_byte_bpe, bytes "
    "and byte_bpe may spell, are printed in several lines: what follows it is in no D- line",
)
def translations_are_printed_in_lines(module: PatchedModule) -> None:
    """Tell the sub-word models that texts are printed."""

    def tell(*args: Any, **options: Any) -> ContextManager[None]:
        return holding(prints_lines, True)

    call_within(module, "_main", tell)


@patch(
    *(f"fairseq.data.encoders.{name}" for name in BYTE_CODERS), because="fairseq 0.12.2, as before"
)
def printed_texts_are_lines(module: PatchedModule) -> None:
    """Give texts that are printed a blank in place of a line break."""
    coder = getattr(module, BYTE_CODERS[module.__name__.rpartition(".")[2]])
    stock = coder.decode

    @functools.wraps(stock)
    def decode(*args: Any, **options: Any) -> str:
        text = str(stock(*args, **options))
        return without_line_breaks(text) if prints_lines.get() else text

    is_static = isinstance(vars(coder)["decode"], staticmethod)
    coder.decode = staticmethod(decode) if is_static else decode


@patch(
    "fairseq_cli.generate",
    because="fairseq 0.12.2: with --replace-unk, --post-process joins the sub-words of "
    "translations and not those of references: BLEU compares words with pieces",
)
def references_are_joined(module: PatchedModule) -> None:
    """Note the symbol for the references that are read as text."""

    def note_symbol(cfg: FairseqConfig, *more: Any) -> ContextManager[None]:
        return holding(joining_symbol, cfg.common_eval.post_process)

    def forget_sources(*args: Any) -> ContextManager[None]:
        return holding(source_in_pieces, None)

    call_within(module, "_main", note_symbol)
    call_within(module, "_main", forget_sources)


@patch("fairseq.data.indexed_dataset", because="fairseq 0.12.2, as before")
def original_references_are_joined(module: PatchedModule) -> None:
    """Join the sub-words of a target; note those of a source, which an alignment counts."""
    dataset = module.IndexedRawTextDataset
    stock = dataset.get_original_text
    dataset.is_target = False

    @functools.wraps(stock)
    def get_original_text(self: Any, i: int) -> str:
        text: str = stock(self, i)
        if self.is_target:
            from fairseq.data import data_utils

            return data_utils.post_process(text, joining_symbol.get())
        source_in_pieces.set(text)
        return text

    dataset.get_original_text = get_original_text


@patch("fairseq.data.language_pair_dataset", because="fairseq 0.12.2, as before")
def raw_targets_are_known(module: PatchedModule) -> None:
    """Tell a target that is read as text from a source."""

    def note_target(self: Any, *args: Any, **options: Any) -> None:
        if hasattr(self.tgt, "get_original_text"):
            self.tgt.is_target = True

    call_after(module.LanguagePairDataset, "__init__", note_target)
