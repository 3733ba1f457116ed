"""Methods of models and samplers for fairseq 0.10 that fairseq 0.12 does not call: more of them."""

from __future__ import annotations

import argparse
import contextvars
import copy
import functools
from typing import Any, Iterator

from ..context_values import holding
from ..generation.older_programs import options_in_one
from ..patch_registry import PatchedModule, patch


def is_replaced(owner: type, name: str) -> bool:
    """True if a class of a plugin has a method of this name in the place of fairseq's."""
    module = str(getattr(getattr(owner, name), "__module__", None))
    return module != __name__ and not module.startswith("fairseq.")


@patch(
    "fairseq.data.multi_corpus_dataset",
    because="fairseq 0.12 dropped MultiCorpusDataset._sample: sets for 0.10 that replace it are "
    "sampled as fairseq's are, without a message",
)
def corpora_are_sampled_by_their_method(module: PatchedModule) -> None:
    """Let a set that has a `_sample` of its own draw its sentences by it, as fairseq 0.10 did."""
    corpora, np = module.MultiCorpusDataset, module.np
    stock = corpora.ordered_indices

    def _sample(self: Any, indices: list[Any], counters: list[int]) -> int:
        corpus = np.random.choice(len(self.distribution), p=self.distribution)
        index = indices[corpus][counters[corpus]] + self.dataset_offsets[corpus]
        counters[corpus] += 1
        if counters[corpus] == len(indices[corpus]):  # all of it was drawn: begin again
            counters[corpus] = 0
            indices[corpus] = np.random.permutation(len(indices[corpus]))
        return int(index)

    @functools.wraps(stock)
    def ordered_indices(self: Any) -> Any:
        if not is_replaced(type(self), "_sample"):
            return stock(self)
        with module.data_utils.numpy_seed(self.seed, self.epoch):
            orders = [np.random.permutation(len(corpus)) for corpus in self.datasets.values()]
            counters = [0] * len(orders)
            drawn = [self._sample(orders, counters) for _ in range(len(self))]
            if self.sort_indices:
                drawn.sort(key=self.num_tokens)
            return np.array(drawn, dtype=np.int64)

    corpora._sample, corpora.ordered_indices = _sample, ordered_indices


# the batch that `_build_sample` has made, while fairseq searches it
built_batch: contextvars.ContextVar[Any] = contextvars.ContextVar("built batch", default=None)


@patch(
    "fairseq.models.bart.hub_interface",
    because="fairseq 0.12 does not call BARTHubInterface._build_sample: hub interfaces for 0.10 "
    "that replace it search the batches of fairseq, without a message",
)
def hubs_build_their_samples(module: PatchedModule) -> None:
    """Search the one batch that a hub interface with a `_build_sample` of its own makes."""
    hub = module.BARTHubInterface
    stock, build = hub.generate, hub._build_batches

    @functools.wraps(build)
    def _build_batches(self: Any, tokens: Any, skip_invalid_size_inputs: bool) -> Iterator[Any]:
        batch = built_batch.get()
        if batch is None:
            return build(self, tokens, skip_invalid_size_inputs)  # type: ignore[no-any-return]
        if module.torch.is_tensor(tokens):  # the rows of the batch, which are asked for in turn
            batch = {**batch, "id": module.torch.arange(len(tokens))}
        return iter([batch])

    @functools.wraps(stock)
    def generate(self: Any, tokenized_sentences: Any, *args: Any, **kwargs: Any) -> Any:
        is_sample = isinstance(tokenized_sentences, (list, tuple)) and tokenized_sentences
        if not is_sample or not is_replaced(type(self), "_build_sample"):
            return stock(self, tokenized_sentences, *args, **kwargs)
        with holding(built_batch, self._build_sample(tokenized_sentences)):
            return stock(self, tokenized_sentences, *args, **kwargs)

    hub.generate, hub._build_batches = generate, _build_batches


@patch(
    "fairseq.models.fairseq_model",
    "fairseq.models.roberta.model",
    because="fairseq 0.12 dropped upgrade_args of models: those for 0.10 that replace it are "
    "loaded by from_pretrained with the options of the checkpoint as they are, without a message",
)
def models_upgrade_their_options(module: PatchedModule) -> None:
    """Call `upgrade_args` of a model on the options of its checkpoint."""

    def upgrade_args(cls: type, args: Any) -> None:
        if hasattr(args, "max_sentences") and not hasattr(args, "batch_size"):
            args.batch_size = args.max_sentences

    for name in ("BaseFairseqModel", "RobertaModel"):
        model = vars(module).get(name)
        if model is not None and model.__module__ == module.__name__:
            model.from_pretrained = classmethod(upgrading_options(model.from_pretrained.__func__))
            if name == "BaseFairseqModel":
                model.upgrade_args = classmethod(upgrade_args)


# the model whose checkpoint is being read
loaded_model: contextvars.ContextVar[Any] = contextvars.ContextVar("loaded model", default=None)


def upgrading_options(stock: Any) -> Any:
    """Return a `from_pretrained` that notes the class of the model where it has `upgrade_args`."""

    @functools.wraps(stock)
    def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
        with holding(loaded_model, cls if is_replaced(cls, "upgrade_args") else None):
            return stock(cls, *args, **kwargs)

    return from_pretrained


@patch("fairseq.hub_utils", because="fairseq 0.12: the patch before, for what it has read")
def options_are_upgraded(module: PatchedModule) -> None:
    """Change the configuration of a checkpoint where the `upgrade_args` of its model does."""
    stock = module.from_pretrained

    @functools.wraps(stock)
    def from_pretrained(*args: Any, **kwargs: Any) -> dict[str, Any]:
        loaded: dict[str, Any] = stock(*args, **kwargs)
        model = loaded_model.get()
        if model is not None:
            upgrade(model, loaded["args"], loaded["task"])
        return loaded

    module.from_pretrained = from_pretrained


def upgrade(model: Any, cfg: Any, task: Any) -> None:
    """Call `upgrade_args` of a model on all options in one; what it changes is changed in `cfg`.

    An option that no group has is added to those of the model.
    """
    from omegaconf import open_dict

    before = dict(vars(options_in_one(cfg, task)))
    options = argparse.Namespace(**copy.deepcopy(before))
    model.upgrade_args(options)
    for name, value in vars(options).items():
        if name in before and before[name] == value:
            continue
        groups = [cfg[group] for group in cfg if cfg[group] is not None]
        owners = [group for group in groups if name in group] or [cfg.model]
        for group in owners:
            if isinstance(group, argparse.Namespace):
                setattr(group, name, value)
                continue
            with open_dict(group):
                group[name] = value
