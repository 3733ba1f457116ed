"""The example textless_nlp: features of wav2vec 2.0."""

from __future__ import annotations

from typing import Any

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch

READER = "textless_nlp.gslm.speech2unit.pretrained.w2v2_feature_reader"


@patch(
    *modules_of_examples(READER),
    because="fairseq 0.12.2: --feature_type w2v2 reads checkpoints of fairseq before 0.11 only; "
    "with others it ends in an AssertionError",
)
def features_of_new_checkpoints(module: PatchedModule) -> None:
    """Load the model as every other script does."""

    def init(self: Any, checkpoint_path: str, layer: int) -> None:
        load = module.fairseq.checkpoint_utils.load_model_ensemble_and_task
        models, _, self.task = load([checkpoint_path])
        self.model = models[0].eval().cuda()
        self.layer = layer

    module.Wav2VecFeatureReader.__init__ = init
