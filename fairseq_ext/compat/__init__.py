"""What unmodified fairseq 0.12.2 needs on current versions of Python, torch, numpy and hydra.

Nothing here is about any of our systems. Importing this package imports neither fairseq nor torch.
`docs/patches.md` lists the patches; each is a function with its reason in one of the folders here:

    versions/       what current versions of Python, torch, numpy, hydra and others need
    checkpoints/    files that are read as data, refused by name, and written whole
    command_line/   what fairseq's commands do with their options, input and output
    training/       the loop of a training: devices, workers, precision, how it ends and goes on
    validation/     which sets are validated, what is scored of them, which score is the best
    optimizers/     optimizers, learning rates, averages of parameters
    losses/         what criteria compute
    architectures/  models and their layers
    data/           data sets and tasks
    generation/     search and scoring
    examples/       programs and plugins in fairseq's folder of examples

The start-up hook loads this package while `fairseq_ext` itself is not imported yet. That is why no
file here says `from . import name`: such a statement imports the outer package first.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys

from .import_hook import PatchingFinder, install
from .patch_registry import put_in_order, status

__all__ = ["activate", "require_fairseq", "status"]

# its folders; an import statement that had to load one would import the outer package first
FOLDERS = (
    "versions",
    "checkpoints",
    "command_line",
    "training",
    "validation",
    "optimizers",
    "losses",
    "architectures",
    "data",
    "generation",
    "examples",
)

# modules with patches; of two patches of one function the later wraps the earlier, and a comment
# says where that matters
PATCH_MODULES = (
    "versions.dataclass_defaults",
    "versions.dataclass_factories",
    "versions.option_types",
    "command_line.boolean_options",
    "versions.hydra_support",
    "versions.numpy_names",
    "versions.dropped_names",
    "versions.huffman",
    "versions.byte_masks",
    "versions.scaled_parts",
    "versions.encoder_layers",
    "checkpoints.data_only",
    "checkpoints.older_forks",
    "checkpoints.evaluated_settings",
    "checkpoints.pruned_layers",
    "checkpoints.pruned_heads",
    "checkpoints.spectral_norms",
    "checkpoints.external_files",
    "checkpoints.unknown_options",
    "training.precision",
    "training.devices",
    "architectures.retained_dropout",
    "architectures.quantization",
    "training.distributed",
    "optimizers.block_updates",
    "training.resuming",
    "training.epoch_positions",
    "validation.best_scores",
    "training.later_checkpoints",  # after best_scores, whose search it wraps
    "training.run_limits",
    "training.skipped_updates",
    "optimizers.schedules",
    "optimizers.adafactor_rates",
    "optimizers.optimizer_settings",
    "optimizers.older_classes",
    "optimizers.added_options",
    "optimizers.parameter_groups",
    "optimizers.master_parameters",
    "optimizers.loss_scales",
    "optimizers.unrounded_gradients",
    "training.empty_batches",
    "validation.validated_sets",
    "data.virtual_epochs",
    "training.training_hooks",
    "checkpoints.writing",
    "command_line.scoring",
    "validation.language_tags",
    "validation.empty_translations",
    "validation.detokenized_validations",
    "losses.older_losses",
    "losses.ignored_prefixes",
    "losses.alignment_losses",
    "architectures.padded_frames",
    "architectures.attended_padding",
    "architectures.padded_speech",
    "architectures.checkpointed_layers",
    "architectures.speech_logits",
    "architectures.convolutional_models",
    "architectures.listed_kernels",
    "architectures.conformer_options",
    "losses.contrasted_frames",
    "architectures.refined_models",
    "losses.noised_embeddings",
    "losses.adaptive_losses",
    "losses.padded_batches",  # after adaptive_losses, whose loss it wraps
    "losses.masked_units",
    "losses.refinement_losses",
    "losses.speech_to_speech",
    "losses.adapter_languages",
    "losses.latency_losses",
    "losses.sentence_classes",
    "architectures.frozen_embeddings",
    "architectures.roberta_positions",
    "architectures.named_architectures",
    "architectures.layer_options",
    "architectures.nested_options",
    "command_line.undeclared_options",
    "command_line.run_folders",
    "versions.warning_filters",
    "data.data_files",
    "data.word_vectors",
    "data.batch_sizes",
    "data.indexed_files",
    "command_line.preprocess_input",
    "data.text_files",
    "command_line.preprocess_output",
    "command_line.preprocess_workers",
    "command_line.word_alignments",
    "command_line.log_files",
    "command_line.open_files",
    "command_line.interactive",  # takes the place of a function that the next ones wrap
    "checkpoints.refusals",
    "checkpoints.model_overrides",
    # after precision, which takes away the --tpu of --bf16, after writing, which makes --save-dir,
    # and after scoring, whose errors it reports
    "command_line.entry_points",
    "command_line.former_names",
    "command_line.validation_options",
    "validation.several_workers",
    "command_line.result_files",
    "command_line.shards",
    "generation.fused_language_models",
    "versions.missing_files",
    "versions.moved_names",
    "versions.older_layers",
    "versions.older_models",
    "versions.returned_values",
    "versions.encoder_outputs",
    "versions.waveforms",
    "data.speech_tasks",
    "data.speech_configurations",
    "data.speech_features",
    "versions.scripting",
    "data.options_of_tasks",
    "data.older_tasks",
    "generation.older_generators",
    "generation.search_classes",
    "data.older_data",
    "versions.uncalled_methods",
    "versions.uncalled_programs",
    "architectures.older_speech",
    "data.upsampled_sets",
    "data.bart_tasks",
    "data.legacy_masked_lm",
    "data.coder_configurations",
    "data.language_pairs",
    "data.denoising",
    "data.whole_words",
    "data.shortened_lines",
    "data.zipped_sets",
    "data.word_noise",
    "data.wrapped_sets",
    "data.resampled_sets",
    "data.back_translations",
    "data.shared_directions",
    "data.aligned_pairs",
    "data.length_buckets",
    "data.older_sizes",  # after length_buckets, whose filter it wraps
    "data.translation_options",
    "optimizers.model_averages",
    "checkpoints.changed_options",  # after model_averages, too
    "optimizers.parameter_order",  # after model_averages, whose reading of checkpoints it wraps
    "command_line.context_windows",
    "command_line.language_model_scores",
    "data.text_blocks",
    "versions.shared_arrays",
    "versions.edit_paths",
    "versions.ngram_blocking",
    "generation.matched_lengths",
    "generation.length_limits",
    "generation.sampled_words",
    "generation.diverse_searches",
    "generation.constraint_states",
    "generation.ended_hypotheses",  # after diverse_searches, whose step it wraps
    "generation.hub_interfaces",
    "generation.speech_hub",
    "generation.vocoders",
    "generation.unknown_words",
    "generation.joined_texts",
    # after unknown_words, which chooses a search of its own where the task has none
    "generation.refinement_steps",
    "generation.source_columns",
    "generation.hypothesis_alignments",
    "generation.ensemble_attention",  # after hypothesis_alignments, whose batch it checks
    "generation.scored_alignments",
    "generation.missing_references",  # after scored_alignments, which reads the target
    "generation.trained_heads",
    "generation.beam_attention",
    "generation.masked_words",
    "generation.transition_scores",
    "generation.word_blanks",
    "generation.meteor_words",
    "generation.chrf_scores",
    "generation.empty_sets",
    "generation.older_programs",
    "generation.older_searches",  # after those that make searches with models
    "training.prefetch_thread",
    "training.uncomposed_options",
    "training.older_trainers",
    "versions.data_workers",
    "data.worker_epochs",
    "examples.user_dirs",  # after dataclass_defaults, which it leaves out for a single file
    "examples.gru_transformer",
    "examples.latent_layers",
    "examples.latent_losses",
    "examples.adaptive_spans",
    "examples.block_memories",
    "examples.winogrande",
    "examples.laser_data",
    "examples.speech_manifests",
    "examples.synthesis_scripts",
    "examples.tacotron",
    "examples.textless_features",
    "examples.reranking",
    "examples.head_selection",
    "examples.noisy_channels",
    "examples.noisy_reranking",
    "examples.sentence_mining",
    "examples.simultaneous",
    "examples.speech_decoding",
    "examples.mixture_scores",
    "examples.covost_archives",
)

for _name in (*FOLDERS, *PATCH_MODULES):
    importlib.import_module(f"{__name__}.{_name}")  # fills the registry of patches
put_in_order([f"{__name__}.{_name}" for _name in PATCH_MODULES])


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
