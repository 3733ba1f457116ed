"""--replace-unk: unknown words of a translation are replaced by the source words aligned to them.

fairseq 0.12.2 indexes a list with a pair of numbers and stops, whatever the model.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Sequence, Tuple

from ..data.data_files import UnreadableFile
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after
from ..text_lines import lines_of
from .joined_texts import source_in_pieces

if TYPE_CHECKING:
    from argparse import Namespace

    from fairseq.data import Dictionary
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.models import BaseFairseqModel
    from fairseq.sequence_generator import SequenceGenerator
    from fairseq.tasks import FairseqTask
    from torch import Tensor

Alignment = Sequence[Tuple[int, int]]  # (source word, target word), counted without end symbols


def text_with_unknown_replaced(
    tokens: Iterable[int],
    dictionary: Dictionary,
    ignored: Iterable[int],
    source_words: Sequence[str],
    alignment: Alignment,
    align_dict: Mapping[str, str],
) -> str:
    """Return the words of a hypothesis, with unknown words replaced by way of the alignment.

    Args:
        tokens: of the hypothesis, as indices of `dictionary`.
        ignored: tokens that are left out.
        alignment: of tokens and source_words.
        align_dict: {source word: its translation}; words that it does not have are copied. An
            unknown word without a source word stays.

    Raises ValueError if the alignment names a word that the source does not have.
    """
    # of several source words, the last
    source_of = {target: source for source, target in alignment}
    ends = {dictionary.eos(), dictionary.pad()}
    silent = {dictionary.bos(), *(ignored or ())}
    words = []
    # positions as the alignment counts them: without end symbols, but with what is left out below
    for position, token in enumerate(token for token in tokens if token not in ends):
        if token in silent:
            continue
        if token != dictionary.unk() or position not in source_of:
            words.append(dictionary[token])
            continue
        place = source_of[position]
        if place >= len(source_words):
            raise ValueError(
                f"--replace-unk: word {position + 1} is aligned to source word {place + 1} of "
                f"{len(source_words)}, {' '.join(source_words)!r}: the text is cut into other "
                "pieces than the binarised source"
            )
        words.append(align_dict.get(source_words[place], source_words[place]))
    return " ".join(words)


@patch(
    "fairseq.dataclass.configs",
    because="fairseq 0.12.2: --replace-unk without a file looks for a file named `@@ `",
)
def replacing_without_a_dictionary(module: PatchedModule) -> None:
    """Copy source words when --replace-unk has no value."""
    field = module.GenerationConfig.__dataclass_fields__["replace_unk"]
    field.metadata = types.MappingProxyType({**field.metadata, "argparse_const": ""})


@patch(
    "fairseq.utils",
    because="fairseq 0.12.2: of a line of more than two words in the file of --replace-unk it "
    "takes the first two, and a line of fewer ends in an IndexError",
)
def translations_of_words_are_pairs(module: PatchedModule) -> None:
    """Refuse other lines by file and number."""

    def load_align_dict(replace_unk: str | None) -> dict[str, str] | None:
        if replace_unk is None:
            return None
        return dict(word_pairs(replace_unk)) if replace_unk else {}

    module.load_align_dict = load_align_dict


def word_pairs(path: str) -> Iterator[tuple[str, str]]:
    """Yield the words of a file and their translations; UnreadableFile for a line of others."""
    for number, line in enumerate(lines_of(path), 1):
        words = line.split()
        if len(words) != 2:
            raise UnreadableFile(
                f"{path}, line {number}: {len(words)} words; allowed with --replace-unk: a word "
                "and its translation"
            )
        yield words[0], words[1]


@patch(
    "fairseq.utils",
    because="fairseq 0.12.2: --replace-unk ends in a TypeError or IndexError for every model",
)
def unknown_words_are_replaced(module: PatchedModule) -> None:
    """Replace before sub-words are joined: the alignment counts sub-words."""
    stock = module.post_process_prediction

    def post_process_prediction(
        hypo_tokens: Tensor,
        src_str: str,
        alignment: Alignment,
        align_dict: Mapping[str, str] | None,
        tgt_dict: Dictionary,
        remove_bpe: str | None = None,
        extra_symbols_to_ignore: Iterable[int] | None = None,
    ) -> tuple[Tensor, str, Alignment]:
        ignored = extra_symbols_to_ignore
        if align_dict is None:
            return stock(hypo_tokens, src_str, alignment, None, tgt_dict, remove_bpe, ignored)
        from fairseq.data.data_utils import post_process

        # fairseq-generate gives the source as --bpe and --tokenizer have joined it
        source = (source_in_pieces.get() or src_str).split()
        text = text_with_unknown_replaced(
            hypo_tokens.tolist(), tgt_dict, ignored or (), source, alignment, align_dict
        )
        text = post_process(text, remove_bpe)
        # new words are scored too
        return tgt_dict.encode_line(text, add_if_not_exist=True), text, alignment

    module.post_process_prediction = post_process_prediction


@patch(
    "fairseq.tasks.fairseq_task",
    because="fairseq 0.12.2, as before: no alignment is made unless --print-alignment is given",
)
def replacing_needs_an_alignment(module: PatchedModule) -> None:
    """Build the generator that aligns when --replace-unk is given."""
    task = module.FairseqTask
    build = task.build_generator

    def build_generator(
        self: FairseqTask,
        models: Sequence[BaseFairseqModel],
        args: Namespace,
        seq_gen_cls: type[SequenceGenerator] | None = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        *more: Any,
        **kwargs: Any,
    ) -> Any:
        """Return the task's search, one that aligns where --replace-unk needs it."""
        is_on = getattr(args, "replace_unk", None) is not None
        scores = getattr(args, "score_reference", False)
        aligned = getattr(args, "print_alignment", None)
        if is_on and not scores and not aligned and seq_gen_cls is None:
            from fairseq.sequence_generator import SequenceGeneratorWithAlignment

            seq_gen_cls = SequenceGeneratorWithAlignment
            extra_gen_cls_kwargs = {**(extra_gen_cls_kwargs or {}), "print_alignment": "hard"}
        generator = build(self, models, args, seq_gen_cls, extra_gen_cls_kwargs, *more, **kwargs)
        if is_on and scores:
            generator.compute_alignment = "hard"
        return generator

    task.build_generator = build_generator


@patch(
    "fairseq.models.fairseq_model",
    because="fairseq 0.12.2, as before: recurrent decoders return no attention then",
)
def replacing_needs_attention(module: PatchedModule) -> None:
    """Switch on the attention of decoders that return it on demand, under --replace-unk."""
    base = module.BaseFairseqModel

    def switch_on_attention(self: BaseFairseqModel, cfg: FairseqConfig) -> None:
        if getattr(cfg.generation, "replace_unk", None) is not None:
            for part in self.modules():
                if not getattr(part, "need_attn", True):  # recurrent decoders of fairseq
                    part.need_attn = True

    call_after(base, "prepare_for_inference_", switch_on_attention)
