"""Cross entropy with label smoothing, exact, without N x V arrays besides the logits.

Dimensions: N target tokens, V vocabulary entries.

With z the logits of one token, p = softmax(z), y its target, eps the smoothing and
eps_i = eps / (V - 1) (fairseq's definition)::

    nll    = -log p[y]                  = log_z - z[y],             log_z = log sum_v exp(z[v])
    smooth = -sum_v log p[v]            = V * log_z - sum_v z[v]
    loss   = (1 - eps - eps_i) * nll + eps_i * smooth
    d loss / d z[v] = p[v] - eps_i - (1 - eps - eps_i) * [v = y]

(The factor of p is (1 - eps - eps_i) + V * eps_i = 1.) Neither log p nor any other N x V array is
kept: the forward pass reads the logits once, the backward pass reads them once and writes the
gradient, a few rows at a time while they are in the cache. Written with log_softmax and gather
the same loss keeps log p, and its backward pass makes several more arrays of that size.

The gradient takes the place of the logits where nobody needs them any more: the backward pass of
a matrix product reads its factors, not its result.
"""

from typing import Any, Iterator, Tuple

import torch
from torch import Tensor

# The nodes of a graph, by name, whose backward passes do not read what the forward pass returned
PRODUCTS = {"AddmmBackward0", "MmBackward0", "AddBackward0", "_LinearBackward"}
VIEWS = {"ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0", "CloneBackward0"}

# Rows are taken so that a chunk of logits stays in a core's cache; on a GPU the chunk only
# bounds the temporary memory, and few large kernels are better than many small ones.
CHUNK_ELEMENTS = {"cpu": 1 << 18, "cuda": 1 << 27}


def _row_chunks(logits: Tensor) -> Iterator[slice]:
    """Yield the rows of ``logits`` (N, V) in parts that fit a core's cache."""
    rows, vocab = logits.shape
    size = max(1, CHUNK_ELEMENTS.get(logits.device.type, 1 << 24) // vocab)
    return (slice(start, start + size) for start in range(0, rows, size))


class _LabelSmoothedCrossEntropy(torch.autograd.Function):
    """The loss and nll of the equations above, (N,) each, with the gradient of the logits."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target: Tensor, epsilon: float, overwrite: bool
    ) -> Tuple[Tensor, Tensor]:
        rows, vocab = logits.shape
        epsilon_i = epsilon / (vocab - 1)
        computed = torch.promote_types(logits.dtype, torch.float32)
        nll = torch.empty(rows, dtype=computed, device=logits.device)  # (N,)
        smooth = torch.empty_like(nll)  # (N,)
        for chunk in _row_chunks(logits):
            z = logits[chunk].to(computed)  # (n, V)
            # the largest p is at least 1 / V: this logarithm never overflows
            log_z = z.amax(dim=1) - torch.softmax(z, dim=1).amax(dim=1).log()  # (n,)
            nll[chunk] = log_z - z.gather(1, target[chunk].unsqueeze(1)).squeeze(1)
            smooth[chunk] = vocab * log_z - z.sum(dim=1)
        ctx.save_for_backward(logits, target)
        ctx.epsilon, ctx.overwrite = epsilon, overwrite
        ctx.mark_non_differentiable(nll)
        return (1.0 - epsilon - epsilon_i) * nll + epsilon_i * smooth, nll

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _grad_nll: Tensor) -> Tuple[Tensor, None, None, None]:
        logits, target = ctx.saved_tensors
        epsilon_i = ctx.epsilon / (logits.size(1) - 1)
        confidence = 1.0 - ctx.epsilon - epsilon_i
        # (N, V); autograd counts writes, and raises an error for others that have saved the logits
        grad = logits.detach() if ctx.overwrite and _is_last_pass() else torch.empty_like(logits)
        for chunk in _row_chunks(logits):
            p = torch.softmax(logits[chunk].to(grad_loss.dtype), dim=1)  # (n, V)
            p -= epsilon_i
            index = target[chunk].unsqueeze(1)  # (n, 1)
            p.scatter_add_(1, index, p.new_full((1, 1), -confidence).expand_as(index))
            # scaled before it is rounded to the type of the logits, for fp16's loss scale
            grad[chunk] = p.mul_(grad_loss[chunk].unsqueeze(1))
        return grad, None, None, None


def _is_last_pass() -> bool:
    """True in a backward pass without ``retain_graph``; False with a torch that cannot say."""
    retains = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", None)
    return retains is not None and not retains()


def _comes_from_product(logits: Tensor) -> bool:
    """True if what computed the logits does not need them for its gradient."""
    node = logits.grad_fn
    while node is not None and node.name() in VIEWS:
        node = node.next_functions[0][0]
    return node is not None and node.name() in PRODUCTS


def label_smoothed_cross_entropy(
    logits: Tensor, target: Tensor, epsilon: float, padding_index: int, overwrite: bool = False
) -> Tuple[Tensor, Tensor]:
    """Return the loss and the negative log-likelihood of every token, in nats.

    Args:
        logits: (N, V), any floating type; computed in float32 or better.
        target: (N,) indices.
        epsilon: smoothing, 0 <= epsilon < 1.
        padding_index: targets with this index have no loss.
        overwrite: nothing else has a gradient that depends on the logits, so that this one may
            take their place. It does where they come from a matrix product.

    Returns:
        loss (N,), differentiable; nll (N,), not differentiable; both zero at padding.
    """
    if not 0.0 <= epsilon < 1.0:
        raise ValueError(f"--label-smoothing {epsilon}: must be at least 0 and less than 1")
    loss, nll = _LabelSmoothedCrossEntropy.apply(
        logits, target, epsilon, overwrite and _comes_from_product(logits)
    )
    padding = target.eq(padding_index)  # (N,)
    return loss.masked_fill(padding, 0.0), nll.masked_fill(padding, 0.0)
