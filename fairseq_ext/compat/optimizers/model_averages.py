"""Averages of a model's parameters (`--store-ema`, data2vec) begin as a copy of the model."""

from __future__ import annotations

import copy
import functools
import logging
from typing import TYPE_CHECKING, Any, Mapping

from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after, call_before

if TYPE_CHECKING:
    from fairseq.models.ema import EMA
    from fairseq.trainer import Trainer
    from torch import Tensor, nn

logger = logging.getLogger(__name__)


@patch(
    "fairseq.models.ema.ema",
    "fairseq.modules.ema_module",
    because="fairseq 0.12.2 with any torch: --store-ema with fconv, wav2vec 2.0 and other models "
    "with weight_norm, and data2vec with pos_conv_depth 1, end in 'Only Tensors created explicitly "
    "by the user (graph leaves) support the deepcopy protocol'",
)
def averages_of_normalised_weights(module: PatchedModule) -> None:
    """Let the averages copy models whose weights are computed from parameters."""
    overlay_names(module, "copy", deepcopy=copy_of)


def copy_of(original: nn.Module | Tensor) -> nn.Module | Tensor:
    """Return a deep copy of a module, or of a tensor that it has.

    torch refuses to copy a tensor that was computed from parameters, such as the `weight` that
    weight_norm leaves on its module and computes anew before each call. The copy has its value.
    """
    import torch

    # what deepcopy takes for a copy that is there already, by the id of the original
    copies: dict[int, Any] = {}
    if isinstance(original, torch.nn.Module):
        for value in (value for part in original.modules() for value in vars(part).values()):
            if isinstance(value, torch.Tensor) and not value.is_leaf:
                copies[id(value)] = value.detach().clone()
    return copy.deepcopy(original, copies)


@patch(
    "fairseq.models.ema.ema",
    because="fairseq 0.12.2: averages are restored without the version of the model, which is then "
    "taken for one of 2018: those of pre-norm transformers lose their last layer norm",
)
def averages_have_a_version(module: PatchedModule) -> None:
    """Restore the averages with the versions that their model has."""
    ema = module.EMA
    stock = ema.restore

    @functools.wraps(stock)
    def restore(self: EMA, state_dict: dict[str, Any], build_fp32_params: bool = False) -> None:
        present = self.model.state_dict()
        versions = {name: value for name, value in present.items() if "version" in name}
        stock(self, {**versions, **state_dict}, build_fp32_params)

    ema.restore = restore


@patch(
    "fairseq.models.ema.ema",
    because="fairseq 0.12.2: the average of a parameter that has several names, such as shared "
    "embeddings, moves once for each of them: by decay 0.9997 in place of 0.9999 for three",
)
def tied_parameters_have_one_average(module: PatchedModule) -> None:
    """Let --store-ema take every parameter into its average once in an update."""
    ema = module.EMA
    stock = ema._step_internal

    @functools.wraps(stock)
    def _step_internal(self: EMA, new_model: nn.Module, updates: int | None = None) -> None:
        averages = self.fp32_params if self.config.ema_fp32 else self.model.state_dict()
        stock(self, _NamedOnce(new_model, averages), updates)

    ema._step_internal = _step_internal


@patch(
    "fairseq.models.ema.ema",
    because="fairseq 0.12.2: --store-ema with BatchNorm, as of s2t_conformer, ends at its first "
    'update in "result type Float can\'t be cast to the desired output type Long"',
)
def counters_are_copied(module: PatchedModule) -> None:
    """Copy what is no floating-point number, such as the batches that BatchNorm has counted."""
    ema = module.EMA

    def skip_counters(self: EMA, model: nn.Module, *args: Any, **kwargs: Any) -> None:
        state = self.model.state_dict()
        counters = {
            name
            for name, value in state.items()
            if module.torch.is_tensor(value) and not value.is_floating_point()
        }
        self.skip_keys = {*self.skip_keys, *counters}

    call_after(ema, "__init__", skip_counters)


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: --store-ema with --fp16 or --bf16, without --ema-fp32, has averages "
    "in 16 bits, where a step of the default decay is lost: they stay as they begin",
)
def averages_are_in_single_precision(module: PatchedModule) -> None:
    """Switch --ema-fp32 on in trainings in 16 bits, before the averages are built."""

    def switch_on(self: Trainer) -> None:
        common, settings = self.cfg.common, self.cfg.ema
        if settings.store_ema and (common.fp16 or common.bf16) and not settings.ema_fp32:
            logger.info("--store-ema: the averages are in single precision, as with --ema-fp32")
            settings.ema_fp32 = True  # the trainer stores and restores them by it

    call_before(module.Trainer, "_build_ema", switch_on)


class _NamedOnce:
    """The state of a model without further names of what has the same average.

    Args:
        model: whose parameters are taken into the averages.
        averages: {name: average}; names of one parameter have one storage, or each its own.
    """

    def __init__(self, model: nn.Module, averages: Mapping[str, Tensor]) -> None:
        self.model, self.averages = model, averages

    def state_dict(self) -> dict[str, Any]:
        """Return {name: value} of the first name of each average."""
        state: dict[str, Any] = {}
        places: set[tuple[Any, ...]] = set()
        for name, value in self.model.state_dict().items():
            average = self.averages.get(name)
            if average is not None:
                place = average.data_ptr(), average.shape, average.stride()
                if place in places:
                    continue
                places.add(place)
            state[name] = value
        return state


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: --store-ema ends in KeyError: 'model' where the checkpoint of "
    "--finetune-from-model, --restore-file or --save-dir has no averages; with "
    "--finetune-from-model, the averages of a new training are those of the one before",
)
def averages_may_begin_later(module: PatchedModule) -> None:
    """Begin the averages with the parameters of such a checkpoint, or with --ema-seed-model."""
    trainer = module.Trainer
    load = trainer.load_checkpoint
    # while a training with averages is restored: its --ema-seed-model and --finetune-from-model
    origins: list[tuple[str | None, str | None]] = []

    def load_checkpoint_to_cpu(path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        from fairseq import checkpoint_utils

        state: dict[str, Any] = checkpoint_utils.load_checkpoint_to_cpu(path, *args, **kwargs)
        seed, first_model = origins[0] if origins else (None, None)
        extra_state = state["extra_state"]
        if origins and ("ema" not in extra_state or path == first_model):
            begin = checkpoint_utils.load_ema_from_checkpoint(seed) if seed else state
            if "ema" not in extra_state:
                logger.warning(f"{path} has no averages: they begin as {seed or 'its parameters'}")
            # another dictionary: fairseq removes that of the model when it is loaded
            extra_state["ema"] = dict(begin["model"])
            extra_state.pop("ema_fp32_params", None)
        return state

    @functools.wraps(load)
    def load_checkpoint(self: Trainer, *args: Any, **kwargs: Any) -> Any:
        cfg = self.cfg
        if cfg.ema.store_ema:
            origins[:] = [(cfg.ema.ema_seed_model, cfg.checkpoint.finetune_from_model)]
        try:
            return load(self, *args, **kwargs)
        finally:
            origins.clear()

    overlay_names(module, "checkpoint_utils", load_checkpoint_to_cpu=load_checkpoint_to_cpu)
    trainer.load_checkpoint = load_checkpoint
