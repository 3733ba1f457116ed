"""--bf16, --fp16 and --amp on the device at hand."""

from __future__ import annotations

import argparse
import copy
import functools
import types
from typing import TYPE_CHECKING, Any, Callable, Iterable, Sequence

from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after, call_before
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.models import BaseFairseqModel
    from fairseq.nan_detector import NanDetector
    from fairseq.optim import FairseqOptimizer
    from fairseq.optim.amp_optimizer import AMPOptimizer
    from fairseq.optim.fp16_optimizer import FP16Optimizer
    from fairseq.trainer import Trainer
    from torch import Tensor


def _has_tpu_option(parser: argparse.ArgumentParser, input_args: Sequence[str] | None) -> bool:
    """Return True if the command line has --tpu."""
    args, _ = parser.parse_known_args(input_args)
    return bool(getattr(args, "tpu", False))


@patch(
    "fairseq.options",
    because="fairseq 0.12.2 with any torch: --bf16 switches --tpu on and dies without torch_xla",
)
def bf16_without_tpu(module: PatchedModule) -> None:
    """Leave `args.tpu` as the user gave it."""
    parse = module.parse_args_and_arch

    def parse_args_and_arch(
        parser: argparse.ArgumentParser,
        input_args: Sequence[str] | None = None,
        parse_known: bool = False,
        *more: Any,
        **kwargs: Any,
    ) -> Any:
        try:
            parsed = parse(parser, input_args, parse_known, *more, **kwargs)
        except ValueError as error:
            # raised in front of the checks of options, also where nobody has asked for --tpu
            if "Cannot combine --fp16 and --tpu" not in str(error):
                raise
            if _has_tpu_option(parser, input_args):
                raise
            raise OptionError(
                "--fp16 with --bf16: both choose the precision; allowed: one of the two"
            ) from error
        args = parsed[0] if parse_known else parsed
        if getattr(args, "bf16", False) and getattr(args, "tpu", False):
            # fairseq set it because of --bf16; read the command line again to see what the user set
            args.tpu = _has_tpu_option(parser, input_args)
        return parsed

    module.parse_args_and_arch = parse_args_and_arch


@patch(
    "fairseq.dataclass.configs",
    because="fairseq 0.12.2: the help of --bf16 says that it implies --tpu",
)
def bf16_help(module: PatchedModule) -> None:
    """Say in --help what --bf16 does."""
    field = module.CommonConfig.__dataclass_fields__["bf16"]
    words = "use bfloat16 on the device at hand (CPU, CUDA; TPU with --tpu)"
    # a field's own is read-only
    field.metadata = types.MappingProxyType({**field.metadata, "help": words})


@patch(
    "fairseq.models.fairseq_model",
    because="fairseq 0.12.2: fairseq-generate, -interactive and -eval-lm accept --bf16 and ignore "
    "it",
)
def bf16_inference(module: PatchedModule) -> None:
    """Convert the model when it is prepared for inference under --bf16."""
    import torch

    base = module.BaseFairseqModel

    def convert(self: BaseFairseqModel, cfg: FairseqConfig) -> None:
        if getattr(cfg.common, "bf16", False):
            self.to(dtype=torch.bfloat16)

    call_after(base, "prepare_for_inference_", convert)


@patch(
    "fairseq.optim.fp16_optimizer",
    because="fairseq 0.12.2 with any torch: --fp16 keeps its parameters on a CUDA device; without "
    "one it dies with an error about drivers",
)
def fp16_needs_cuda(module: PatchedModule) -> None:
    """Refuse --fp16 on a CPU by name."""
    optimizer = module.FP16Optimizer
    build = optimizer.build_optimizer.__func__  # under the classmethod: it is given `cls`

    def build_optimizer(
        cls: type[FP16Optimizer], cfg: FairseqConfig, params: Iterable[Tensor], **kwargs: Any
    ) -> FP16Optimizer:
        # a generator, which looking at the first one would use up
        params = list(params)
        flat = not (cfg.common.bf16 or cfg.common.fp16_no_flatten_grads)
        if flat and params and params[0].device.type == "cpu":
            raise ValueError(
                "--fp16 was given and the model is on the CPU: its flat parameters need CUDA. "
                "On a CPU use --bf16, or add --fp16-no-flatten-grads"
            )
        return build(cls, cfg, params, **kwargs)

    optimizer.build_optimizer = classmethod(build_optimizer)


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: the first overflow of --fp16 --fp16-no-flatten-grads ends a training "
    "on the CPU with 'Torch not compiled with CUDA enabled', or asks for the GPU in spite of --cpu",
)
def overflows_need_no_cuda(module: PatchedModule) -> None:
    """Leave the norm of a gradient that has overflowed, a zero for the log, on the CPU."""
    import torch

    def tensor(value: float) -> Tensor:
        zero = torch.tensor(value)
        zero.__dict__["cuda"] = lambda: zero  # the log adds up values of any device
        return zero

    overlay_names(module, "torch", tensor=tensor)  # it has no other use of torch.tensor


@patch(
    "fairseq.optim.amp_optimizer",
    because="fairseq 0.12.2 with any torch: under --amp on CUDA gradients are divided by the loss "
    "scale when they are clipped and once more in the step",
)
def amp_unscales_once(module: PatchedModule) -> None:
    """Give the scaler the optimizer whose gradients it has unscaled: it tells them by identity."""

    def step(self: AMPOptimizer) -> None:
        self.scaler.step(self.optimizer)
        self.scaler.update()

    module.AMPOptimizer.step = step


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2 with any torch: the retries of --amp-batch-retries are counted over "
    "all batches of a training: a batch may be skipped without one",
)
def each_batch_has_its_retries(module: PatchedModule) -> None:
    """Count anew when a batch has been trained or skipped."""

    def begin_anew(self: Trainer, *args: Any, **kwargs: Any) -> None:
        if self.cfg.common.amp:
            self._amp_retries = 0

    # it calls itself to try again, and adds to the number before
    call_after(module.Trainer, "train_step", begin_anew)


