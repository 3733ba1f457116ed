"""--encoder-layers-to-keep and --decoder-layers-to-keep."""

from __future__ import annotations

import contextvars
import functools
import re
from typing import TYPE_CHECKING, Any, ContextManager, Optional

from ..context_values import holding
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before, call_within
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.trainer import Trainer

SIDES = ("encoder", "decoder")
# encoder.layers.0.fc1.weight, and models.de-en.encoder.layers.0.fc1.weight of a model of several
LAYER = re.compile(
    r"(?P<model>(?:.*?\.)??)(?P<side>encoder|decoder)\."
    r"(?P<layer>(?:.*?\.)??layers\.(?P<number>\d+)\..*)"
)
# True while a training reads the model that it begins with, which it has not pruned itself
_reads_first_model: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "reads the first model", default=False
)


def check_layers(side: str, to_keep: str, count: int) -> None:
    """Raise OptionError unless ``to_keep`` names different ones of ``count`` layers."""
    numbers = [part.strip() for part in to_keep.split(",")]
    is_number = all(number.isascii() and number.isdigit() for number in numbers)
    if not is_number or len(set(map(int, numbers))) < len(numbers):
        allowed = "different numbers from 0 on, such as 0,2"
    elif max(map(int, numbers)) >= count:
        allowed = f"numbers from 0 to {count - 1}, the layers of the checkpoint"
    else:
        return
    raise OptionError(f"--{side}-layers-to-keep {to_keep} is not allowed; allowed: {allowed}")


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12.2: with --encoder-layers-to-keep alone a checkpoint loses all layers of "
    "the decoder, and with --decoder-layers-to-keep all of the encoder: it cannot be loaded. A "
    "training with either cannot be resumed: its checkpoints are pruned once more",
)
def layers_of_the_other_side_remain(module: PatchedModule) -> None:
    """Prune the layers of the sides that are named, unless they are; all others stay.

    Also of the models of several directions that a model consists of.
    """
    stock = module.prune_state_dict

    def is_pruned(matches: list[re.Match[str]], side: str, to_keep: str) -> bool:
        """True if a side has as many layers as are to be kept: of all layers they are all."""
        count = len({match["number"] for match in matches if match["side"] == side})
        # none: of a model that names its layers otherwise, and has built as many as it is to have
        if not count or (count == len(to_keep.split(",")) and not _reads_first_model.get()):
            return True
        check_layers(side, to_keep, count)
        return False

    @functools.wraps(stock)
    def prune_state_dict(state_dict: dict[str, Any], model_cfg: Any) -> dict[str, Any]:
        to_keep = {side: getattr(model_cfg, f"{side}_layers_to_keep", None) for side in SIDES}
        matches = {name: match for name in state_dict if (match := LAYER.fullmatch(name))}
        sides = [
            side
            for side, numbers in to_keep.items()
            if numbers and not is_pruned(list(matches.values()), side, numbers)
        ]
        if not sides:
            return state_dict
        # stock looks for names that begin with the side: the model's place stands behind it
        places: dict[str, int] = {}
        layers, others = {}, {}
        for name, value in state_dict.items():
            match = matches.get(name)
            if match is None or match["side"] not in sides:
                others[name] = value
            else:
                place = places.setdefault(match["model"], len(places))
                layers[f"{match['side']}.{place}.{match['layer']}"] = value
        models = list(places)
        for name, value in stock(layers, model_cfg).items():
            side, place_name, layer = name.split(".", 2)
            others[f"{models[int(place_name)]}{side}.{layer}"] = value
        return others

    module.prune_state_dict = prune_state_dict


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: layers that the model of --finetune-from-model does not have are "
    "missing parameters, and layers_of_the_other_side_remain takes them for pruned",
)
def first_models_have_all_layers(module: PatchedModule) -> None:
    """Prune the model of --finetune-from-model, however many layers it has."""

    def note_first_model(
        self: Trainer, filename: str, *args: Any, **kwargs: Any
    ) -> ContextManager[None]:
        is_first = filename == self.cfg.checkpoint.finetune_from_model
        return holding(_reads_first_model, is_first)

    call_within(module.Trainer, "load_checkpoint", note_first_model)


@patch("fairseq.checkpoint_utils", because="fairseq 0.12.2, as before")
def overrides_name_layers_of_the_checkpoint(module: PatchedModule) -> None:
    """Refuse layers in --model-overrides that the model of the checkpoint does not have."""

    def check_overrides(cfg: Any, overrides: dict[str, Any]) -> None:
        model = getattr(cfg, "model", None)
        for side in SIDES:
            name = f"{side}_layers_to_keep"
            to_keep, count = overrides.get(name), getattr(model, f"{side}_layers", None)
            # what the checkpoint itself says was done to a larger model
            if to_keep and isinstance(count, int) and to_keep != getattr(model, name, None):
                check_layers(side, to_keep, count)

    call_before(module, "overwrite_args_by_name", check_overrides)


@patch(
    "fairseq.models.transformer.transformer_config",
    because="fairseq 0.12.2 reads --encoder-layers-to-keep 0,2 as a list, where every model "
    "expects the text: a training ends in AttributeError",
)
def layers_are_named_by_text(module: PatchedModule) -> None:
    """Declare the option as text, as for language models."""
    config = module.EncDecBaseConfig
    # configurations that inherit it share the field
    config.__dataclass_fields__["layers_to_keep"].type = Optional[str]
    config.__annotations__["layers_to_keep"] = Optional[str]


@patch(
    "fairseq.models.multilingual_transformer",
    because="fairseq 0.12.2: a multilingual_transformer is built with all layers, whatever "
    "--encoder-layers-to-keep and --decoder-layers-to-keep say, and its checkpoints are pruned "
    "whenever they are read: they can neither be resumed nor translate",
)
def multilingual_models_have_the_layers_to_keep(module: PatchedModule) -> None:
    """Build as many layers as are to be kept, as fairseq's transformer does."""
    model = module.MultilingualTransformerModel
    stock = model.build_model.__func__

    @functools.wraps(stock)
    def build_model(cls: type, args: Any, task: Any) -> Any:
        for side in SIDES:
            to_keep = getattr(args, f"{side}_layers_to_keep", None)
            if to_keep:
                setattr(args, f"{side}_layers", len(to_keep.split(",")))
        return stock(cls, args, task)

    model.build_model = classmethod(build_model)
