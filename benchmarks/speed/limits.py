"""What the machine can do at best: matrix products, reading memory; and the time this allows."""

from typing import Callable, Tuple

import torch

from .products import Products, timed, ways

# Adam touches every parameter: gradient written and read, the parameter and two moments of it read
# and written, four bytes each time; where these lie, they take
ADAM_TRAFFIC, ADAM_STATE = 8 * 4, 4 * 4
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}
DTYPES.update(amp=torch.bfloat16, fp16=torch.float16)


def fastest(compute: Callable[[], object], device: str, at_least: float = 0.05) -> float:
    """Return the seconds of one call: the fastest of five runs of many calls each."""
    calls = 1
    while timed(compute, calls, device) < at_least / 5:
        calls *= 2
    return min(timed(compute, calls, device) for _ in range(5)) / calls


def product_rate(precision: str, device: str) -> float:
    """Return the operations per second of large square matrix products."""
    size = 8192 if device == "cuda" else 1024
    left, right = torch.randn(2, size, size, device=device).to(DTYPES[precision])
    return 2 * size**3 / min(fastest(way, device) for way in ways(left, right))


def bandwidth(size: int, device: str) -> float:
    """Return bytes per second over ``size`` bytes: the faster of copying and of reading.

    A set that fits into a cache is read from there, as weights are that every step reads.
    """
    width = 1024
    rows = max(2, size // (4 * width) // 2 * 2)
    block = torch.randn(rows, width, device=device)
    half = rows // 2
    copied = fastest(lambda: block[:half].copy_(block[half:]), device)
    vector = torch.randn(width, device=device)
    read = fastest(lambda: torch.mv(block, vector), device)
    return rows * width * 4 / min(copied, read)


def best_training_time(
    products: Products, parameters: int, updates: int, device: str
) -> Tuple[float, str]:
    """Return (seconds, what limits them): no update with these products and Adam is faster."""
    memory = updates * parameters * ADAM_TRAFFIC / bandwidth(parameters * ADAM_STATE, device)
    return _longer(products.seconds(), memory)


def best_translation_time(products: Products, device: str) -> Tuple[float, str]:
    """Return (seconds, what limits them): no search with these products is faster."""
    memory = products.traffic / bandwidth(sum(products.weights.values()), device)
    return _longer(products.seconds(), memory)


def _longer(arithmetic: float, memory: float) -> Tuple[float, str]:
    return (memory, "memory") if memory > arithmetic else (arithmetic, "products")
