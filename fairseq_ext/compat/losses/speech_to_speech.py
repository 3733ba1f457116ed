"""The criteria of speech_to_speech: --multitask-config-yaml, --mcd-normalize-type and others."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after, call_before

if TYPE_CHECKING:
    from fairseq.criterions.speech_to_speech_criterion import MultitaskCriterion


@patch(
    "fairseq.criterions.speech_to_speech_criterion",
    because="fairseq 0.12.2: the losses of --multitask-config-yaml are logged per sentence, with "
    "and without --sentence-avg",
)
def multitasks_average_alike(module: PatchedModule) -> None:
    """Average the loss of a multitask as that of the task."""
    criterion = module.MultitaskCriterion

    def average_alike(self: MultitaskCriterion, multitask_tasks: dict[str, Any]) -> None:
        for part in self.multitask_criterion.values():
            # stock has the text "${optimization.sentence_avg}" here
            part.sentence_avg = self.sentence_avg

    call_after(criterion, "__init__", average_alike)


@patch(
    "fairseq.criterions.speech_to_speech_criterion",
    because="fairseq 0.12.2: --mcd-normalize-type pred and path log the mean of two distortions, "
    "one divided by the frames of the target",
)
def distortions_have_one_divisor(module: PatchedModule) -> None:
    """Divide both sums of speech_to_spectrogram by the frames that the option names."""
    criterion = module.SpeechToSpectrogramMultitaskTaskCriterion
    stock = criterion.reduce_metrics.__func__

    @functools.wraps(stock)
    def reduce_metrics(cls: type, logging_outputs: list[dict[str, Any]]) -> None:
        # the base class divides by targ_frames what the class divides by norm_frames
        stock(
            cls,
            [
                {**log, "targ_frames": log["norm_frames"]} if "norm_frames" in log else log
                for log in logging_outputs
            ],
        )

    criterion.reduce_metrics = classmethod(reduce_metrics)


@patch(
    "fairseq.criterions.speech_to_speech_criterion",
    because="fairseq 0.12.2: --multitask-config-yaml ends in an IndexError with a batch whose "
    "recordings have one length, and in a KeyError in fairseq-validate",
)
def multitasks_need_no_padding(module: PatchedModule) -> None:
    """Give the criteria a padding mask, and weights before the first step of a training."""
    criterion = module.MultitaskCriterion
    stock = criterion.get_multitask_loss

    def get_multitask_loss(
        self: MultitaskCriterion, model: Any, sample: dict[str, Any], model_out: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the weighted sum of the losses, and what is logged of each."""
        for name, part in self.multitask_criterion.items():
            self.multitask_loss_weight.setdefault(name, part.task.args.get_loss_weight(0))
        if not model_out["encoder_padding_mask"]:
            frames, count = model_out["encoder_states"][-1].shape[:2]
            lengths = sample["net_input"]["src_lengths"]
            is_padding = lengths.new_zeros((count, frames), dtype=module.torch.bool)
            model_out = {**model_out, "encoder_padding_mask": [is_padding]}
        return stock(self, model, sample, model_out)

    criterion.get_multitask_loss = get_multitask_loss


@patch(
    "fairseq.criterions.speech_to_speech_criterion",
    because="fairseq 0.12.2: --use-guided-attention-loss of speech_to_spectrogram ends in a "
    "RuntimeError: it takes the frames of the recording for those that the decoder attends to",
)
def attention_is_guided_among_states(module: PatchedModule) -> None:
    """Guide the attention to the states of the encoder, which are fewer."""
    criterion = module.SpeechToSpectrogramMultitaskTaskCriterion
    stock = criterion.forward

    @functools.wraps(stock)
    def forward(self: Any, model: Any, sample: dict[str, Any], reduction: str = "mean") -> Any:
        loss = self.guided_attn
        if loss is None:
            return stock(self, model, sample, reduction)
        guide = loss.forward

        def guide_to_states(attn: Any, src_lens: Any, *more: Any) -> Any:
            return guide(attn, model.encoder.subsample.get_out_seq_lens_tensor(src_lens), *more)

        loss.forward = guide_to_states
        try:
            return stock(self, model, sample, reduction)
        finally:
            del loss.forward

    criterion.forward = forward


@patch(
    "fairseq.data.audio.data_cfg",
    because="fairseq 0.12.2: a task of --multitask-config-yaml without dict, or whose dict does "
    "not exist, ends in an error that does not name it",
)
def multitasks_have_dictionaries(module: PatchedModule) -> None:
    """Refuse such a configuration by name."""
    config = module.MultitaskConfig

    def check_dictionaries(self: Any, yaml_path: Any) -> None:
        for name, task in (module.get_config_from_yaml(yaml_path) or {}).items():
            path = task.get("dict", "")
            if not os.path.isfile(path):
                raise ValueError(
                    f"{yaml_path}: {name}: dict: {path!r} is not there; it is to be the path of "
                    "the dictionary of this task"
                )

    call_before(config, "__init__", check_dictionaries)
