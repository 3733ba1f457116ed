"""A model whose gradients something else than its data-parallel wrapper puts together."""

from __future__ import annotations

from typing import Any, Callable

from fairseq.distributed import ModuleProxyWrapper
from torch import nn


class ReducedModel(ModuleProxyWrapper):
    """A wrapper around a model's data-parallel wrapper that replaces its ``all_reduce_grads``.

    Everything else is passed on. fairseq's optimisers call ``all_reduce_grads`` of the model once
    in an update, after all backward passes.

    Args:
        module: what fairseq's ``DistributedFairseqModel`` returns.
        reduce_gradients: called in the place of the wrapper's.
    """

    def __init__(self, module: nn.Module, reduce_gradients: Callable[[], None]) -> None:
        super().__init__(module)
        self.reduce_gradients = reduce_gradients

    def all_reduce_grads(self) -> None:
        """Put the workers' gradients together."""
        self.reduce_gradients()

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the model's state, under the names that it has without wrappers."""
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load a state of ``state_dict``."""
        return self.module.load_state_dict(*args, **kwargs)
