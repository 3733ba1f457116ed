"""Methods that plugins for fairseq 0.9 and 0.10 replace, and that fairseq 0.12 does not call."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Sequence

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


def is_replaced(owner: type, name: str) -> bool:
    """True if a class has another method of this name than that of this module."""
    method = getattr(owner, name)
    return bool(getattr(method, "__module__", None) != __name__)


@patch(
    "fairseq.tasks.language_modeling",
    because="fairseq 0.12 dropped LanguageModelingTask._initialize_dataset: tasks for 0.10 that "
    "replace it train on the sets of fairseq instead of their own, without a message",
)
def tasks_make_their_datasets(module: PatchedModule) -> None:
    """Let a task of language models make the set of its blocks."""
    task, monolingual = module.LanguageModelingTask, module.MonolingualDataset
    stock = task.load_dataset

    def _initialize_dataset(self: Any, **kwargs: Any) -> Any:
        return monolingual(**kwargs)

    @functools.wraps(stock)
    def load_dataset(self: Any, split: str, *args: Any, **kwargs: Any) -> Any:
        outcome = stock(self, split, *args, **kwargs)
        if is_replaced(type(self), "_initialize_dataset"):
            options = options_of_monolingual(self.datasets[split])
            self.datasets[split] = self._initialize_dataset(**options, targets=self.targets)
        return outcome

    task._initialize_dataset, task.load_dataset = _initialize_dataset, load_dataset


def options_of_monolingual(dataset: Any) -> dict[str, Any]:
    """Return the arguments that fairseq 0.10 gave a set, and those of today that ask for more."""
    names = ("dataset", "sizes", "tgt_vocab", "add_eos_for_other_targets", "shuffle")
    options = {name: getattr(dataset, name) for name in (*names, "add_bos_token")}
    requests = {name: getattr(dataset, name) for name in ("fixed_pad_length", "pad_to_bsz")}
    requests = {name: value for name, value in requests.items() if value is not None}
    return {**options, "src_vocab": dataset.vocab, **requests}


@patch(
    "fairseq.data.audio.speech_to_text_dataset",
    because="fairseq 0.12 renamed SpeechToTextDataset.tokenize_text and _get_size_ratios: sets of "
    "recordings for 0.10 that replace them have other targets and another share of each set, "
    "without a message",
)
def recordings_have_their_own_texts(module: PatchedModule) -> None:
    """Ask the former methods where a class replaces them."""
    recordings, creator = module.SpeechToTextDataset, module.SpeechToTextDatasetCreator
    text_of, ratios = recordings.get_tokenized_tgt_text, creator.get_size_ratios.__func__

    def tokenize_text(self: Any, text: str) -> Any:
        for tokenizer in (self.pre_tokenizer, self.bpe_tokenizer):
            text = self.tokenize(tokenizer, text)
        return text

    @functools.wraps(text_of)
    def get_tokenized_tgt_text(self: Any, index: int) -> Any:
        if is_replaced(type(self), "tokenize_text"):
            return self.tokenize_text(self.tgt_texts[index])
        return text_of(self, index)

    def _get_size_ratios(
        cls: type, ids: Sequence[str], sizes: Sequence[int], alpha: float = 1.0
    ) -> list[float]:
        shares = module.np.asarray(sizes) ** alpha  # in relation to each other
        return list(shares / shares.sum() * sum(sizes) / module.np.asarray(sizes))

    @functools.wraps(ratios)
    def get_size_ratios(cls: Any, datasets: Any, alpha: float = 1.0) -> Any:
        if is_replaced(cls, "_get_size_ratios"):
            names, sizes = [part.split for part in datasets], [len(part) for part in datasets]
            return cls._get_size_ratios(names, sizes, alpha=alpha)
        return ratios(cls, datasets, alpha)

    recordings.tokenize_text = tokenize_text
    recordings.get_tokenized_tgt_text = get_tokenized_tgt_text
    creator._get_size_ratios = classmethod(_get_size_ratios)
    creator.get_size_ratios = classmethod(get_size_ratios)


@patch(
    "fairseq.models.fairseq_encoder",
    "fairseq.models.fairseq_decoder",
    because="fairseq 0.12 gave encoders and decoders upgrade_state_dict_named and calls it alone: "
    "those for 0.10 that have upgrade_state_dict do not rename or convert what older checkpoints "
    "hold",
)
def parts_upgrade_their_parameters(module: PatchedModule) -> None:
    """Call the upgrade_state_dict of an encoder or decoder, and give all of them one."""

    def upgrade_state_dict(self: Any, state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
        return state_dict

    for name in ("FairseqEncoder", "FairseqDecoder"):
        part = vars(module).get(name)
        if part is not None and part.__module__ == module.__name__:
            part.upgrade_state_dict = upgrade_state_dict
            part.upgrade_state_dict_named = upgrading(part.upgrade_state_dict_named)


def upgrading(stock: Any) -> Any:
    """Return an `upgrade_state_dict_named` that calls `upgrade_state_dict` as well."""

    @functools.wraps(stock)
    def upgrade_state_dict_named(self: Any, state_dict: dict[str, Tensor], name: str) -> Any:
        if name:  # of a part of a model; without, upgrade_state_dict itself may have called
            self.upgrade_state_dict(state_dict)
        return stock(self, state_dict, name)

    return upgrade_state_dict_named


@patch(
    "fairseq.models.speech_to_text.xm_transformer",
    because="fairseq 0.12: XMTransformerModel.upgrade_state_dict asks no part of the model: "
    "encoders and decoders of plugins that derive from it do not rename or convert what older "
    "checkpoints hold",
)
def parts_of_models_of_speech_upgrade_theirs(module: PatchedModule) -> None:
    """Ask the parts, as all other models do."""
    model = module.XMTransformerModel
    stock = model.upgrade_state_dict

    @functools.wraps(stock)
    def upgrade_state_dict(self: Any, state_dict: dict[str, Tensor]) -> Any:
        stock(self, state_dict)
        return self.upgrade_state_dict_named(state_dict, "")

    model.upgrade_state_dict = upgrade_state_dict
