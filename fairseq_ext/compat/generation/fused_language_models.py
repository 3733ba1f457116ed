"""--lm-path: a language model whose score is added to that of the translation."""

from __future__ import annotations

import logging
import os
import tempfile
from typing import TYPE_CHECKING, Any, Callable

from ..checkpoints.dictionary_digests import digest
from ..checkpoints.model_overrides import command_overrides
from ..context_values import holding
from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.models import BaseFairseqModel
    from fairseq.tasks import FairseqTask

logger = logging.getLogger(__name__)
Loader = Callable[..., Any]  # fairseq's load_model_ensemble


def load_language_model(
    load: Loader, path: str, data: str, task: FairseqTask
) -> tuple[list[BaseFairseqModel], Any]:
    """Return what `load` returns for a language model over the words that the task translates to.

    Args:
        load: fairseq's load_model_ensemble.
        path: value of --lm-path.
        data: folder of the task.
        task: the translation task, whose dictionary of the target the model gets if there is no
            dict.txt in the folder.

    It is loaded as it was trained: --model-overrides are of the models that translate.

    Raises OptionError where a dict.txt in the folder has other words, and for a model that predicts
    something else than the next word; FileNotFoundError, naming --lm-path, without a checkpoint.
    """
    _check_dictionary(path, data, task)
    with holding(command_overrides, None):
        try:
            # also what is no language model, of which the search says so
            result = load([path], arg_overrides={"data": data}, task=None)
        except FileNotFoundError as error:
            if error.filename == path:
                named = f"--lm-path {path}"
                raise FileNotFoundError(2, error.strerror, named) from error  # ENOENT
            with tempfile.TemporaryDirectory() as folder:
                task.target_dictionary.save(os.path.join(folder, "dict.txt"))
                result = load([path], arg_overrides={"data": folder}, task=None)
    _check_training(path, result[1])
    return result


def _check_training(path: str, cfg: Any) -> None:
    """Warn of a model that begins sentences otherwise; OptionError for one of the word before.

    cfg: what the checkpoint was trained with; of an old one, without groups.
    """
    settings = getattr(cfg, "task", cfg)
    if getattr(settings, "past_target", False):
        raise OptionError(
            f"--lm-path {path}: trained with --past-target: it predicts the word before, the "
            "search needs the next one; allowed: a model trained without it"
        )
    if getattr(settings, "add_bos_token", False):
        logger.warning(
            f"--lm-path {path}: trained with --add-bos-token: it begins a text with <s>, the "
            "search with </s>, so that the first words have other scores than in the training"
        )


def _check_dictionary(path: str, data: str, task: FairseqTask) -> None:
    """Raise OptionError where the folder's dict.txt is not the dictionary of the target.

    The search adds the scores of the two models by the numbers of the words.
    """
    from fairseq.data import Dictionary
    from fairseq.utils import split_paths

    folders = split_paths(data)
    file = os.path.join(folders[0], "dict.txt") if folders else ""
    if os.path.isfile(file) and digest(Dictionary.load(file)) != digest(task.target_dictionary):
        raise OptionError(
            f"--lm-path {path}: {file} has other words than the dictionary of the target, or in "
            "another order; allowed: the same dictionary, or a folder without dict.txt"
        )


@patch(
    "fairseq_cli.generate",
    because="fairseq 0.12.2: --lm-path looks for a file dict.txt, which folders that "
    "fairseq-preprocess made for translation do not have, and --model-overrides change the "
    "language model, too",
)
def language_models_have_the_target_dictionary(module: PatchedModule) -> None:
    """Give the language model the dictionary of the target language."""
    load = module.checkpoint_utils.load_model_ensemble
    translating: list[FairseqTask] = []

    def load_model_ensemble(
        filenames: list[str], arg_overrides: Any = None, task: Any = None, **options: Any
    ) -> Any:
        # the command loads the models of the task first, and the language model without a task
        if task is None and translating:
            # the command has put the folder of its task among the overrides
            return load_language_model(load, filenames[0], arg_overrides["data"], translating[-1])
        translating[:] = [task]
        return load(filenames, arg_overrides=arg_overrides, task=task, **options)

    overlay_names(module, "checkpoint_utils", load_model_ensemble=load_model_ensemble)


@patch(
    "fairseq.sequence_generator",
    because="fairseq 0.12.2: with --lm-path, a translation longer than the language model has "
    "positions for ends in an IndexError, one that predicts fewer words in a RuntimeError",
)
def translations_fit_the_language_model(module: PatchedModule) -> None:
    """Let translations be as long as all models allow; refuse other numbers of words."""

    def fit_language_model(self: Any, *args: Any, **kwargs: Any) -> None:
        if self.lm_model is not None:
            _check_words(self.lm_model, self.eos, self.vocab_size)
            # those of sinusoidal positions have no end
            positions = getattr(self.lm_model.decoder, "embed_positions", None)
            self.max_len = min(self.max_len, getattr(positions, "max_positions", self.max_len))

    call_after(module.SequenceGenerator, "__init__", fit_language_model)


def _check_words(model: BaseFairseqModel, end: int, words: int) -> None:
    """Raise OptionError for what is no language model or does not predict so many words."""
    import torch

    if hasattr(model, "encoder"):
        raise OptionError(
            f"--lm-path: the checkpoint holds a {type(model).__name__}; allowed: a language model"
        )
    with torch.no_grad():
        tokens = torch.full((1, 1), end, device=next(model.parameters()).device)
        predicted = model.get_normalized_probs(model(tokens), log_probs=True).size(-1)
    if predicted != words:
        raise OptionError(
            f"--lm-path: the language model predicts {predicted} words, the translation model "
            f"{words}; allowed: a model of all words, trained without --output-dictionary-size"
        )
