"""Which embeddings stay as they are, also in a run that begins with a checkpoint.

A set of vectors that was read from a file and frozen is stored in the run's checkpoints, its file
is not. Checkpoints therefore say which sets are frozen (``frozen_embeddings``), and a run that
begins with one, resumed or fine-tuned, leaves them frozen without being given the files again.
"""

import logging
import os
from typing import Any, Dict, FrozenSet, Optional, Sequence

from omegaconf import DictConfig

from ..common.run_config import carry_in_checkpoints, whole_run
from ..common.stored import read_stored
from .config import EmbeddingsConfig
from .embedding_sets import EmbeddingSet

logger = logging.getLogger(__name__)

LAST = "checkpoint_last.pt"  # fairseq's default for --restore-file


def frozen_before(cfg: EmbeddingsConfig) -> FrozenSet[str]:
    """Return the names of the sets, such as "s" or "target_p", that the model takes over frozen.

    It takes them from the checkpoint whose configuration ``cfg`` is or, in training, from the one
    with which the run will begin.
    """
    # a stored configuration answers by itself; an empty text says that nothing is frozen
    if cfg.frozen_embeddings is not None:
        return _names(cfg.frozen_embeddings)
    path = _first_checkpoint(whole_run(cfg))
    if path is None:
        return frozenset()
    try:
        model = read_stored("checkpoint", path).model
    except ValueError:  # fairseq reads it again and says what is wrong with it
        return frozenset()
    return _names(getattr(model, "frozen_embeddings", None) or "")


def warn_without_files(option: str, cfg: EmbeddingsConfig) -> None:
    """Warn of an option about files where the configuration has widths alone.

    They are the user's, or of a checkpoint that does not say what is frozen.
    """
    if cfg.frozen_embeddings is None:
        logger.warning(f"{option} does nothing: no embedding comes from a file")


def record_sets(cfg: EmbeddingsConfig, sets: Sequence[EmbeddingSet]) -> None:
    """Let the run's checkpoints say which sets are frozen, and the widths of those from files.

    A model that is built from a checkpoint takes its vectors from there: the files need not exist
    any more, and their names are left out.
    """
    values: Dict[str, Any] = {
        "frozen_embeddings": ",".join(entry.name for entry in sets if entry.is_frozen)
    }
    for entry in sets:
        if entry.path is not None:
            # the width stands for the file, so that the model can be built without it
            values[f"{entry.prefix}embed_path_{entry.stream}"] = None
            values[f"{entry.prefix}embed_dim_{entry.stream}"] = entry.table.embedding_dim
    carry_in_checkpoints(cfg, "model", values)


def _names(text: str) -> FrozenSet[str]:
    """Return the names of an option's comma-separated list."""
    return frozenset(name for name in text.split(",") if name)


def _first_checkpoint(run: Optional[DictConfig]) -> Optional[str]:
    """Return the file that fairseq-train loads before its first update, by its own rules."""
    if run is None or getattr(run, "checkpoint", None) is None:
        return None
    options = run.checkpoint
    # a path that is not the default is not relative to --save-dir
    restored = options.restore_file
    if restored == LAST:
        restored = os.path.join(options.save_dir, LAST)
    # in the order of fairseq's load_checkpoint
    once = options.continue_once if options.restore_file == LAST else None
    for path in (restored, once, options.finetune_from_model):
        if path and os.path.isfile(path):
            return path
    return None
