"""--quant-noise-scalar: 8-bit numbers that are emulated on the device of the parameters."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


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
