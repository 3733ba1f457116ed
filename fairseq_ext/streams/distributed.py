"""Gradients of several workers, where each update touches a part of the model."""

from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence

import torch
import torch.distributed as dist
from fairseq.distributed import LegacyDistributedDataParallel
from torch import Tensor, nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch.nn.parallel import DistributedDataParallel

BUCKET_ELEMENTS = 1 << 25  # 128 MiB in float32


def _wrappers(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the model and what is inside of it, down to the model that nobody has wrapped.

    fairseq puts a wrapper of its own around torch's, and training_hooks.py one around both.
    """
    inner: Any = model
    while isinstance(inner, nn.Module):
        yield inner
        inner = getattr(inner, "module", None)


def is_torch_ddp(model: nn.Module) -> bool:
    """True if ``model`` is wrapped in torch's DistributedDataParallel."""
    return any(isinstance(wrapper, DistributedDataParallel) for wrapper in _wrappers(model))


def legacy_ddp(model: nn.Module) -> Optional[LegacyDistributedDataParallel]:
    """Return fairseq's own wrapper of ``model``, which legacy_ddp names; None if it has none."""
    wrappers = _wrappers(model)
    return next((w for w in wrappers if isinstance(w, LegacyDistributedDataParallel)), None)


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model inside of the wrappers of data-parallel training."""
    return list(_wrappers(model))[-1]


def average_gradients(model: Any) -> None:
    """Replace each gradient of a torch DDP ``model`` by its mean over the workers.

    DDP wants every parameter in every backward pass, or searches the graph for those that are
    missing and fails all the same when an update has several passes. Here those that any worker's
    update has touched are averaged, with zeros of the workers that have not (--encoder-layerdrop
    may leave other layers out on each), and the others are left alone. Gradients go in buckets of
    one type, after the backward pass.
    """
    group = model.process_group
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    # one message carries one type; the workers have the same gradients in the same order, so that
    # bucket N of a worker meets bucket N of the others
    by_type: Dict[torch.dtype, List[Tensor]] = {}
    is_here = [parameter.grad is not None for parameter in trained]
    for parameter, is_touched in zip(trained, touched_by_any(trained, is_here, group)):
        if is_touched:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            by_type.setdefault(parameter.grad.dtype, []).append(parameter.grad)
    for gradients in by_type.values():
        all_reduce_mean(gradients, dist.get_world_size(group), group)


def touched_by_any(
    parameters: Sequence[nn.Parameter], is_here: Sequence[bool], group: Optional[dist.ProcessGroup]
) -> List[bool]:
    """Return for each parameter whether any worker of ``group`` has touched it.

    A collective call. It costs a message of four bytes for each parameter, and on a GPU the host
    waits for its answer, which comes after the backward pass: for the trainer's statistics or the
    norm of the gradient it would wait there anyhow. One worker neither sends nor waits.

    Args:
        parameters: the same on all workers, in one order.
        is_here: for each of them, whether this worker has touched it.
        group: None for all workers.
    """
    if not parameters or dist.get_world_size(group) == 1:
        return list(is_here)
    device = parameters[0].device
    touched = torch.tensor(is_here, dtype=torch.int32, device=device)  # (P,) by parameter
    dist.all_reduce(touched, op=dist.ReduceOp.MAX, group=group)
    return [bool(number) for number in touched.tolist()]


def all_reduce_mean(
    tensors: Iterable[Tensor], workers: int, group: Optional[dist.ProcessGroup]
) -> None:
    """Replace tensors of one type, in place, by their sum over ``group`` divided by ``workers``."""
    for bucket in buckets(tensors):
        # divided before the sum, which could overflow in half precision
        flat = _flatten_dense_tensors(bucket).div_(workers)
        dist.all_reduce(flat, group=group)
        for tensor, mean in zip(bucket, _unflatten_dense_tensors(flat, bucket)):
            tensor.copy_(mean)


def broadcast(tensors: Iterable[Tensor], source: int) -> None:
    """Replace tensors of one type, in place, by those of the worker ``source``."""
    for bucket in buckets(tensors):
        flat = _flatten_dense_tensors(bucket)
        dist.broadcast(flat, src=source)
        for tensor, sent in zip(bucket, _unflatten_dense_tensors(flat, bucket)):
            tensor.copy_(sent)


def buckets(tensors: Iterable[Tensor]) -> Iterator[List[Tensor]]:
    """Yield lists of neighbouring tensors with up to ``BUCKET_ELEMENTS`` elements each.

    A tensor with more elements is a list of its own.
    """
    bucket: List[Tensor] = []
    elements = 0
    for tensor in tensors:
        if bucket and elements + tensor.numel() > BUCKET_ELEMENTS:
            yield bucket
            bucket, elements = [], 0
        bucket.append(tensor)
        elements += tensor.numel()
    if bucket:
        yield bucket
