"""Checkpoints that are damaged, or of another model, task or dictionary, are refused by name."""

from __future__ import annotations

import contextvars
import functools
import logging
import os
import pickle
import re
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ..command_line.chosen_classes import is_stock
from ..context_values import holding
from ..data.data_files import UnreadableFile
from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError
from .configurations import forget_missing_vectors, stored_group, stored_name
from .data_only import RefusedCheckpoint
from .dictionary_digests import (
    ENTRY,
    different_dictionary,
    digests,
    stored_digests,
    warn_of_reversed_languages,
)
from .literal_evaluation import RefusedSetting
from .stored_entries import check_entries

if TYPE_CHECKING:
    from fairseq.models import BaseFairseqModel
    from fairseq.tasks import FairseqTask
    from fairseq.trainer import Trainer

# a checkpoint as fairseq reads it: {"cfg": ..., "model": ..., "extra_state": ...}
State = Mapping[str, Any]

logger = logging.getLogger(__name__)

PLUGIN = (
    "name the plugin that has it with --user-dir (this one: --user-dir $(fairseq-ext user-dir))"
)

# fairseq's functions do not pass it on
path_being_read: contextvars.ContextVar[str] = contextvars.ContextVar(
    "checkpoint that is being read", default=""
)
# whether models are built of what is read
building: contextvars.ContextVar[bool] = contextvars.ContextVar("models are built", default=False)


class CheckpointMismatch(ValueError):
    """A checkpoint that does not belong to this model, task or data; the message names the file."""


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12.2: a damaged checkpoint, or one of another model, ends in errors of "
    "pickle, zip files or dictionaries that name no file; a model that began with the vectors of "
    "--encoder-embed-path needs their file again, though its checkpoint has what became of them",
)
def checkpoints_say_what_is_wrong(module: PatchedModule) -> None:
    """Name the file; compare task, architecture and dictionaries before the parameters."""
    stock_read, stock_load = module.load_checkpoint_to_cpu, module.load_model_ensemble_and_task

    @functools.wraps(stock_read)
    def load_checkpoint_to_cpu(
        path: str,
        arg_overrides: dict[str, Any] | None = None,
        load_on_all_ranks: bool = False,
    ) -> dict[str, Any]:
        if os.path.isdir(path):
            raise IsADirectoryError(21, "a folder, not a checkpoint file", path)  # EISDIR
        try:
            with holding(path_being_read, path):
                state: dict[str, Any] = stock_read(path, arg_overrides, load_on_all_ranks)
            if building.get():
                forget_missing_vectors(state)
            return state
        except (RefusedCheckpoint, OptionError, UnreadableFile):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.filename is not None:
                raise  # it names the file; torch's "Invalid argument" for a torn one does not
            raise UnreadableFile(_unreadable(path, error)) from error

    @functools.wraps(stock_load)
    def load_model_ensemble_and_task(
        filenames: Sequence[str],
        arg_overrides: dict[str, Any] | None = None,
        task: FairseqTask | None = None,
        strict: bool = True,
        suffix: str = "",
        num_shards: int = 1,
        state: dict[str, Any] | None = None,
    ) -> tuple[list[BaseFairseqModel], Any, FairseqTask | None]:
        options = (strict, suffix, num_shards)
        # parts of a model fit together as stock fairseq decides
        if num_shards > 1 or suffix:
            with holding(building, True):
                return stock_load(filenames, arg_overrides, task, *options, state)
        ensemble: list[BaseFairseqModel] = []
        cfg = None
        for name in filenames:
            if state is None:
                file = module.get_maybe_sharded_checkpoint_filename(name, suffix, 0, num_shards)
                if not module.PathManager.exists(file):
                    raise FileNotFoundError(2, "no such checkpoint", name)  # ENOENT
                state = module.load_checkpoint_to_cpu(file, arg_overrides)
            forget_missing_vectors(state)
            load = functools.partial(stock_load, [name], arg_overrides, task, *options, state)
            models, cfg, task = _load_member(load, name, state, task)
            ensemble += models
            state = None  # the next file is read anew
        return ensemble, cfg, task

    module.load_checkpoint_to_cpu = load_checkpoint_to_cpu
    module.load_model_ensemble_and_task = load_model_ensemble_and_task
    module._upgrade_state_dict = _with_checked_entries(module._upgrade_state_dict)


def _with_checked_entries(
    upgrade: Callable[[Any], dict[str, Any]],
) -> Callable[[Any], dict[str, Any]]:
    """Return the function, which reads old checkpoints as new ones, with `check_entries` before."""

    @functools.wraps(upgrade)
    def checked(state: Any) -> dict[str, Any]:
        check_entries(path_being_read.get(), state)
        return upgrade(state)

    return checked


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12.2: --ema-seed-model with a checkpoint without averages ends in a "
    "KeyError that names no file",
)
def seed_averages_are_there(module: PatchedModule) -> None:
    """Name the checkpoint that holds no averages."""
    stock = module.load_ema_from_checkpoint

    @functools.wraps(stock)
    def load_ema_from_checkpoint(fpath: str) -> dict[str, Any]:
        try:
            return stock(fpath)
        except (KeyError, TypeError, AttributeError) as error:
            raise UnreadableFile(
                f"--ema-seed-model {fpath}: it holds no averages; allowed is a checkpoint of a "
                "training with --store-ema"
            ) from error

    module.load_ema_from_checkpoint = load_ema_from_checkpoint


