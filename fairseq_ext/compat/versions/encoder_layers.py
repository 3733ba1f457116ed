"""Encoder layers of stock transformers without the fused path of torch 1.12.

fairseq 0.12.2 copies the weights of every encoder layer into eight more parameters for
`torch._transformer_encoder_layer_fwd`. The copies are never trained and stay zero until a
checkpoint is loaded, yet they are counted, optimised over, sent between workers and saved.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Callable, Iterable

from ..command_line.chosen_classes import is_stock
from ..module_overlay import overlay_names
from ..optimizers.optimizer_states import SavedParameter, without_dropped_parameters
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.trainer import Trainer
    from torch import Tensor, nn

# the copies in the order of their registration, with the parameters of the layer they repeat
# and how many of that size they hold: 3 for query, key and value in one
COPIES = {
    "in_proj_weight": ("self_attn.q_proj.weight", 3),
    "in_proj_bias": ("self_attn.q_proj.bias", 3),
    "out_proj_weight": ("self_attn.out_proj.weight", 1),
    "out_proj_bias": ("self_attn.out_proj.bias", 1),
    "fc1_weight": ("fc1.weight", 1),
    "fc1_bias": ("fc1.bias", 1),
    "fc2_weight": ("fc2.weight", 1),
    "fc2_bias": ("fc2.bias", 1),
}
# {method that builds a part of a layer: what the copies are made of there}
BUILDERS = {
    "build_self_attention": ("q_proj", "out_proj"),
    "build_fc1": ("weight", "bias"),
    "build_fc2": ("weight", "bias"),
}
# the last one before the fused path, with a number that fairseq can read
VERSION_WITHOUT = "1.11.0"


@patch(
    "fairseq.modules.transformer_layer",
    "fairseq.models.transformer.transformer_encoder",
    because="fairseq 0.12.2: the fused path reads the version of torch: no transformer can be "
    "built with a torch of NVIDIA's containers, 2.6.0a0 (\"invalid literal for int() with base "
    "10: '0a0'\"); it asks layers of a plugin for attributes of fairseq's (\"has no attribute "
    "'load_to_BT'\")",
)
def no_version_has_a_fused_path(module: PatchedModule) -> None:
    """Show both modules a torch without the fused path."""
    overlay_names(module, "torch", __version__=VERSION_WITHOUT)


@patch(
    "fairseq.modules.transformer_layer",
    because="fairseq 0.12.2 with any torch: 8 parameters per encoder layer are there twice; torch "
    "1.13 and later: 'Mask Type should be defined' in evaluation of post-norm encoders",
)
def encoder_layers_without_copies(module: PatchedModule) -> None:
    """Build encoder layers without the copies, with the fused path off; drop them on loading.

    Deviation from the stock class: checkpoints are written without the copies. Stock fairseq loads
    such checkpoints as well, because it fills the copies from the other weights while loading.
    """
    layer = module.TransformerEncoderLayerBase
    # the method of the base class: the stock one fills the copies
    load = super(layer, layer)._load_from_state_dict
    build = layer.__init__

    @functools.wraps(build)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        _build_without_copies(self, functools.partial(build, self, *args, **kwargs))
        self.BT_version = False
        self.can_use_fastpath = False

    def _load_from_state_dict(
        self: nn.Module, state_dict: dict[str, Tensor], prefix: str, *args: Any, **named: Any
    ) -> None:
        for name in COPIES:
            if not hasattr(self, name):  # a layer of a plugin may have a parameter of this name
                state_dict.pop(prefix + name, None)  # of a checkpoint of plain fairseq
        load(self, state_dict, prefix, *args, **named)

    layer.__init__ = __init__
    layer._load_from_state_dict = _load_from_state_dict
    # a constant lets TorchScript leave out the branch that reads the copies
    layer.__constants__ = [*getattr(layer, "__constants__", ()), "BT_version"]


def _build_without_copies(layer: Any, build: Callable[[], None]) -> None:
    """Call `build`, which makes a layer, and take the copies away.

    Parts of a plugin may lack what they are made of: an attention without `q_proj`, or one without
    a bias, a feed-forward layer with a gate. While the layer is made, all parts have empty tensors
    there.
    """
    import torch

    empty = torch.empty(0, 0)
    stand_in = SimpleNamespace(weight=empty, bias=empty)
    built: list[tuple[Any, str]] = []

    def noted(method: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
        def build_part(*args: Any, **kwargs: Any) -> Any:
            part = method(*args, **kwargs)
            for name in names:
                # torch looks for parameters and modules only behind this dictionary
                if name not in vars(part):
                    vars(part)[name] = stand_in if name.endswith("_proj") else empty
                    built.append((part, name))
            return part

        return build_part

    for name, names in BUILDERS.items():
        vars(layer)[name] = noted(getattr(layer, name), names)
    try:
        build()
    finally:
        for part, name in built:
            del vars(part)[name]
        for name in BUILDERS:
            del vars(layer)[name]
    for name in COPIES:
        # what is deleted is neither optimised nor sent nor saved; layers of early 2022 have none
        layer._parameters.pop(name, None)


@patch(
    "fairseq.models.transformer.transformer_encoder",
    because="fairseq 0.12.2: --encoder-layers 0 ends in `index 0 is out of range` at the first "
    "batch, where the encoder asks its first layer for the fused path",
)
def encoders_have_a_layer(module: PatchedModule) -> None:
    """Refuse by name an encoder of fairseq's transformers without layers."""

    def check_layers(self: Any, *args: Any, **kwargs: Any) -> None:
        # one of another project may add its layers later
        if not self.num_layers and is_stock(type(self)):
            raise OptionError(
                "--encoder-layers 0 (or --encoder-layers-to-keep without layers): the encoder of a "
                "transformer reads its first layer; allowed: at least 1"
            )

    call_after(module.TransformerEncoderBase, "__init__", check_layers)