@patch(
    "fairseq.optim.amp_optimizer",
    because="fairseq 0.12.2: with --amp on a CPU, where torch scales no loss, a gradient of NaN "
    "ends in \"'GradScaler' object has no attribute '_backoff_factor'\"",
)
def no_scale_explains_nan_on_cpus(module: PatchedModule) -> None:
    """Raise FloatingPointError for such a gradient, as without --amp."""
    optimizer = module.AMPOptimizer
    clip = optimizer.clip_grad_norm

    @functools.wraps(clip)
    def clip_grad_norm(
        self: AMPOptimizer, max_norm: float, aggregate_norm_fn: Callable[..., Any] | None = None
    ) -> Tensor:
        if self.scaler.is_enabled():
            norm: Tensor = clip(self, max_norm, aggregate_norm_fn)
            return norm
        norm = self.fp32_optimizer.clip_grad_norm(max_norm, aggregate_norm_fn)
        if not norm.isfinite().all():
            raise FloatingPointError("gradients are Nan/Inf")
        return norm

    optimizer.clip_grad_norm = clip_grad_norm


@patch(
    "fairseq.nan_detector",
    because="fairseq 0.12.2 with any torch: a training of a Transformer whose gradient is NaN "
    "without --fp16 ends in StopIteration, because torch looks for a tensor in what an encoder "
    "returns",
)
def detectors_watch_layers(module: PatchedModule) -> None:
    """Follow the backward pass through modules without parts, which return tensors."""
    from torch import nn

    detector = module.NanDetector
    add = detector.add_hooks

    @functools.wraps(add)
    def add_hooks(self: NanDetector, module: nn.Module) -> None:
        backward, self.backward = self.backward, self.backward and not list(module.children())
        try:
            add(self, module)
        finally:
            self.backward = backward

    detector.add_hooks = add_hooks


def _with_common(cfg: FairseqConfig, **values: Any) -> FairseqConfig:
    """Return a copy of the settings with other ones in `common`."""
    changed = copy.deepcopy(cfg)
    for name, value in values.items():
        setattr(changed.common, name, value)
    return changed


@patch(
    "fairseq.optim.amp_optimizer",
    because="fairseq 0.12.2 with any torch: --amp starts with --fp16-init-scale, and with "
    "--amp-scale-window the scale grows after --amp-init-scale updates",
)
def amp_scale_has_its_own_options(module: PatchedModule) -> None:
    """Build the scaler of --amp from --amp-init-scale and --amp-scale-window."""
    optimizer = module.AMPOptimizer
    build = optimizer.__init__

    def __init__(self: AMPOptimizer, cfg: FairseqConfig, *args: Any, **kwargs: Any) -> None:
        common = cfg.common
        # the settings that stock reads in the place of these
        values = {"fp16_init_scale": common.amp_init_scale}
        if getattr(common, "amp_scale_window", None) is not None:
            values["amp_init_scale"] = common.amp_scale_window
        build(self, _with_common(cfg, **values), *args, **kwargs)

    optimizer.__init__ = __init__


@patch(
    "fairseq.optim.fp16_optimizer",
    because="fairseq 0.12.2: --bf16, which scales no loss, asks for --fp16-scale-window where "
    "--update-freq is a list",
)
def bf16_needs_no_scale_window(module: PatchedModule) -> None:
    """Build the optimisers of --bf16 with any window: nothing reads it."""

    def any_window(build: Callable[..., None]) -> Callable[..., None]:
        def __init__(self: Any, cfg: FairseqConfig, *args: Any, **kwargs: Any) -> None:
            if getattr(cfg.common, "bf16", False) and cfg.common.fp16_scale_window is None:
                cfg = _with_common(cfg, fp16_scale_window=1)
            build(self, cfg, *args, **kwargs)

        return __init__

    for optimizer in (module.FP16Optimizer, module.MemoryEfficientFP16Optimizer):
        optimizer.__init__ = any_window(optimizer.__init__)


@patch(
    "fairseq.optim.fp16_optimizer",
    because="fairseq 0.12.2: --memory-efficient-fp16 and -bf16 with an optimizer that cannot step "
    "from 16 bits end in 'Unsupported optimizer: Adadelta'",
)
def unsupported_optimizers_are_named(module: PatchedModule) -> None:
    """Refuse such an optimizer by both options."""

    def check(
        _optimizer: Any,
        cfg: FairseqConfig,
        _params: Any,
        optimizer: FairseqOptimizer,
        allow_unsupported: bool = False,
        **_options: Any,
    ) -> None:
        if allow_unsupported or optimizer.supports_memory_efficient_fp16:
            return
        precision = "bf16" if getattr(cfg.common, "bf16", False) else "fp16"
        name = getattr(getattr(cfg, "optimizer", None), "_name", None) or type(optimizer).__name__
        raise OptionError(
            f"--memory-efficient-{precision} with --optimizer {name}, which cannot step from "
            f"gradients in 16 bits; allowed: adafactor, adam, adamax or nag, or --{precision}"
        )

    call_before(module.MemoryEfficientFP16Optimizer, "__init__", check)
