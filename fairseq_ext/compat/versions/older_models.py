"""Models of plugins that load parameters themselves, written for fairseq 0.9 and 0.10."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable

from ..optimizers.added_options import replace_everywhere
from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.models.fairseq_model",
    because="fairseq 0.12.2: models for 0.9 and 0.10 that give load_state_dict their options as "
    "args make it compose a whole configuration, which fails with options of a plugin",
)
def parameters_are_loaded_with_options(module: PatchedModule) -> None:
    """Read options that are given as `args` where today's configuration of the model is read."""
    for model in (module.BaseFairseqModel, module.FairseqMultiModel):
        model.load_state_dict = reading_args(model.load_state_dict)


def reading_args(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `load_state_dict` of fairseq that takes `args` for the configuration."""

    @functools.wraps(stock)
    def load_state_dict(
        self: Any, state_dict: Any, strict: bool = True, model_cfg: Any = None, args: Any = None
    ) -> Any:
        # only the layers to keep are read of it, by name
        return stock(self, state_dict, strict, args if model_cfg is None else model_cfg)

    return load_state_dict


@patch(
    "fairseq.models",
    because="fairseq 0.12 gives load_state_dict of a model its configuration: models for 0.9 and "
    '0.10 that load parameters themselves, as those of kNN-MT do, fail with "unexpected keyword '
    "argument 'model_cfg'\" when they are loaded",
)
def older_models_load_their_parameters(module: PatchedModule) -> None:
    """Call a `load_state_dict` of a plugin with the arguments that it takes."""
    stock = module.register_model

    @functools.wraps(stock)
    def register_model(name: str, *options: Any, **named: Any) -> Callable[[type], type]:
        register = stock(name, *options, **named)

        def register_model_cls(model: type) -> type:
            registered = register(model)  # which refuses what is no model
            for owner in model.__mro__:
                method = vars(owner).get("load_state_dict")
                is_stock = owner.__module__.startswith(("fairseq.", "torch."))
                if inspect.isfunction(method) and not is_stock:
                    take_configuration(owner, method)
            return registered

        return register_model_cls

    replace_everywhere(module, "register_model", register_model)


def take_configuration(owner: Any, method: Callable[..., Any]) -> None:
    """Let a method that lacks `model_cfg` be called with it; one that has `args` is given it so."""
    parameters = inspect.signature(method).parameters
    if "model_cfg" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return

    @functools.wraps(method)
    def load_state_dict(
        self: Any, state_dict: Any, strict: bool = True, model_cfg: Any = None, args: Any = None
    ) -> Any:
        options = args if model_cfg is None else model_cfg
        return method(
            self, state_dict, strict, **({"args": options} if "args" in parameters else {})
        )

    owner.load_state_dict = load_state_dict
