"""Checkpoints of fairseq-train: written atomically, by one training per folder, and restored.

`docs/reliability.md` describes what users see.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import logging
import os
import pickle
import re
from typing import TYPE_CHECKING, Any, Callable, Iterator

from ..atomic_files import atomic_copy, atomic_write, remove_leftovers
from ..context_values import holding
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_within
from .data_only import RefusedCheckpoint
from .folder_lock import folder_lock
from .refusals import path_being_read

if TYPE_CHECKING:
    from fairseq.dataclass.configs import CheckpointConfig, FairseqConfig
    from fairseq.trainer import Trainer

logger = logging.getLogger(__name__)

LAST = "checkpoint_last.pt"
ATTEMPTS = 3
# temporary errors of network file systems: writing is tried again
TEMPORARY_ERRORS = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR, errno.EAGAIN)
# what torch and fairseq raise for files that are cut off, empty or no checkpoints
UNREADABLE = (
    *(EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError),
    *(AttributeError, pickle.UnpicklingError),
)


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12.2 copies a checkpoint to its other names in place: killed meanwhile, it "
    "leaves a torn checkpoint_last.pt, and the same command ends in an EOFError",
)
def checkpoints_are_written_whole(module: PatchedModule) -> None:
    """Write and copy checkpoints atomically."""
    stock_save: Any = module.torch_persistent_save
    stock_paths: Any = module.PathManager

    def torch_persistent_save(obj: Any, filename: str, async_write: bool = False) -> Any:
        # paths of other file systems, and writing behind the training's back, stay with fairseq
        if async_write or stock_paths.path_requires_pathmanager(filename):
            return stock_save(obj, filename, async_write=async_write)
        # each attempt writes a new file: what a failed one wrote has been removed
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with atomic_write(filename) as file:
                    module.torch.save(obj, file)
                return None
            except OSError as error:
                if error.errno not in TEMPORARY_ERRORS or attempt == ATTEMPTS:
                    raise
                logger.warning(f"{filename}: {error.strerror}; trying again")

    # in the place of the name in this module of fairseq; that of fairseq.file_io remains as it is
    class PathManager(stock_paths):
        @staticmethod
        def copy(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
            """Copy atomically what is on this machine's file systems."""
            if any(map(stock_paths.path_requires_pathmanager, (src_path, dst_path))):
                return stock_paths.copy(src_path, dst_path, overwrite=overwrite)
            if os.path.exists(dst_path) and not overwrite:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), dst_path)
            return atomic_copy(src_path, dst_path)

    module.torch_persistent_save = torch_persistent_save
    module.PathManager = PathManager


