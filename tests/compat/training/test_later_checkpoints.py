"""--keep-last-epochs and --keep-interval-updates beside checkpoints of later epochs."""

from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils


@pytest.fixture
def save(tmp_path):
    """Function (epoch, updates, options...): write a checkpoint -> the files' names."""

    def save(epoch, updates, is_end=True, **options):
        cfg = dict(
            save_dir=str(tmp_path), no_save=False, save_interval=1, save_interval_updates=5,
            no_epoch_checkpoints=False, no_last_checkpoints=True, keep_best_checkpoints=-1,
            keep_interval_updates=-1, keep_interval_updates_pattern=-1, keep_last_epochs=-1,
            maximize_best_checkpoint_metric=False, write_checkpoints_asynchronously=False,
        )  # fmt: skip
        trainer = SimpleNamespace(
            data_parallel_rank=0, should_save_checkpoint_on_current_rank=True,
            consolidate_optimizer=lambda: None, get_num_updates=lambda: updates,
            checkpoint_suffix="", save_checkpoint=lambda path, extra_state: torch.save(1, path),
        )  # fmt: skip
        position = SimpleNamespace(epoch=epoch, end_of_epoch=lambda: is_end, state_dict=dict)
        checkpoint_utils.save_checkpoint(
            SimpleNamespace(**{**cfg, **options}), trainer, position, None
        )
        return sorted(path.name for path in tmp_path.glob("*.pt"))

    return save


def test_epochs_of_a_run_that_goes_back(save, tmp_path):
    for epoch in (48, 49, 50):
        (tmp_path / f"checkpoint{epoch}.pt").touch()
    for epoch in (10, 11):
        save(epoch, 5 * epoch, keep_last_epochs=2)
    names = save(12, 60, keep_last_epochs=2)
    assert names == [f"checkpoint{epoch}.pt" for epoch in (11, 12, 48, 49, 50)]
    assert len(checkpoint_utils.checkpoint_paths(str(tmp_path))) == 5


@pytest.mark.parametrize("pattern, expected", [(-1, [15, 20, 90]), (10, [10, 15, 20, 90])])
def test_updates_of_a_run_that_goes_back(pattern, expected, save, tmp_path):
    (tmp_path / "checkpoint_9_90.pt").touch()
    options = dict(keep_interval_updates_pattern=pattern)
    options["keep_interval_updates"] = 2 if pattern < 0 else 1
    for updates in (5, 10, 15):
        save(2, updates, False, **options)
    names = save(2, 20, False, **options)
    assert sorted(int(name.split("_")[2][:-3]) for name in names) == expected
