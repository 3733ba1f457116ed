"""Gradients of several workers, where each update touches a part of the model."""

import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

BUCKET_ELEMENTS = 1 << 25


def is_torch_ddp(model) -> bool:
    """Whether ``model`` is wrapped in torch's DistributedDataParallel."""
    return hasattr(model, "require_backward_grad_sync")


def average_gradients(model) -> None:
    """Replace each gradient of a torch DDP ``model`` by its mean over the workers.

    DDP wants every parameter in every backward pass, or searches the graph for those that are
    missing and fails all the same when an update has several passes. Here the workers' updates
    touch the same parameters, so those that have a gradient are averaged and the others are left
    alone. Gradients go in buckets of one type, after the backward pass.
    """
    workers = dist.get_world_size(model.process_group)
    by_type = {}
    for parameter in model.parameters():
        if parameter.grad is not None:
            by_type.setdefault(parameter.grad.dtype, []).append(parameter.grad)
    for gradients in by_type.values():
        for bucket in buckets(gradients):
            flat = _flatten_dense_tensors(bucket).div_(workers)
            dist.all_reduce(flat, group=model.process_group)
            for gradient, mean in zip(bucket, _unflatten_dense_tensors(flat, bucket)):
                gradient.copy_(mean)


def buckets(tensors):
    """Lists of neighbouring tensors with up to ``BUCKET_ELEMENTS`` elements each."""
    bucket, elements = [], 0
    for tensor in tensors:
        if bucket and elements + tensor.numel() > BUCKET_ELEMENTS:
            yield bucket
            bucket, elements = [], 0
        bucket.append(tensor)
        elements += tensor.numel()
    if bucket:
        yield bucket