def _load_member(
    load: Callable[[], tuple[list[BaseFairseqModel], Any, FairseqTask]],
    name: str,
    state: dict[str, Any],
    task: FairseqTask | None,
) -> tuple[list[BaseFairseqModel], Any, FairseqTask]:
    """Return what ``load`` returns; CheckpointMismatch, with the reason, if it cannot."""
    try:
        models, cfg, task = load()
    except RefusedSetting as error:
        raise RefusedSetting(f"{name}: {error}") from error
    except (OSError, ValueError):
        raise
    except Exception as error:
        # only now: what could be loaded needs no explanation
        check_configuration(name, state)
        check_names(name, state, task)
        message = _mismatch(name, state, task, error)
        if message is None:
            raise
        raise CheckpointMismatch(message) from error
    check_finite(name, models[0])
    check_kind(name, models[0], task)
    check_dictionaries(name, state, task)
    warn_of_reversed_languages(name, state, task)
    return models, cfg, task


def _unreadable(path: str, error: Exception) -> str:
    """Return the message for a file that cannot be read as a checkpoint."""
    if os.path.isfile(path) and not os.path.getsize(path):
        return f"{path}: empty, not a checkpoint"
    # the first sentence: torch goes on with advice on its arguments, which are not the user's
    reason = str(error).partition("\n")[0].partition(". ")[0]
    kind = type(error).__name__
    if "Tensor.__contains__" in reason:  # fairseq looks for entries in what the file holds
        return f"{path}: not a checkpoint of fairseq: it holds a tensor alone"
    # what zip files, pickle and torch raise for bytes that are missing or changed
    damage = (OSError, EOFError, pickle.UnpicklingError, RuntimeError, LookupError)
    is_damaged = isinstance(error, damage)
    verdict = "cut off, damaged or another kind" if is_damaged else "not a checkpoint of fairseq"
    return f"{path}: cannot be read as a checkpoint: {verdict} ({kind}: {reason[:120]})"


def check_configuration(path: str, state: State) -> None:
    """Raise UnreadableFile for a checkpoint that does not say what it was trained with."""
    for kind in ("task", "model"):
        if stored_group(state, kind) is None:
            raise UnreadableFile(
                f"{path}: no configuration of the {kind} in it (cfg, or args before fairseq 0.10)"
            )


def check_names(path: str, state: State, task: FairseqTask | None) -> None:
    """Raise CheckpointMismatch when the task or architecture of a checkpoint is not registered.

    Call it only when loading has failed: a task of another project may find its models itself.
    """
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    task_name, arch = stored_name(state, "task"), stored_name(state, "model")
    if task is None and task_name is not None and task_name not in TASK_REGISTRY:
        raise CheckpointMismatch(f"{path}: its task {task_name!r} is not registered; {PLUGIN}")
    is_registered = arch is None or arch in ARCH_MODEL_REGISTRY or arch in MODEL_REGISTRY
    if not is_registered:
        raise CheckpointMismatch(f"{path}: its architecture {arch!r} is not registered; {PLUGIN}")


def _mismatch(path: str, state: State, task: FairseqTask | None, error: Exception) -> str | None:
    """Return what an error while a model is built from a checkpoint means; None for a bug."""
    present = _registered_name(task)  # None: not registered
    trained = stored_name(state, "task")
    is_other_task = present is not None and trained is not None and present != trained
    if "loading state_dict" in str(error):
        reason = f"; trained with --task {trained}, not --task {present}" if is_other_task else ""
        return parameters_differ(path, str(error)) + reason
    if is_other_task:
        return (
            f"{path}: trained with --task {trained}, and --task {present} cannot use it "
            f"({type(error).__name__}: {error}); allowed: --task {trained}"
        )
    return None


def _registered_name(task: FairseqTask | None) -> str | None:
    """Return the name that a task is registered by."""
    from fairseq.tasks import TASK_REGISTRY

    return next((name for name, kind in TASK_REGISTRY.items() if kind is type(task)), None)


def check_finite(path: str, model: BaseFairseqModel) -> None:
    """Raise UnreadableFile where a parameter holds NaN or an infinity: the training has diverged.

    Searches take NaN for a probability of zero: they end in an AssertionError, or in any words.
    What a model builds without a gradient may be a mask of infinities.
    """
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and not parameter.isfinite().all():
            raise UnreadableFile(
                f"{path}: {name} holds NaN or an infinity; allowed: finite parameters, such as "
                "those of a checkpoint from before the training diverged"
            )


