"""--quant-noise-pq and --quant-noise-scalar: weights are quantized in the forward pass alone."""

from __future__ import annotations

import functools
import inspect
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Callable

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

if TYPE_CHECKING:
    from torch import Tensor, nn

# where a module has its parameter while a forward pass reads the noised weight
CLEAN_WEIGHT = "weight_without_noise"


@patch(
    "fairseq.modules.quantization.scalar.ops",
    because="fairseq 0.12.2: --quant-noise-scalar asks for CUDA, whatever the device; the method "
    "`channel` calls what torch's observers no longer have",
)
def numbers_are_quantized_where_they_are(module: PatchedModule) -> None:
    """Bring the scale to the device of what is quantized."""
    observers = module.quantization.observer
    by_channel = functools.partial(
        observers.PerChannelMinMaxObserver,
        ch_axis=-1,
        qscheme=module.torch.per_channel_symmetric,
    )
    module.emulate_int8_histogram = _emulation(module, observers.HistogramObserver)
    module.emulate_int8_channel = _emulation(module, by_channel)
    module.emulate_int8_tensor = _emulation(module, observers.MinMaxObserver)


def _emulation(module: PatchedModule, build_observer: Callable[[], Any]) -> Callable[..., Any]:
    """Return the function that quantizes by what an observer sees."""

    def emulate(
        w: Tensor, scale: Tensor | None = None, zero_point: Tensor | None = None, bits: int = 8
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return (quantized, scale, zero point); the last two are new if there is no scale."""
        if scale is None:
            observer = build_observer().to(w.device)
            observer(w.float())
            scale, zero_point = (part.to(w) for part in observer.calculate_qparams())
        return module.quantize(w, scale, zero_point, bits=bits), scale, zero_point

    return emulate


@patch(
    "fairseq.modules.quant_noise",
    because="fairseq 0.12.2: --quant-noise-pq writes its noise into the parameters: without "
    "--fp16, blocks that were dropped stay zero, until all are; sizes that are no multiple of "
    "the block end in an AssertionError",
)
def noise_leaves_the_parameters(module: PatchedModule) -> None:
    """Give each forward pass a noised copy of the weight; gradients pass it unchanged."""
    stock = module.quant_noise

    @functools.wraps(stock)
    def quant_noise(module: nn.Module, p: float, block_size: int) -> nn.Module:
        """Return the module, with noise if p > 0; raise ValueError if blocks do not fit."""
        if p <= 0:
            return module
        weight: Any = module.weight
        if weight.ndim == 2 and weight.size(1) % block_size:
            raise ValueError(
                f"--quant-noise-pq-block-size {block_size} is not allowed; allowed: divisors of "
                f"the sizes of the model, such as {weight.size(1)}"
            )
        stock(module, p, block_size)
        _, write_noise = module._forward_pre_hooks.popitem()

        def add_noise(part: Any, inputs: tuple[Tensor, ...]) -> None:
            if not part.training:
                return
            # after a pass that failed, it is still there
            parameter = part.__dict__.setdefault(CLEAN_WEIGHT, part.weight)
            part._parameters["weight"] = parameter
            clean = parameter.data
            write_noise(part, inputs)
            noised, parameter.data = parameter.data, clean
            # the value is that of the noised weight, the gradient that of the parameter
            part._parameters["weight"] = noised + (parameter - parameter.detach())

        def remove_noise(part: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            if CLEAN_WEIGHT in part.__dict__:
                part._parameters["weight"] = part.__dict__.pop(CLEAN_WEIGHT)

        module.register_forward_pre_hook(add_noise)
        module.register_forward_hook(remove_noise)
        return module

    module.quant_noise = quant_noise


@patch(
    "fairseq.modules.multihead_attention",
    because="fairseq 0.12.2: self-attention has no noise of --quant-noise-pq, because it hands the "
    "weights of its projections to torch",
)
def attention_has_noise(module: PatchedModule) -> None:
    """Compute attention by its projections if they have noise."""
    attention = module.MultiheadAttention
    signature = inspect.signature(attention.__init__)

    def read_noise(self: Any, *args: Any, **kwargs: Any) -> None:
        noise = signature.bind(self, *args, **kwargs).arguments.get("q_noise") or 0
        if noise > 0 and not self.use_xformers:
            self._set_skip_embed_dim_check()  # its effect: torch's function is not called

    call_after(attention, "__init__", read_noise)


@patch(
    "fairseq.modules.quantization.scalar.utils",
    because="fairseq 0.12.2: self-attention over a whole sentence is not quantized by "
    "--quant-noise-scalar, but that of a search is: a translation has another score while it is "
    "searched; learned positions end in a KeyError",
)
def attention_is_quantized(module: PatchedModule) -> None:
    """Compute attention by its quantized projections; leave learned positions as they are."""
    stock, layers_of = module.quantize_model_, module.get_layers

    def get_layers(model: nn.Module, *args: Any, **kwargs: Any) -> list[str]:
        """Return the names of layers, without those of classes that only derive from one."""
        kinds = {name: type(attrgetter(name)(model)) for name in layers_of(model, *args, **kwargs)}
        return [
            name
            for name, kind in kinds.items()
            if kind in module.MAPPING or not issubclass(kind, tuple(module.MAPPING))
        ]

    @functools.wraps(stock)
    def quantize_model_(model: nn.Module, *args: Any, **kwargs: Any) -> Any:
        from fairseq.modules import MultiheadAttention

        layers = stock(model, *args, **kwargs)
        for part in model.modules():
            if isinstance(part, MultiheadAttention) and not part.use_xformers:
                part._set_skip_embed_dim_check()  # its effect: torch's function is not called
        return layers

    module.get_layers, module.quantize_model_ = get_layers, quantize_model_


@patch(
    "fairseq.modules.quantization.scalar.modules.qconv",
    because="torch 1.5: convolutions with another padding than zeros, quantized by "
    "quantize_model_, end in \"no attribute '_padding_repeated_twice'\"",
)
def convolutions_pad_as_before(module: PatchedModule) -> None:
    """Give the attribute the name that torch has now."""
    module.IntConv2d._padding_repeated_twice = property(
        attrgetter("_reversed_padding_repeated_twice")
    )


@patch(
    "fairseq.quantization_utils",
    because="fairseq 0.12.2: with --quantization-config-path the learning rate begins anew after "
    "each stage: its first update has the rate of the first update of the training, and with "
    "--lr A,B the whole epoch has A",
)
def rates_go_on_after_a_stage(module: PatchedModule) -> None:
    """Give the schedule of the next stage the state and the rate of the one before."""
    quantizer = module.Quantizer
    stock = quantizer.step

    @functools.wraps(stock)
    def step(self: Any) -> None:
        trainer = self.trainer
        schedule, rate = trainer.lr_scheduler, trainer.get_lr()
        stock(self)
        if trainer.lr_scheduler is not schedule:  # a layer was quantized
            trainer.lr_scheduler.load_state_dict(schedule.state_dict())
            trainer.optimizer.set_lr(rate)
            trainer.lr_step_update()

    quantizer.step = step
