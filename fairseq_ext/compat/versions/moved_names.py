"""Names that plugins for fairseq 0.9 and 0.10 import from modules that no longer have them."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any, Callable, Iterable

from ..patch_registry import PatchedModule, patch

# {module: {name in it: (module that has it now, its name there)}}
MOVED = {
    "fairseq.models.transformer": {
        "EncoderOut": ("fairseq.models.fairseq_encoder", "EncoderOut"),
        "utils": ("fairseq.utils", ""),
        # what it imported itself, for `from fairseq.models.transformer import *`
        **{"F": ("torch.nn.functional", ""), "nn": ("torch.nn", "")},
        **{name: (name, "") for name in ("math", "random", "torch")},
        **{name: ("typing", name) for name in ("Any", "Dict", "List", "Optional", "Tuple")},
        **{"Tensor": ("torch", "Tensor"), "namedtuple": ("collections", "namedtuple")},
        **{
            name: ("fairseq.models", name)
            for name in (
                "FairseqEncoder",
                "FairseqEncoderDecoderModel",
                "FairseqIncrementalDecoder",
                "register_model",
                "register_model_architecture",
            )
        },
        **{
            name: ("fairseq.modules", name)
            for name in (
                "AdaptiveSoftmax",
                "FairseqDropout",
                "LayerDropModuleList",
                "LayerNorm",
                "MultiheadAttention",
                "PositionalEmbedding",
                "SinusoidalPositionalEmbedding",
                "TransformerDecoderLayer",
                "TransformerEncoderLayer",
            )
        },
    },
    "fairseq.binarizer": {"safe_readline": ("fairseq.file_chunker_utils", "_safe_readline")},
    "fairseq.data.audio.speech_to_text_dataset": {
        **{
            name: ("fairseq.data.audio.audio_utils", name)
            for name in (
                *("get_fbank", "get_features_from_npy_or_audio", "get_waveform", "is_npy_data"),
                "is_sf_audio_data",
            )
        },
        "get_features_or_waveform_from_uncompressed_zip": (
            "fairseq.data.audio.audio_utils",
            "get_features_or_waveform_from_stored_zip",
        ),
        "is_flac_or_wav_data": ("fairseq.data.audio.audio_utils", "is_sf_audio_data"),
        "read_from_uncompressed_zip": ("fairseq.data.audio.audio_utils", "read_from_stored_zip"),
    },
    "fairseq.data.dictionary": {
        "safe_readline": ("fairseq.file_chunker_utils", "_safe_readline"),
    },
    "fairseq.data.data_utils": {
        "process_bpe_symbol": ("fairseq.data.data_utils", "post_process"),
    },
    "fairseq.dataclass.configs": {
        f"{name}Params": ("fairseq.dataclass.configs", f"{name}Config")
        for name in (
            *("Checkpoint", "Common", "CommonEval", "Dataset", "DistributedTraining", "EvalLM"),
            "Optimization",
        )
    },
    "fairseq.dataclass.utils": {
        name: ("fairseq.dataclass.constants", name) for name in ("ChoiceEnum", "StrEnum")
    },
    "fairseq.models.nat": {
        name: ("fairseq.models.nat.levenshtein_utils", name)
        for name in (
            *("_apply_del_words", "_apply_ins_masks", "_apply_ins_words"),
            *("_fill", "_skip", "_skip_encoder_out"),
        )
    },
    **{
        f"fairseq.models.nat.{place}": {
            **{name: (f"fairseq.models.nat.{place}", present) for name, present in names.items()},
            **{
                name: ("fairseq.models.transformer", name)
                for name in ("TransformerDecoder", "TransformerEncoder", "TransformerModel")
            },
        }
        for place, names in {
            "cmlm_transformer": {
                "base_architecture": "cmlm_base_architecture",
                "iter_nat_wmt_en_de": "cmlm_wmt_en_de",
            },
            "insertion_transformer": {"base_architecture": "insertion_base_architecture"},
            "iterative_nonautoregressive_transformer": {
                "base_architecture": "inat_base_architecture",
            },
            "levenshtein_transformer": {"base_architecture": "levenshtein_base_architecture"},
            "nonautoregressive_transformer": {},
        }.items()
    },
    "fairseq.models.roberta.model": {
        "TransformerSentenceEncoder": ("fairseq.modules", "TransformerSentenceEncoder"),
        **{name: ("fairseq.models", name) for name in ("FairseqDecoder", "FairseqLanguageModel")},
    },
    "fairseq.models.speech_to_text.s2t_transformer": {
        "EncoderOut": ("fairseq.models.fairseq_encoder", "EncoderOut"),
    },
    "fairseq.modules": {
        "Highway": ("fairseq.modules.character_token_embedder", "Highway"),
    },
    **{
        f"fairseq.optim.lr_scheduler.{place}": {
            former: (f"fairseq.optim.lr_scheduler.{place}", present)
            for former, present in names.items()
        }
        for place, names in {
            "cosine_lr_scheduler": {
                "CosineConfig": "CosineLRScheduleConfig",
                "CosineSchedule": "CosineLRSchedule",
            },
            "fixed_schedule": {"FixedSchedule": "FixedLRSchedule"},
            "inverse_square_root_schedule": {
                "InverseSquareRootScheduleConfig": "InverseSquareRootLRScheduleConfig",
            },
            "polynomial_decay_schedule": {"PolynomialDecaySchedule": "PolynomialDecayLRSchedule"},
            "reduce_lr_on_plateau": {"ReduceLROnPlateau": "ReduceLROnPlateauLRSchedule"},
            "triangular_lr_scheduler": {"TriangularSchedule": "TriangularLRSchedule"},
        }.items()
    },
    **{
        f"fairseq.models.wav2vec.{place}": {
            "register_model_architecture": ("fairseq.models", "register_model_architecture"),
        }
        for place in ("wav2vec", "wav2vec2", "wav2vec2_asr")
    },
    **{
        f"fairseq.tasks.{place}": {base: ("fairseq.tasks", base)}
        for base, places in {
            "FairseqTask": (
                *("cross_lingual_lm", "denoising", "language_modeling", "legacy_masked_lm"),
                *("multilingual_masked_lm", "multilingual_translation", "sentence_ranking"),
                "speech_to_text",
            ),
            "LegacyFairseqTask": (
                *("audio_pretraining", "masked_lm", "sentence_prediction", "translation"),
            ),
        }.items()
        for place in places
    },
    "fairseq.trainer": {
        name: ("fairseq.logging.meters", name)
        for name in ("AverageMeter", "StopwatchMeter", "TimeMeter")
    },
    "fairseq.logging.progress_bar": {
        former: ("fairseq.logging.progress_bar", present)
        for former, present in {
            "json_progress_bar": "JsonProgressBar",
            "noop_progress_bar": "NoopProgressBar",
            "simple_progress_bar": "SimpleProgressBar",
            "tensorboard_log_wrapper": "TensorboardProgressBarWrapper",
            "tqdm_progress_bar": "TqdmProgressBar",
        }.items()
    },
    "fairseq.sequence_generator": {
        "EncoderOut": ("fairseq.models.fairseq_encoder", "EncoderOut"),
    },
    "fairseq.utils": {"with_torch_seed": ("fairseq.utils", "set_torch_seed")},
}


@patch(
    *MOVED,
    because="fairseq 0.12.2: imports of plugins for fairseq 0.9 and 0.10 fail, such as "
    "TransformerEncoderLayer and EncoderOut of fairseq.models.transformer",
)
def moved_names_are_there(module: PatchedModule) -> None:
    """Give a module the names of MOVED that it had once and lacks now."""
    for name, (place, present) in MOVED[module.__name__].items():
        if not hasattr(module, name):
            setattr(module, name, named(place, present))
    list_names(module, MOVED[module.__name__])


def named(place: str, name: str) -> Any:
    """Return a name of a module, or the module itself for none."""
    holder = importlib.import_module(place)
    return getattr(holder, name) if name else holder


def list_names(module: PatchedModule, names: Iterable[str]) -> None:
    """Let `from module import *` import these names too, where the module lists what it imports."""
    listed = vars(module).get("__all__")
    if listed is not None:
        module.__all__ = [*listed, *(name for name in names if name not in listed)]


# the same, of modules that are imported later than the one that has lost the name
MOVED_LATER = {
    "fairseq.models.fairseq_model": {
        "prune_state_dict": ("fairseq.checkpoint_utils", "prune_state_dict"),
    },
    "fairseq.models.roberta.model": {
        "CamembertModel": ("fairseq.models.roberta.model_camembert", "CamembertModel"),
        "XLMRModel": ("fairseq.models.roberta.model_xlmr", "XLMRModel"),
    },
    "fairseq.tasks.translation": {"options": ("fairseq.options", "")},
    "fairseq.models.model_utils": {
        "skip_tensors": ("fairseq.models.nat.levenshtein_utils", "_skip"),
    },
    "fairseq.models.transformer": {
        "options": ("fairseq.options", ""),
        **{
            name: ("fairseq.models.transformer_align", name)
            for name in (
                *("TransformerAlignModel", "transformer_align"),
                "transformer_wmt_en_de_big_align",
            )
        },
    },
    "fairseq.tasks.audio_pretraining": {
        "LabelEncoder": ("fairseq.tasks.audio_finetuning", "LabelEncoder")
    },
    "fairseq.modules.transformer_layer": {"Linear": ("fairseq.models.transformer", "Linear")},
    "fairseq.utils": {
        name: ("fairseq.modules", name) for name in ("MultiheadAttention", "gelu", "gelu_accurate")
    },
}


@patch(
    *MOVED_LATER,
    because="fairseq 0.12.2: the same, such as utils.gelu_accurate and TransformerAlignModel of "
    "fairseq.models.transformer",
)
def moved_names_are_found_when_read(module: PatchedModule) -> None:
    """Look for the names of MOVED_LATER when they are read."""
    names = MOVED_LATER[module.__name__]

    def __getattr__(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return named(*names[name])

    vars(module)["__getattr__"] = __getattr__
    list_names(module, names)


# {module of 0.9 or 0.10: where it is today}, of packages that an import of fairseq loads
MOVED_MODULES = {
    "fairseq.bleu": "fairseq.scoring.bleu",
    "fairseq.dataclass.data_class": "fairseq.dataclass.configs",
    "fairseq.data.truncate_dataset": "fairseq.data.shorten_dataset",
    "fairseq.modules.highway": "fairseq.modules.character_token_embedder",
    "fairseq.legacy_distributed_data_parallel": (
        "fairseq.distributed.legacy_distributed_data_parallel"
    ),
    **{
        f"fairseq.models.{name}": f"fairseq.models.nat.{name}"
        for name in (
            "cmlm_transformer",
            "insertion_transformer",
            "iterative_nonautoregressive_transformer",
            "levenshtein_transformer",
            "nonautoregressive_ensembles",
            "nonautoregressive_transformer",
        )
    },
}


@patch(
    "fairseq",
    because="fairseq 0.12.2: imports of plugins for fairseq 0.9 fail, such as fairseq.bleu and "
    "fairseq.models.levenshtein_transformer",
)
def moved_modules_are_there(module: PatchedModule) -> None:
    """Give the modules of MOVED_MODULES their former names too."""
    for former, present in MOVED_MODULES.items():
        if former not in sys.modules and present.rpartition(".")[0] in sys.modules:
            holder, name = former.rsplit(".", 1)
            sys.modules[former] = importlib.import_module(present)
            setattr(sys.modules[holder], name, sys.modules[former])


@patch(
    "fairseq.distributed.utils",
    because="fairseq 0.12.2: programs for 0.9 and 0.10 that call distributed_utils.get_rank() fail "
    "with \"missing 1 required positional argument: 'group'\"",
)
def groups_may_be_left_out(module: PatchedModule) -> None:
    """Let functions for groups of processes be called without a group: that is all processes."""

    def with_all(name: str) -> Callable[..., Any]:
        stock = getattr(module, name)

        @functools.wraps(stock)
        def call(*args: Any, **options: Any) -> Any:
            if not args and "group" not in options:
                # a process by itself has rank 0 of 1
                return getattr(module, name.replace("get_", "get_global_"))()
            return stock(*args, **options)

        return call

    def all_reduce_of_all(stock: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(stock)
        def all_reduce(tensor: Any, group: Any = None, op: str = "sum") -> Any:
            return stock(tensor, module.get_global_group() if group is None else group, op)

        return all_reduce

    module.get_rank, module.get_world_size = with_all("get_rank"), with_all("get_world_size")
    module.all_reduce = all_reduce_of_all(module.all_reduce)
    module.get_default_group = module.get_global_group
