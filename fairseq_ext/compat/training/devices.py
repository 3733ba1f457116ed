"""Machines with a GPU, --cpu in spite of it, and plugins that take one for granted."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Tuple, Union

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    "fairseq.utils",
    because="fairseq 0.12.2: on a machine with a GPU, --cpu with --clip-norm ends in an error "
    "about tensors on two devices",
)
def gradients_are_clipped_where_they_are(module: PatchedModule) -> None:
    """Compute the norm of the gradients on their own device, whatever else the machine has."""
    import torch

    def clip_grad_norm_(
        params: Union[Tensor, Iterable[Tensor]],
        max_norm: float,
        aggregate_norm_fn: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Return the norm of the gradients, a float32 scalar, having scaled them to `max_norm`.

        max_norm: the norm that they have at most afterwards; 0 leaves them as they are.
        aggregate_norm_fn: what makes the norm over all workers of that of this one.
        Gradients of experts are scaled, but no part of the norm.
        """
        params = [params] if isinstance(params, torch.Tensor) else list(params)
        shared = [p.grad.detach() for p in params if p.grad is not None and not _of_expert(p)]
        if not shared:
            return params[0].new_tensor(0.0) if params else torch.tensor(0.0)
        if module.multi_tensor_l2norm_available and shared[0].is_cuda and len(shared) > 1:
            norm = module.multi_tensor_total_norm(shared)  # of apex
        else:
            norms = [torch.norm(gradient, p=2, dtype=torch.float32) for gradient in shared]
            norm = norms[0] if len(norms) == 1 else torch.norm(torch.stack(norms))
        if aggregate_norm_fn is not None:
            norm = aggregate_norm_fn(norm)
        if max_norm > 0:
            factor = (float(max_norm) / (norm + 1e-6)).clamp_(max=1)
            experts = [p.grad.detach() for p in params if p.grad is not None and _of_expert(p)]
            for gradient in shared + experts:
                gradient.mul_(factor)
        return norm

    module.clip_grad_norm_ = clip_grad_norm_


def _of_expert(param: Tensor) -> bool:
    """Return True for a parameter that the workers do not share: fairseq marks it so."""
    return hasattr(param, "expert")


@patch(
    "fairseq.utils",
    because="fairseq 0.12.2: checkpoints of a GPU, and of --bf16, hold a parameter once for each "
    "of its names",
)
def tied_parameters_are_saved_once(module: PatchedModule) -> None:
    """Move a tensor to the CPU once, however many names it has."""
    move = module.move_to_cpu

    def move_to_cpu(sample: Any) -> Any:
        """Return `sample` with all tensors on the CPU, those of half precision as float32."""
        moved: Dict[Tuple[Any, ...], Tensor] = {}

        def once(tensor: Tensor) -> Tensor:
            if tensor.is_sparse or tensor.numel() == 0:  # has no place in memory
                return move([tensor])[0]
            place = tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()
            if place not in moved:
                moved[place] = move([tensor])[0]
            return moved[place]

        return module.apply_to_sample(once, sample)

    module.move_to_cpu = move_to_cpu


@patch(
    "fairseq.utils",
    because="fairseq 0.12.2: tasks and criteria of plugins that call move_to_cuda(batch) whatever "
    'the machine end in "Torch not compiled with CUDA enabled" or "Found no NVIDIA driver" on CPUs',
)
def batches_stay_where_no_gpu_is(module: PatchedModule) -> None:
    """Let move_to_cuda without a device return a batch as it is on a machine without a GPU.

    There the model is on the CPU, whatever the options of the training.
    """
    import torch

    stock = module.move_to_cuda

    @functools.wraps(stock)
    def move_to_cuda(sample: Any, device: Any = None) -> Any:
        if device is None and not torch.cuda.is_available():
            return sample
        return stock(sample, device)

    module.move_to_cuda = move_to_cuda
