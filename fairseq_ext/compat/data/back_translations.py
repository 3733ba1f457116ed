"""The back-translation of semisupervised_translation."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.criterions import FairseqCriterion
    from fairseq.models import FairseqMultiModel
    from fairseq.optim import FairseqOptimizer
    from fairseq.tasks.semisupervised_translation import SemisupervisedTranslationTask


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
            if self.lambda_otf_bt > 0 and sample.get(key):
                model.eval()  # the step begins with model.train()
                on_gpu = next(model.parameters()).is_cuda
                sample[key] = dataset.translated(sample[key]["texts"], on_gpu)
        return step(self, sample, model, criterion, optimizer, update_num, ignore_grad)

    task.train_step = train_step
