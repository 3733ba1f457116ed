"""The position in an epoch: a run that goes on has the batches that it has not had yet.

A checkpoint of fairseq 0.12.2 holds the number of the epoch and of the batches that one worker has
had of it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..user_errors import OptionError, option_of

if TYPE_CHECKING:
    from fairseq.data.iterators import CountingIterator, EpochBatchIterator, GroupedIterator
    from fairseq.trainer import Trainer

# among the position of an iterator, as its attribute is called
WORKERS = "num_shards"
# and the batches of the epoch, those of all workers
BATCHES = "batches_of_epoch"


@patch(
    "fairseq.data.iterators",
    because="fairseq 0.12.2: an epoch that goes on in its middle is cut to what is left of it, as "
    "if it had just begun: with --skip-remainder-batch as many batches again are left out",
)
def only_the_last_batch_is_skipped(module: PatchedModule) -> None:
    """Count the batches before the interruption as batches of the epoch."""
    iterator = module.EpochBatchIterator
    stock = iterator._get_iterator_for_epoch

    def _get_iterator_for_epoch(
        self: EpochBatchIterator,
        epoch: int,
        shuffle: bool,
        fix_batches_to_gpus: bool = False,
        offset: int = 0,
    ) -> CountingIterator | None:
        """Return the rest of an epoch, without its last batch under --skip-remainder-batch."""
        # stock would cut the epoch to the number of batches that are left of it, less one
        skips, self.skip_remainder_batch = self.skip_remainder_batch, False
        try:
            batches = stock(self, epoch, shuffle, fix_batches_to_gpus, offset)
        finally:
            self.skip_remainder_batch = skips
        if skips and batches is not None:
            batches.take(len(batches) - 1)  # len() counts the batches before the interruption too
        return batches

    iterator._get_iterator_for_epoch = _get_iterator_for_epoch


@patch(
    "fairseq.data.iterators",
    because="fairseq 0.12.2: the position in an epoch is in batches of one worker: a run that goes "
    "on with fewer workers has batches twice, and with more of them never, or ends in 'Cannot "
    "resume training due to dataloader mismatch'",
)
def positions_hold_for_other_workers(module: PatchedModule) -> None:
    """Go on after the batches that all workers together have had."""
    iterator = module.EpochBatchIterator
    save, load = iterator.state_dict, iterator.load_state_dict

    def state_dict(self: EpochBatchIterator) -> dict[str, Any]:
        return {**save(self), WORKERS: self.num_shards}

    def load_state_dict(self: EpochBatchIterator, state_dict: dict[str, Any]) -> None:
        # written without this patch: taken for as many
        workers = state_dict.get(WORKERS, self.num_shards)
        before = state_dict.get("iterations_in_epoch", 0)
        if before and workers != self.num_shards:
            # rounded down: no batch is left out
            position = before * workers // self.num_shards
            state_dict = {**state_dict, "iterations_in_epoch": position}
            module.logger.info(
                f"epoch {state_dict['epoch']}: the run had {workers} workers and has "
                f"{self.num_shards}: each goes on after {position} batches in place of {before}"
            )
        load(self, state_dict)

    iterator.state_dict, iterator.load_state_dict = state_dict, load_state_dict


@patch(
    "fairseq.data.iterators",
    because="fairseq 0.12.2: the position in an epoch is in batches, whatever their size: a run "
    "that goes on with smaller ones (--max-tokens, --batch-size) has many sentences twice, and "
    "with larger ones never, or ends in 'Cannot resume training due to dataloader mismatch'",
)
def positions_hold_for_other_batches(module: PatchedModule) -> None:
    """Go on after as large a part of the epoch, and warn."""
    iterator = module.EpochBatchIterator
    save, load = iterator.state_dict, iterator.load_state_dict

    def state_dict(self: EpochBatchIterator) -> dict[str, Any]:
        position = save(self)
        if position["iterations_in_epoch"]:
            position[BATCHES] = len(self.frozen_batches)
        return position

    def load_state_dict(self: EpochBatchIterator, state_dict: dict[str, Any]) -> None:
        before = state_dict.get("iterations_in_epoch", 0)
        batches = state_dict.get(BATCHES)  # None: written without this patch
        if before and batches:
            self.epoch = state_dict["epoch"]  # some tasks have other batches in every epoch
            present = len(self.frozen_batches)
            if present != batches:
                position = before * present // batches
                state_dict = {**state_dict, "iterations_in_epoch": position}
                module.logger.warning(
                    f"epoch {self.epoch} began with {batches} batches and has {present} now, by "
                    "--max-tokens, --batch-size or the data: the run goes on after as large a part "
                    f"of it, {position} batches of a worker in place of {before}; until it ends, "
                    "some sentences come twice and others not at all"
                )
        load(self, state_dict)

    iterator.state_dict, iterator.load_state_dict = state_dict, load_state_dict


@patch(
    "fairseq.data.iterators",
    because="fairseq 0.12.2: where a run goes on in mid-epoch with another --update-freq, the "
    "updates of the whole epoch less those before are not those of what is left: the last batches "
    "are not trained and the epoch begins again, or the run ends in UnboundLocalError",
)
def groups_are_counted_from_the_position(module: PatchedModule) -> None:
    """Group all batches that are left of the epoch."""
    build = module.GroupedIterator.__init__

    @functools.wraps(build)
    def __init__(
        self: GroupedIterator,
        iterable: CountingIterator,
        chunk_size: int,
        skip_remainder_batch: bool = False,
    ) -> None:
        before = getattr(iterable, "n", 0)  # batches before the interruption
        left = len(iterable) - before
        build(self, iterable, chunk_size, False)
        groups = left // chunk_size if skip_remainder_batch else -(-left // chunk_size)
        self.total = self.n + groups
        if skip_remainder_batch:
            # the epoch ends with its last whole group
            iterable.take(before + groups * chunk_size)

    module.GroupedIterator.__init__ = __init__


@patch(
    "fairseq.data.iterators",
    because="fairseq 0.12.2: every epoch of a process is shuffled or not as the first: with "
    "--curriculum 1 no epoch ever is, unless the run is interrupted after the first one",
)
def later_epochs_are_shuffled(module: PatchedModule) -> None:
    """Tell the sampler that all epochs share how this one is ordered."""
    iterator = module.EpochBatchIterator

    def tell_sampler(
        self: EpochBatchIterator,
        epoch: int,
        shuffle: bool,
        fix_batches_to_gpus: bool = False,
        offset: int = 0,
    ) -> None:
        if self.reuse_dataloader and self.dataloader is not None:
            sampler = self.batch_sampler
            sampler.shuffle, sampler.fix_batches_to_gpus = shuffle, fix_batches_to_gpus

    call_before(iterator, "_get_iterator_for_epoch", tell_sampler)


@patch(
    "fairseq.data.iterators",
    because="fairseq 0.12.2: with --fix-batches-to-gpus, a run that goes on in mid-epoch has "
    "batches of other workers, in another order: some come twice and others never",
)
def fixed_batches_stay_with_their_workers(module: PatchedModule) -> None:
    """Read the position when it is known whether batches are fixed to workers."""
    iterator = module.EpochBatchIterator

    def read_position_again(
        self: EpochBatchIterator,
        shuffle: bool = True,
        fix_batches_to_gpus: bool = False,
        set_dataset_epoch: bool = True,
    ) -> None:
        rest = self._next_epoch_itr  # what a checkpoint's position left, without the option
        if rest is not None and fix_batches_to_gpus and self._supports_prefetch:
            self._next_epoch_itr = self._get_iterator_for_epoch(
                self.epoch, self.batch_sampler.shuffle, True, offset=rest.n
            )

    call_before(iterator, "next_epoch_itr", read_position_again)


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: with --update-ordered-indices-seed, a run that goes on in a later "
    "epoch has other batches: one that was not interrupted uses those of the first epoch again",
)
def seeds_of_epochs_are_used(module: PatchedModule) -> None:
    """Build the batches of every epoch with its seed, as with --update-epoch-batch-itr."""

    def build_every_epoch(self: Trainer, *args: Any, **kwargs: Any) -> None:
        dataset = self.cfg.dataset
        if dataset.update_ordered_indices_seed:
            dataset.update_epoch_batch_itr = True

    call_before(module.Trainer, "get_train_iterator", build_every_epoch)


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: a run that goes on from a checkpoint without a position, such as an "
    "average, begins an epoch 0 with a new optimizer, and says nothing",
)
def positions_are_there(module: PatchedModule) -> None:
    """Refuse to go on where fairseq has made up the position: epochs are counted from 1."""

    def check_position(self: Trainer, epoch: int, *args: Any, **kwargs: Any) -> None:
        if epoch < 1:
            checkpoint = self.cfg.checkpoint
            name = "continue_once" if checkpoint.continue_once else "restore_file"
            raise OptionError(
                f"{option_of(name, getattr(checkpoint, name))}: holds neither a position in the "
                "data nor a state of the optimizer, as what average and add-language write; "
                "allowed: --finetune-from-model, or --reset-optimizer --reset-dataloader"
            )

    call_before(module.Trainer, "get_train_iterator", check_position)
