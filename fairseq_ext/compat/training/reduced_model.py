"""Wrappers around a model's data-parallel wrapper: when and how gradients are put together."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

from fairseq.distributed import ModuleProxyWrapper
from torch import nn


class PassedOn(ModuleProxyWrapper):
    """A wrapper around a model's data-parallel wrapper that passes everything on."""

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the model's state, under the names that it has without wrappers."""
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load a state of ``state_dict``."""
        return self.module.load_state_dict(*args, **kwargs)


class ReducedModel(PassedOn):
    """A wrapper around a model's data-parallel wrapper that replaces its ``all_reduce_grads``.

    fairseq's optimisers call it once in an update, after all backward passes.

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


class ModelWithCriterion(PassedOn):
    """A wrapper around a model's data-parallel wrapper whose ``no_sync`` is the criterion's too.

    fairseq holds the exchange of the model's gradients back, but for the last batch of an update.

    Args:
        module: what fairseq's ``DistributedFairseqModel`` returns.
        criterion: returns the same of a criterion with parameters.
    """

    def __init__(self, module: nn.Module, criterion: Callable[[], Any]) -> None:
        super().__init__(module)
        self.criterion = criterion

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Around backward passes after which nothing is exchanged."""
        with self.module.no_sync(), self.criterion().no_sync():
            yield
