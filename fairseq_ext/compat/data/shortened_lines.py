"""--shorten-method, which cuts lines that are longer than --tokens-per-sample."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Sequence

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

if TYPE_CHECKING:
    from fairseq.data import FairseqDataset
    from fairseq.data.shorten_dataset import RandomCropDataset
    from torch import Tensor

# in each module, the dataset that ends the way of an epoch's number to what crops
LISTENING = {
    "token_block_dataset": "TokenBlockDataset",
    "monolingual_dataset": "MonolingualDataset",
    "denoising_dataset": "DenoisingDataset",
}
# tokens that a task adds to each line
ADDED = {"masked_lm": 1, "denoising": 2}


@patch(
    *(f"fairseq.data.{name}" for name in LISTENING),
    because="fairseq 0.12.2: with --shorten-method random_crop, masked_lm, language_modeling and "
    "denoising crop a line at the same place in all epochs; its other words are never seen",
)
def crops_change_with_the_epoch(module: PatchedModule) -> None:
    """Tell the epoch to the dataset below, which crops."""
    dataset = getattr(module, LISTENING[module.__name__.rpartition(".")[2]])

    def pass_on(self: Any, epoch: int, **options: Any) -> None:
        # a list of tensors, which a program may give, has no epochs; a plugin may wrap nothing
        below: Any = getattr(self, "dataset", None)
        if hasattr(below, "set_epoch"):
            below.set_epoch(epoch)

    call_after(dataset, "set_epoch", pass_on)


@patch(
    "fairseq.data.shorten_dataset",
    because="fairseq 0.12.2: the last token of a line is in no crop of --shorten-method "
    "random_crop, and a line with one token too many is always cut at its end",
)
def crops_reach_the_end(module: PatchedModule) -> None:
    """Draw from all places where a crop can begin."""

    def __getitem__(self: RandomCropDataset, index: int) -> Tensor:
        with module.data_utils.numpy_seed(self.seed, self.epoch, index):
            item: Tensor = self.dataset[index]
            places = len(item) - self.truncation_length + 1
            if places < 2:
                return item
            first = module.np.random.randint(places)
            return item[first : first + self.truncation_length]

    module.RandomCropDataset.__getitem__ = __getitem__


@patch(
    *(f"fairseq.tasks.{name}" for name in ADDED),
    because="fairseq 0.12.2: masked_lm and denoising shorten lines to --tokens-per-sample and add "
    "<s> and </s> then, so that with --sample-break-mode eos a line that was cut may be skipped "
    "as too long, in masked_lm always",
)
def shortened_lines_have_room_for_symbols(module: PatchedModule) -> None:
    """Shorten to so many tokens less, as fairseq does with blocks."""
    stock = module.maybe_shorten_dataset
    added = ADDED[module.__name__.rpartition(".")[2]]

    @functools.wraps(stock)
    def maybe_shorten_dataset(
        dataset: FairseqDataset,
        split: str,
        shorten_data_split_list: str | Sequence[str],
        shorten_method: str,
        tokens_per_sample: int,
        seed: int,
    ) -> FairseqDataset:
        length = tokens_per_sample - added
        return stock(dataset, split, shorten_data_split_list, shorten_method, length, seed)

    module.maybe_shorten_dataset = maybe_shorten_dataset