@patch(
    "fairseq_cli.train",
    because="fairseq 0.12.2: two trainings into one --save-dir overwrite each other's checkpoints",
)
def one_training_to_a_folder(module: PatchedModule) -> None:
    """Lock --save-dir, and remove from it what killed trainings left half-written."""

    @contextlib.contextmanager
    def locking_folder(cfg: FairseqConfig, *args: Any, **kwargs: Any) -> Iterator[None]:
        saving = getattr(cfg, "checkpoint", cfg)
        if saving.write_checkpoints_asynchronously:
            raise ValueError(
                "--write-checkpoints-asynchronously is not supported: fairseq writes no "
                f"{LAST} with it, and a run could not go on; leave it out"
            )
        workers = getattr(cfg, "distributed_training", cfg)
        is_local = not module.PathManager.path_requires_pathmanager(saving.save_dir)
        # only the first process writes, and it alone has the lock
        if saving.no_save or not is_local or not module.distributed_utils.is_master(workers):
            yield
            return
        os.makedirs(saving.save_dir, exist_ok=True)
        with folder_lock(saving.save_dir) as is_locked:
            # without the lock, leftovers may belong to a training that is still writing
            if is_locked:
                removed = remove_leftovers(saving.save_dir)
                if removed:
                    names = ", ".join(removed)
                    logger.info(f"{saving.save_dir}: removed what a killed write left: {names}")
            yield

    call_within(module, "main", locking_folder)


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12.2: `--restore-file missing.pt` trains from nothing without a word, and "
    "an unreadable checkpoint_last.pt ends every start",
)
def restoring_is_certain(module: PatchedModule) -> None:
    """Refuse a --restore-file that is not there; fall back from an unreadable checkpoint_last.pt.

    Only the first process reads a checkpoint and sends it to the others, so that a fallback needs
    no agreement. With a file for each process there is none.
    """
    stock_load, stock_read = module.load_checkpoint, module.load_checkpoint_to_cpu
    # while a training is restored: its checkpoint_last.pt, for which another may be read
    replaceable: list[str] = []

    @functools.wraps(stock_load)
    def load_checkpoint(cfg: CheckpointConfig, trainer: Trainer, **kwargs: Any) -> Any:
        suffix = trainer.checkpoint_suffix or ""
        _check_named(module.PathManager, cfg, suffix)
        last = os.path.join(cfg.save_dir, LAST)
        # a file that the user has named is never replaced by another
        is_default = cfg.restore_file == LAST and not suffix
        replaceable[:] = [last] if is_default else []
        try:
            return stock_load(cfg, trainer, **kwargs)
        finally:
            replaceable.clear()

    @functools.wraps(stock_read)
    def load_checkpoint_to_cpu(path: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        def read(name: str) -> dict[str, Any]:
            with holding(path_being_read, name):  # another one than what is to be restored
                return stock_read(name, *args, **kwargs)

        return _read_or_fall_back(path, read) if path in replaceable else read(path)

    module.load_checkpoint = load_checkpoint
    module.load_checkpoint_to_cpu = load_checkpoint_to_cpu


def _read_or_fall_back(path: str, read: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Return the content of a checkpoint, or of the newest readable one beside it."""
    try:
        return read(path)
    # contents that are not allowed are no damage, and another file would only hide them
    except RefusedCheckpoint:
        raise
    except UNREADABLE as error:
        reason = _first_sentence(error)
        for other in newest_first(os.path.dirname(path)):
            try:
                checkpoint = read(other)
            except UNREADABLE as other_error:
                logger.warning(f"{other} cannot be read ({_first_sentence(other_error)})")
            else:
                logger.warning(f"{path} cannot be read ({reason}): going on from {other}")
                return checkpoint
        raise


def _first_sentence(error: Exception) -> str:
    """Return an error as "CLASS: TEXT", up to the end of its first sentence or line."""
    return f"{type(error).__name__}: {error}".partition("\n")[0].partition(". ")[0]


def _check_named(paths: Any, cfg: CheckpointConfig, suffix: str) -> None:
    """Raise ValueError when a file that an option names does not exist (paths: a PathManager)."""
    options = {"--restore-file": cfg.restore_file}
    if cfg.restore_file == LAST:
        # fairseq takes --continue-once only where --save-dir has nothing to go on from
        is_there = paths.exists(os.path.join(cfg.save_dir, f"checkpoint_last{suffix}.pt"))
        once = None if is_there else getattr(cfg, "continue_once", None)
        first = None if is_there or once else cfg.finetune_from_model
        options = {"--continue-once": once, "--finetune-from-model": first}
    for option, path in options.items():
        if path is None:
            continue
        if option == "--restore-file":
            path = path.replace(".pt", suffix + ".pt")  # as fairseq finds it
        if not paths.isfile(path):
            reason = "a folder" if os.path.isdir(path) else "there is no such file"
            raise ValueError(
                f"{option} {path}: {reason}; allowed: a checkpoint, or leave the option out to go "
                f"on from {LAST} in --save-dir"
            )


def newest_first(folder: str) -> list[str]:
    """Return the checkpoints in `folder` except checkpoint_last.pt, the newest first."""
    pattern = re.compile(r"checkpoint(\d+|_\d+_\d+|_best|\.best_.+)\.pt")
    paths = [os.path.join(folder, name) for name in os.listdir(folder) if pattern.fullmatch(name)]
    # fairseq copies a checkpoint to its other names at one moment: then the name decides
    return sorted(paths, key=lambda path: (os.path.getmtime(path), path), reverse=True)
