"""Options of conformers that fairseq declares and does not read, or reads as text."""

from __future__ import annotations

import argparse
import logging
import os
from typing import Any, ContextManager

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after, call_before, call_within

logger = logging.getLogger(__name__)
# {module of fairseq: its conformer}
CONFORMERS = {
    "fairseq.models.speech_to_text.s2t_conformer": "S2TConformerModel",
    "fairseq.models.speech_to_speech.s2s_conformer": "S2UTConformerModel",
}
# options that are numbers and declared without a type
NUMBERS = ("--input-feat-per-channel", "--depthwise-conv-kernel-size", "--input-channels")


@patch(
    *CONFORMERS,
    because="fairseq 0.12.2: --depthwise-conv-kernel-size and others of conformers are read as "
    "text: 'unsupported operand type(s) for -: 'str' and 'int''",
)
def options_of_conformers_are_numbers(module: PatchedModule) -> None:
    """Read the options of NUMBERS as integers."""
    model = getattr(module, CONFORMERS[module.__name__])
    add = model.add_args

    def add_args(parser: argparse.ArgumentParser) -> None:
        add(parser)
        for name in NUMBERS:
            action = parser._option_string_actions.get(name)
            if action is not None:
                action.type = int

    model.add_args = staticmethod(add_args)


@patch(
    "fairseq.models.speech_to_text.s2t_conformer",
    because="fairseq 0.12.2: s2t_conformer ignores --load-pretrained-encoder-from",
)
def conformers_begin_as_asked(module: PatchedModule) -> None:
    """Read the encoder's parameters, as s2t_transformer and s2ut_conformer do."""
    stock = module.S2TConformerModel.build_encoder

    def build_encoder(cls: Any, args: Any) -> Any:
        from fairseq import checkpoint_utils

        encoder = stock.__func__(cls, args)
        path = getattr(args, "load_pretrained_encoder_from", None)
        if path is None:
            return encoder
        if not os.path.exists(path):  # a checkpoint may have moved without it
            logger.warning(f"skipped pretraining because {path} does not exist")
            return encoder
        return checkpoint_utils.load_pretrained_component_from_model(encoder, path)

    module.S2TConformerModel.build_encoder = classmethod(build_encoder)


@patch(
    "fairseq.models.speech_to_text.s2t_conformer",
    because="fairseq 0.12.2: s2t_conformer and s2ut_conformer ignore --encoder-freezing-updates",
)
def conformers_are_frozen(module: PatchedModule) -> None:
    """Compute no gradient of the encoder in the first updates, as s2t_transformer does."""
    encoder = module.S2TConformerEncoder

    def begin(self: Any, args: Any) -> None:
        self.encoder_freezing_updates = getattr(args, "encoder_freezing_updates", None) or 0
        self.num_updates = 0

    def set_num_updates(self: Any, num_updates: int) -> None:
        super(encoder, self).set_num_updates(num_updates)
        self.num_updates = num_updates

    def gradients(self: Any, *args: Any, **kwargs: Any) -> ContextManager[Any]:
        import torch

        is_trained = self.num_updates >= self.encoder_freezing_updates
        return torch.set_grad_enabled(is_trained and torch.is_grad_enabled())

    call_after(encoder, "__init__", begin)
    call_within(encoder, "forward", gradients)
    encoder.set_num_updates = set_num_updates


@patch(
    "fairseq.models.speech_to_text.s2t_conformer",
    because="fairseq 0.12.2: s2t_conformer has no scores of words for its frames: --criterion "
    "label_smoothed_cross_entropy_with_ctc ends in \"no attribute 'ctc_proj'\"",
)
def conformers_score_their_frames(module: PatchedModule) -> None:
    """Give the encoder the layer of --ctc-weight that s2t_transformer has."""
    encoder = module.S2TConformerEncoder
    build = encoder.__init__

    def __init__(self: Any, args: Any) -> None:
        import torch

        build(self, args)
        self.ctc_proj = None
        if getattr(args, "ctc_weight", 0.0) > 0.0:
            self.ctc_proj = torch.nn.Linear(args.encoder_embed_dim, args.tgt_dict_size)

    encoder.__init__ = __init__


@patch(
    "fairseq.criterions.label_smoothed_cross_entropy_with_ctc",
    because="fairseq 0.12.2: --criterion label_smoothed_cross_entropy_with_ctc ends in an "
    "AttributeError with models that have no scores of words for their frames",
)
def models_without_scores_of_frames_are_named(module: PatchedModule) -> None:
    """Refuse such a model by name."""
    criterion = module.LabelSmoothedCrossEntropyWithCtcCriterion

    def check_model(self: Any, model: Any, sample: dict[str, Any], reduce: bool = True) -> None:
        if self.ctc_weight > 0 and not hasattr(model, "get_ctc_output"):
            raise ValueError(
                f"--criterion label_smoothed_cross_entropy_with_ctc --ctc-weight {self.ctc_weight} "
                f"is not allowed with {type(model).__name__}; allowed: s2t_transformer, "
                "s2t_conformer, or --ctc-weight 0"
            )

    call_before(criterion, "forward", check_model)