def check_kind(path: str, model: BaseFairseqModel, task: FairseqTask | None) -> None:
    """Raise when a language model is to translate, or a translation model to score a text.

    Models and tasks of other projects are not checked: theirs may do so.
    """
    if not (is_stock(type(model)) and is_stock(type(task))):
        return
    from fairseq.models import FairseqLanguageModel
    from fairseq.tasks.language_modeling import LanguageModelingTask
    from fairseq.tasks.translation import TranslationTask

    is_language_model = isinstance(model, FairseqLanguageModel)
    if isinstance(task, LanguageModelingTask) and not is_language_model:
        raise CheckpointMismatch(
            f"{path}: no language model; allowed: one of --task {_registered_name(task)}"
        )
    if isinstance(task, TranslationTask) and is_language_model:
        raise CheckpointMismatch(
            f"{path}: a language model, which reads no source; allowed: a model of --task "
            f"{_registered_name(task)}"
        )


def parameters_differ(path: str, text: str) -> str:
    """Return torch's message on parameters that do not fit, shortened to three of them."""
    quantized = re.search(r'"(\S+)\.centroids"', text)
    if quantized:
        return (
            f"{path}: {quantized[1]} and others are product-quantized; fairseq neither goes on "
            "with a training with --quantization-config-path nor loads its model; allowed: a "
            "checkpoint of a training without"
        )
    entries: list[str] = []  # NAME (what is wrong with it)
    for kind, label in (("Missing", "missing in the file"), ("Unexpected", "not in the model")):
        for block in re.findall(rf"{kind} key\(s\) in state_dict: ([^\n]*)", text):
            entries += [f"{name} ({label})" for name in re.findall(r'"([^"]+)"', block)]
    pattern = r"size mismatch for (\S+): .*?torch\.Size\((\[[^]]*\])\).*?torch\.Size\((\[[^]]*\])\)"
    entries += [
        f"{name} ({stored} in the file, {built} in the model)"
        for name, stored, built in re.findall(pattern, text)
    ]
    if not entries:
        return f"{path}: its parameters do not fit this model: {text}"
    more = f" and {len(entries) - 3} more" if len(entries) > 3 else ""
    count = "1 parameter does" if len(entries) == 1 else f"{len(entries)} parameters do"
    return (
        f"{path}: the checkpoint of another model: {count} not fit: "
        f"{', '.join(entries[:3])}{more}; check --arch, its sizes, the dictionaries and "
        "--lang-pairs"
    )


def check_dictionaries(path: str, state: State, task: FairseqTask | None) -> None:
    """Raise when a dictionary differs from that of the training, by its digest."""
    if task is None:
        return
    lang = different_dictionary(task, stored_digests(state))
    if lang is not None:
        raise CheckpointMismatch(
            f"{path}: trained with another dictionary of {lang}: as many symbols, but not the same "
            f"or in another order; give the data folder the dict file of the training"
        )


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: a checkpoint of another model is refused without a word on what "
    "differs, and one of other dictionaries of the same size is taken",
)
def training_notes_its_dictionaries(module: PatchedModule) -> None:
    """Store digests of the dictionaries; on resuming compare them, and report what differs."""
    trainer = module.Trainer
    stock_state, stock_load = trainer.state_dict, trainer.load_checkpoint

    @functools.wraps(stock_state)
    def state_dict(self: Trainer) -> dict[str, Any]:
        state = stock_state(self)
        state["extra_state"][ENTRY] = digests(self.task)
        return state

    @functools.wraps(stock_load)
    def load_checkpoint(
        self: Trainer, filename: str, reset_optimizer: bool = False, *args: Any, **kwargs: Any
    ) -> dict[str, Any] | None:
        try:
            extra_state = stock_load(self, filename, reset_optimizer, *args, **kwargs)
        except KeyError as error:
            raise UnreadableFile(
                f"{filename}: {error} is missing where a training goes on from it; allowed: a "
                "whole checkpoint"
            ) from error
        except Exception as error:
            # fairseq raises an error of its own, without a cause, for whatever happened
            cause = error.__context__
            if cause is None or not str(error).startswith("Cannot load model parameters"):
                raise
            if isinstance(cause, OptionError):
                raise cause from None
            text = str(cause)
            if "loading state_dict" in text:
                raise CheckpointMismatch(parameters_differ(filename, text)) from cause
            raise CheckpointMismatch(
                f"{filename}: the checkpoint of another model ({type(cause).__name__}: {text})"
            ) from cause
        try:
            check_dictionaries(filename, {"extra_state": extra_state}, self.task)
        except CheckpointMismatch as error:
            # a new training may begin with the parameters of another language
            if not reset_optimizer:
                raise
            logger.warning(str(error))
        return extra_state

    trainer.state_dict, trainer.load_checkpoint = state_dict, load_checkpoint
