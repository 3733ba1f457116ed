"""A training that goes back to an earlier epoch keeps what it writes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.dataclass.configs import CheckpointConfig
    from fairseq.trainer import Trainer

# how fairseq's patterns begin for names of files with an epoch, and with an update
OF_EPOCHS, OF_UPDATES = r"checkpoint(\d+)", r"checkpoint_\d+_(\d+)"


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12.2: where a run goes back by --restore-file or --reset-dataloader, "
    "--keep-last-epochs and --keep-interval-updates remove what it has just written, as older than "
    "the checkpoints of later epochs in --save-dir",
)
def later_checkpoints_do_not_count(module: PatchedModule) -> None:
    """Count the checkpoints up to the present epoch and update; later ones stay."""
    save, find = module.save_checkpoint, module.checkpoint_paths
    # while a checkpoint is written: {how the pattern begins: the present number}
    present: dict[str, int] = {}

    @functools.wraps(find)
    def checkpoint_paths(
        path: str, pattern: str = OF_EPOCHS + r"\.pt", keep_match: bool = False
    ) -> Any:
        last = next((last for begin, last in present.items() if pattern.startswith(begin)), None)
        if last is None:
            return find(path, pattern, keep_match=keep_match)
        entries = [entry for entry in find(path, pattern, keep_match=True) if entry[1] <= last]
        return entries if keep_match else [path for path, _ in entries]

    @functools.wraps(save)
    def save_checkpoint(
        cfg: CheckpointConfig, trainer: Trainer, epoch_itr: Any, val_loss: float | None
    ) -> None:
        present.update({OF_EPOCHS: epoch_itr.epoch, OF_UPDATES: trainer.get_num_updates()})
        try:
            save(cfg, trainer, epoch_itr, val_loss)
        finally:
            present.clear()

    module.checkpoint_paths, module.save_checkpoint = checkpoint_paths, save_checkpoint
