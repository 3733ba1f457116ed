"""Options of steps where there are beams, and of beams where there is iterative refinement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..user_errors import OptionError, option_of

if TYPE_CHECKING:
    from fairseq.models import BaseFairseqModel
    from fairseq.tasks import FairseqTask
    from torch import Tensor

OPTIONS = ("print_step", "retain_iter_history")
# {option of a beam search that iterative refinement does not read: values that leave it off}
OF_BEAMS: dict[str, tuple[Any, ...]] = {
    "prefix_size": (None, 0),
    "score_reference": (None, False),
    "sampling": (None, False),
    "match_source_len": (None, False),
    "no_repeat_ngram_size": (None, 0),
    "diverse_beam_groups": (None, 0, -1),
    "diversity_rate": (None, 0, -1.0),
    "min_len": (None, 0, 1),
    "nbest": (None, 1),
    "lm_path": (None,),
}


@patch(
    "fairseq.tasks.fairseq_task",
    because="fairseq 0.12.2: --print-step and --retain-iter-history ask every hypothesis for "
    "steps, which those of a beam search do not have",
)
def beams_have_no_steps(module: PatchedModule) -> None:
    """Refuse the options where the task builds fairseq's ordinary search."""

    def check_options(
        self: FairseqTask,
        models: list[BaseFairseqModel],
        args: Any,
        seq_gen_cls: Any = None,
        *more: Any,
        **options: Any,
    ) -> None:
        # a class of the task's own may have steps
        if seq_gen_cls is None:
            check_steps(args)

    call_before(module.FairseqTask, "build_generator", check_options)


def check_steps(args: Any) -> None:
    """Raise OptionError, naming it, for an option that needs iterative refinement."""
    for name in OPTIONS:
        if getattr(args, name, False):
            raise OptionError(
                f"{option_of(name)}: there are no steps of iterative refinement to show; "
                "allowed: leave it out"
            )


@patch(
    "fairseq.tasks.translation_lev",
    because="fairseq 0.12.2: translation_lev ignores options of the beam search: --prefix-size "
    "gives no prefix, --score-reference translates",
)
def refinement_has_no_beams(module: PatchedModule) -> None:
    """Refuse options that only a beam search reads."""

    def check_options(
        self: FairseqTask, models: list[BaseFairseqModel], args: Any, *more: Any, **options: Any
    ) -> None:
        check_beams(args)

    call_before(module.TranslationLevenshteinTask, "build_generator", check_options)


def check_beams(args: Any) -> None:
    """Raise OptionError, naming it, for an option that needs a beam search."""
    for name, neutral in OF_BEAMS.items():
        value = getattr(args, name, None)
        if value not in neutral:
            raise OptionError(
                f"{option_of(name, value)}: iterative refinement has no beam search; allowed: "
                "leave it out"
            )


@patch(
    "fairseq.iterative_refinement_generator",
    because="fairseq 0.12.2: --iter-decode-with-external-reranker ends in an AttributeError",
)
def external_rerankers_rank(module: PatchedModule) -> None:
    """Read the output of an encoder as fairseq's encoders write it today."""
    generator = module.IterativeRefinementGenerator

    def check_models(self: Any, models: list[BaseFairseqModel], *args: Any, **options: Any) -> None:
        if self.reranking and (len(models) < 2 or self.beam_size < 2):
            raise OptionError(
                f"--iter-decode-with-external-reranker with {len(models)} models of --path and "
                f"{option_of('iter_decode_with_beam', self.beam_size)}: the last model ranks what "
                "the others translate; allowed: at least 2 models and 2 lengths"
            )

    def rerank(
        self: Any,
        reranker: Any,
        finalized: list[list[dict[str, Any]]],
        encoder_input: list[Tensor],
        beam_size: int,
    ) -> list[list[dict[str, Any]]]:
        """Give each translation the mean log P of its words by the reranker.

        Args:
            finalized: for each of B * beam_size translations a list with this one.
            encoder_input: sources (B, S) and their lengths (B,).
        """
        import torch

        words = torch.nn.utils.rnn.pad_sequence(
            [entry[0]["tokens"] for entry in finalized], batch_first=True, padding_value=self.pad
        )  # (B * beam_size, T)
        words[:, 0] = self.eos  # with which a translation from left to right begins
        encoded = reranker.encoder(encoder_input[0], src_lengths=encoder_input[1])
        order = torch.arange(len(words), device=words.device) // beam_size
        encoded = reranker.encoder.reorder_encoder_out(encoded, order)
        output = reranker.decoder(words[:, :-1], encoder_out=encoded)
        scores = reranker.get_normalized_probs(output, True, None)
        targets = words[:, 1:]
        scores = scores.gather(2, targets.unsqueeze(2)).squeeze(2)
        is_word = targets.ne(self.pad)
        means = scores.masked_fill(~is_word, 0).sum(1) / is_word.sum(1)
        for entry, score in zip(finalized, means):
            entry[0]["score"] = score
        return finalized

    call_before(generator, "generate", check_models)
    generator.rerank = rerank
