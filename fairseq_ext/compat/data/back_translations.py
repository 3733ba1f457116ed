"""The steps of semisupervised_translation: what they log, and when they back-translate."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.criterions import FairseqCriterion
    from fairseq.models import FairseqMultiModel
    from fairseq.optim import FairseqOptimizer
    from fairseq.tasks.semisupervised_translation import SemisupervisedTranslationTask


@patch(
    "fairseq.tasks.semisupervised_translation",
    because="fairseq 0.12.2: semisupervised_translation fails in its first step with "
    "KeyError: 'loss'",
)
def semisupervised_steps_are_logged(module: PatchedModule) -> None:
    """Compute a step with a log that begins at zero."""
    task_class = module.SemisupervisedTranslationTask

    def train_step(
        self: Any,
        sample: dict[str, Any],
        model: FairseqMultiModel,
        criterion: FairseqCriterion,
        optimizer: FairseqOptimizer,
        update_num: int,
        ignore_grad: bool = False,
    ) -> tuple[float, float, dict[str, float]]:
        model.train()
        if update_num > 0:
            self.update_step(update_num)
        total, size = 0.0, 0.0
        logged: dict[str, float] = defaultdict(float)
        for key, name, weight in _parts_of_step(self, module):
            if not sample.get(key):
                continue
            loss, sample_size, output = criterion(model.models[name], sample[key])
            loss = loss * (0 if ignore_grad else weight)
            optimizer.backward(loss)
            total += loss.detach().item()
            size += sample_size
            for field, value in output.items():
                logged[field] += value
                logged[key] += value  # as stock has it: all that is logged of a kind of data
        return total, size, logged

    task_class.train_step = train_step


def _parts_of_step(task: Any, module: PatchedModule) -> list[tuple[str, str, float]]:
    """Return (key of the batch, name of the model, weight) for all that has a weight."""
    parts = []
    for pair in task.lang_pairs:
        target = pair.split("-")[1]
        parts += [
            (pair, pair, task.lambda_parallel),
            (module._get_bt_dataset_key(pair), pair, task.lambda_otf_bt),
            (
                module._get_denoising_dataset_key(pair),
                f"{target}-{target}",
                task.lambda_denoising,
            ),
        ]
    return [part for part in parts if part[2] > 0]


@patch(
    "fairseq.tasks.semisupervised_translation",
    because="fairseq 0.12.2: semisupervised_translation back-translates with dropout, while it "
    "reads batches ahead: with the parameters of earlier updates, or with --num-workers of the "
    "beginning of the epoch",
)
def texts_are_translated_in_the_step(module: PatchedModule) -> None:
    """Back-translate a batch when its step begins, without dropout."""

    class TextsToTranslate(module.BacktranslationDataset):  # type: ignore[misc, name-defined]
        """A monolingual text whose batches are translated later."""

        def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
            """Return a batch that is not translated yet."""
            return {"texts": samples}

        def translated(self, samples: list[dict[str, Any]], on_gpu: bool) -> dict[str, Any]:
            """Return the batch with translations as sources and the texts as targets."""
            self.cuda = on_gpu
            batch: dict[str, Any] = super().collater(samples)
            return module.utils.move_to_cuda(batch) if on_gpu else batch

    module.BacktranslationDataset = TextsToTranslate
    task = module.SemisupervisedTranslationTask
    step = task.train_step

    @functools.wraps(step)
    def train_step(
        self: SemisupervisedTranslationTask,
        sample: dict[str, Any],
        model: FairseqMultiModel,
        criterion: FairseqCriterion,
        optimizer: FairseqOptimizer,
        update_num: int,
        ignore_grad: bool = False,
    ) -> Any:
        if update_num > 0:
            self.update_step(update_num)  # the weights may change with it
        sample = dict(sample)
        for pair, dataset in self.backtranslate_datasets.items():
            key = module._get_bt_dataset_key(pair)
            # a task that derives from this one may load sets that are translated as they are read
            is_later = isinstance(dataset, TextsToTranslate)
            if is_later and self.lambda_otf_bt > 0 and sample.get(key):
                model.eval()  # the step begins with model.train()
                on_gpu = next(model.parameters()).is_cuda
                sample[key] = dataset.translated(sample[key]["texts"], on_gpu)
        return step(self, sample, model, criterion, optimizer, update_num, ignore_grad)

    task.train_step = train_step
