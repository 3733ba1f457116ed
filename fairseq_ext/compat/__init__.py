"""What unmodified fairseq 0.12.2 needs on current versions of Python, torch, numpy and hydra.

Nothing here is about any of our systems. Importing this package imports neither fairseq nor torch.
`docs/compat.md` lists the patches; each is a function with its reason in one of the files here.

The start-up hook loads this package while `fairseq_ext` itself is not imported yet. That is why no
file here says `from . import name`: such a statement imports the outer package first.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys

from .import_hook import PatchingFinder, install
from .patch_registry import Status
from .patch_registry import status as _status

# modules with patches; of two patches of one function the later wraps the earlier
PATCH_MODULES = (
    "dataclass_defaults",
    "dataclass_factories",
    "option_types",
    "boolean_options",
    "hydra_support",
    "numpy_names",
    "huffman",
    "byte_masks",
    "encoder_layers",
    "checkpoints",
    "evaluated_settings",
    "pruned_layers",
    "spectral_norms",
    "external_files",
    "precision",
    "devices",
    "retained_dropout",
    "quantization",
    "distributed",
    "resuming",
    "best_scores",
    "run_limits",
    "schedules",
    "adafactor_rates",
    "optimizer_settings",
    "master_parameters",
    "empty_batches",
    "valid_iterators",
    "virtual_epochs",
    "training_hooks",
    "checkpoint_writing",
    "scoring",
    "language_tags",
    "empty_translations",
    "ignored_prefixes",
    "adaptive_losses",
    "warning_filters",
    "data_files",
    "preprocess_input",
    "word_alignments",
    "log_files",
    "interactive",  # takes the place of a function that the next ones wrap
    "checkpoint_reading",
    "model_overrides",
    "commands",
    "shards",
    "fused_language_models",
    "missing_files",
    "waveforms",
    "speech_tasks",
    "scripting",
    "stock_tasks",
    "denoising",
    "whole_words",
    "model_averages",
    "parameter_order",  # after model_averages, whose reading of checkpoints it wraps
    "context_windows",
    "language_model_scores",
    "block_sizes",
    "shared_arrays",
    "edit_paths",
    "ngram_blocking",
    "matched_lengths",
    "refinement_steps",
    "unknown_words",
    "source_columns",
    "scored_alignments",
    "prefetch_thread",
    "data_workers",
    "worker_epochs",
)

for _name in PATCH_MODULES:
    importlib.import_module(f"{__name__}.{_name}")  # fills the registry


def activate() -> type[PatchingFinder]:
    """Apply the patches to every fairseq module, imported already or later.

    Returns the meta-path finder that does this. A second call changes nothing.
    """
    return install()


def require_fairseq() -> None:
    """Raise ModuleNotFoundError with the remedy if fairseq is not installed."""
    if importlib.util.find_spec("fairseq") is None:
        raise ModuleNotFoundError(
            f"fairseq is not installed for {sys.executable}. Install it without its own "
            "requirements, which pip 24.1 and later refuse: "
            "python -m pip install --no-deps fairseq==0.12.2",
            name="fairseq",
        )


def status() -> list[Status]:
    """Return what became of each patch in this process.

    The fields of a `Status` are name, needed_because, active (bool) and reason.
    """
    return _status()
