"""The tasks `denoising` and `multilingual_denoising` (BART, mBART): inputs and noise."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    import numpy as np
    from fairseq.data import DenoisingDataset, FairseqDataset
    from fairseq.tasks import FairseqTask
    from numpy.typing import NDArray


@patch(
    "fairseq.tasks.denoising",
    because="fairseq 0.12.2: fill_mask, sample and generate of BART join several inputs to one, "
    "unless it was trained with --sample-break-mode eos or loaded by BARTModel",
)
def inputs_are_kept_apart(module: PatchedModule) -> None:
    """Make one item of each input, however texts were joined in the training."""
    task_class = module.DenoisingTask
    stock = task_class.build_dataset_for_inference

    @functools.wraps(stock)
    def build_dataset_for_inference(
        self: FairseqTask, src_tokens: list[Any], src_lengths: list[int], **kwargs: Any
    ) -> FairseqDataset:
        task = copy.copy(self)
        task.args = copy.deepcopy(self.args)
        task.args.sample_break_mode = "eos"
        return stock(task, src_tokens, src_lengths, **kwargs)

    task_class.build_dataset_for_inference = build_dataset_for_inference


@patch(
    "fairseq.data.denoising_dataset",
    because="fairseq 0.12.2: the noise of denoising depends on what was drawn before: a resumed "
    "training has other batches than an uninterrupted one, and each validation other noise",
)
def noise_is_of_the_item(module: PatchedModule) -> None:
    """Draw the noise of an item by its number, the epoch and --seed.

    Stock seeds numpy's generator for the item, but most of the noise is drawn by torch's.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    draws = (torch.multinomial, torch.randint, torch.randperm, torch.Tensor.uniform_)

    class DrawnFrom(TorchFunctionMode):
        """While it is active, this thread draws from a generator of its own.

        A thread reads items ahead. The generator of the process is in use meanwhile, for dropout.
        """

        def __init__(self, seed: int) -> None:
            super().__init__()
            self.generator = torch.Generator().manual_seed(seed)

        def __torch_function__(
            self,
            function: Callable[..., Any],
            types: Any,
            args: Sequence[Any] = (),
            kwargs: dict[str, Any] | None = None,
        ) -> Any:
            kwargs = dict(kwargs or {})
            if function in draws:
                kwargs.setdefault("generator", self.generator)
            return function(*args, **kwargs)

    dataset = module.DenoisingDataset
    stock = dataset.__getitem__

    @functools.wraps(stock)
    def __getitem__(self: DenoisingDataset, index: int) -> dict[str, Any]:
        # tuples of numbers have the same hash in every process; 32 bits are all that torch uses
        with DrawnFrom(hash((self.seed, self.epoch, index)) % 2**32):
            item: dict[str, Any] = stock(self, index)
        return item

    dataset.__getitem__ = __getitem__


@patch(
    "fairseq.tasks.denoising",
    "fairseq.tasks.translation",
    "fairseq.data.multilingual.multilingual_data_manager",
    because="fairseq 0.12.2: denoising removes </s> from its lines but counts it: with "
    "--sample-break-mode none the blocks repeat words of lines that they share, and with "
    "complete_doc, the default, an empty line does not end a document; --truncate-source counts a "
    "token too many of each source that it does not cut: batches are smaller than --max-tokens "
    "allows, and a sentence of that length is refused",
)
def lines_have_their_length(module: PatchedModule) -> None:
    """Tell blocks and batches how many tokens are left of each line."""

    class StripTokenDataset(module.StripTokenDataset):  # type: ignore[misc, name-defined]
        """Lines without the symbol at their ends, and their lengths without it."""

        @functools.cached_property
        def sizes(self) -> NDArray[np.int64]:
            return stripped_sizes(self.dataset, self.id_to_strip)

    module.StripTokenDataset = StripTokenDataset


def stripped_sizes(lines: Any, symbol: int) -> NDArray[np.int64]:
    """Return the length of each line without a symbol, however often it is at its ends.

    Of binarised files, the first and last tokens are read at once; other lines are read one by one.
    """
    import numpy as np
    from fairseq.data import ConcatDataset, MMapIndexedDataset
    from fairseq.data.strip_token_dataset import StripTokenDataset

    if isinstance(lines, ConcatDataset):
        return np.concatenate([stripped_sizes(part, symbol) for part in lines.datasets])
    sizes = np.array(lines.sizes, dtype=np.int64)
    rest = np.arange(len(sizes))
    if isinstance(lines, MMapIndexedDataset):
        tokens = np.frombuffer(lines._bin_buffer, dtype=lines._index.dtype)
        filled = np.flatnonzero(sizes)
        first = lines._index._pointers[filled] // tokens.itemsize
        sizes[filled] -= tokens[first + sizes[filled] - 1] == symbol
        filled, first = filled[sizes[filled] > 0], first[sizes[filled] > 0]
        last = first + sizes[filled] - 1
        rest = filled[(tokens[first] == symbol) | (tokens[last] == symbol)]
    stripped = StripTokenDataset(lines, symbol)
    for index in rest:
        sizes[index] = len(stripped[index])
    return sizes