@patch(
    "fairseq.trainer",
    because="with encoder_layers_without_copies: checkpoints of plain fairseq 0.12.2 hold "
    "optimiser states for the copies, and resuming from them fails without this",
)
def optimizer_states_without_copies(module: PatchedModule) -> None:
    """Let a trainer's optimizer accept the states of a model with copies."""

    def accept_copies(self: Trainer) -> None:
        optimizer = self._optimizer
        load = optimizer.load_state_dict

        def load_state_dict(
            state_dict: dict[str, Any], optimizer_overrides: dict[str, Any] | None = None
        ) -> None:
            # the order in which fairseq's trainer hands them to the optimiser
            parameters = parameters_with_copies([self.get_model(), self.get_criterion()])
            load(without_dropped_parameters(state_dict, parameters), optimizer_overrides)

        optimizer.load_state_dict = load_state_dict

    call_after(module.Trainer, "_build_optimizer", accept_copies)


def parameters_with_copies(roots: Iterable[nn.Module]) -> list[SavedParameter]:
    """Return the trainable parameters in the order that plain fairseq 0.12.2 has them.

    In each module, its own parameters come before those of its children: the copies of an encoder
    layer are the first of that layer.
    """
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    saved: list[SavedParameter] = []
    seen: set[int] = set()  # shared modules and parameters are registered several times
    for module in (module for root in roots for module in root.modules()):
        if isinstance(module, TransformerEncoderLayerBase) and id(module) not in seen:
            seen.add(id(module))
            saved += _copies_of(module)
        for parameter in module.parameters(recurse=False):
            if parameter.requires_grad and id(parameter) not in seen:
                seen.add(id(parameter))
                saved.append(SavedParameter(size=parameter.numel(), is_dropped=False))
    return saved


def _copies_of(layer: nn.Module) -> list[SavedParameter]:
    """Return the copies that a layer has in plain fairseq, which cannot build one with others."""
    parameters = dict(layer.named_parameters())
    originals = [(parameters.get(name), times) for name, times in COPIES.values()]
    sizes = [original.numel() * times for original, times in originals if original is not None]
    complete = len(sizes) == len(originals)
    return [SavedParameter(size=size, is_dropped=True) for size in sizes] if complete else []
