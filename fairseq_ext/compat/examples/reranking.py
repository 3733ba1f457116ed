"""The example discriminative_reranking_nmt: its BLEU in validation, and joint classification."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable

from ..corpus_bleu import bleu_of_meters
from ..imported_examples import modules_of_examples
from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor

FOLDER = "discriminative_reranking_nmt"


@patch(
    *modules_of_examples(f"{FOLDER}.tasks.discriminative_reranking_task"),
    because="sacrebleu 2.0 dropped compute_bleu: the validation of a reranker ends in an "
    "AttributeError, and on a GPU already before",
)
def rerankers_are_validated(module: PatchedModule) -> None:
    """Compute the BLEU of the best hypotheses with today's sacrebleu."""
    import torch

    log_derived = module.metrics.log_derived
    task = module.DiscriminativeRerankingNMTTask
    stock = task.reduce_metrics

    def log_derived_metric(key: str, compute: Callable[[Any], Any], *more: Any) -> None:
        log_derived(key, bleu_of_meters if key == "bleu" else compute, *more)

    @functools.wraps(stock)
    def reduce_metrics(self: Any, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        def on_cpu(log: dict[str, Any]) -> dict[str, Any]:
            # the counts, which stock gives to numpy
            return {
                key: value.cpu() if key[0] == "_" and torch.is_tensor(value) else value
                for key, value in log.items()
            }

        stock(self, [on_cpu(log) for log in logging_outputs], criterion)

    overlay_names(module, "metrics", log_derived=log_derived_metric)
    task.reduce_metrics = reduce_metrics


@patch(
    *modules_of_examples(f"{FOLDER}.models.discriminative_reranking_model"),
    because="fairseq 0.12.2: with several sentences in a batch, joint_classification=sent compares "
    "hypotheses of different sentences",
)
def hypotheses_of_a_sentence_are_compared(module: PatchedModule) -> None:
    """Let the joint layers attend to the hypotheses of one sentence."""
    stock = module.DiscriminativeNMTReranker.joint_forward

    @functools.wraps(stock)
    def joint_forward(self: Any, x: Tensor) -> Tensor:
        # the caller has the hypotheses of a sentence one after the other: (B * K, D), and views
        # them as if they took turns
        hypotheses, sentences, size = x.shape
        by_sentence = x.reshape(sentences, hypotheses, size)  # (B, K, D)
        y = stock(self, by_sentence.transpose(0, 1))  # (K, B, D)
        return y.transpose(0, 1).contiguous().view(hypotheses, sentences, size)

    module.DiscriminativeNMTReranker.joint_forward = joint_forward


@patch(
    *modules_of_examples(f"{FOLDER}.tasks.discriminative_reranking_task"),
    because="fairseq 0.12.2: what a reranker logs has the scores of its hypotheses, which several "
    "workers sum, and fail to sum where their batches differ in size",
)
def rerankers_log_sums(module: PatchedModule) -> None:
    """Log sums only: BLEU needs the scores of hypotheses before, and nothing needs them after."""
    task = module.DiscriminativeRerankingNMTTask
    stock_train, stock_valid = task.train_step, task.valid_step

    def without_scores(answer: tuple[Any, Any, dict[str, Any]]) -> tuple[Any, Any, dict[str, Any]]:
        loss, sample_size, log = answer
        return loss, sample_size, {key: log[key] for key in log if key != "scores"}

    @functools.wraps(stock_train)
    def train_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        return without_scores(stock_train(self, *args, **kwargs))

    @functools.wraps(stock_valid)
    def valid_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        return without_scores(stock_valid(self, *args, **kwargs))

    task.train_step, task.valid_step = train_step, valid_step
