"""Tasks of fairseq that cannot be used as they are in 0.12.2."""

from __future__ import annotations

import argparse
import copy
import functools
import inspect
import logging
from typing import TYPE_CHECKING, Any, Callable

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.tasks import FairseqTask

# options that models have too, with the same meaning
POSITIONS = ("--max-source-positions", "--max-target-positions")

# {method of a task: arguments that fairseq gives it since some version}
NEWER_ARGUMENTS = {
    "build_model": ("from_checkpoint",),
    "load_dataset": ("data_selector", "tpu"),
}

# {module that reads --upsample-primary: class, method that reads a set, attribute with the options}
UPSAMPLING = {
    "fairseq.tasks.translation": ("TranslationTask", "load_dataset", "cfg"),
    "fairseq.tasks.translation_lev": ("TranslationLevenshteinTask", "load_dataset", "cfg"),
    "fairseq.tasks.translation_from_pretrained_bart": (
        "TranslationFromPretrainedBARTTask",
        "load_dataset",
        "args",
    ),
    "fairseq.tasks.multilingual_translation": (
        "MultilingualTranslationTask",
        "load_dataset",
        "args",
    ),
    "fairseq.tasks.online_backtranslation": (
        "OnlineBackTranslationTask",
        "load_translation_dataset",
        "args",
    ),
    "fairseq.data.multilingual.multilingual_data_manager": (
        "MultilingualDatasetManager",
        "load_a_dataset",
        "args",
    ),
}


@patch(
    "fairseq.tasks.fairseq_task",
    because="fairseq 0.12.2: tasks with add_args that derive from stock ones, such as translation, "
    "fail with \"object has no attribute 'args'\"; mBART's is among them",
)
def older_tasks_have_their_options(module: PatchedModule) -> None:
    """Keep the options as `args` too, where tasks without a dataclass look for them."""
    task = module.FairseqTask
    build = task.__init__

    @functools.wraps(build)
    def __init__(self: FairseqTask, cfg: Any, *more: Any, **states: Any) -> None:
        build(self, cfg, *more, **states)
        # a task may have a property of this name
        if isinstance(cfg, argparse.Namespace) and not hasattr(type(self), "args"):
            self.args = cfg

    task.__init__ = __init__


@patch(
    "fairseq.tasks.translation",
    because='fairseq 0.12.2: train1.* beside train.* ends in "negative dimensions are not '
    'allowed", unless --upsample-primary is given, whose default is -1',
)
def parts_of_a_training_set_are_read(module: PatchedModule) -> None:
    """Read the first part of a set once where --upsample-primary does not say how often."""
    stock = module.load_langpair_dataset

    @functools.wraps(stock)
    def load_langpair_dataset(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(stock).bind(*args, **kwargs)
        if bound.arguments["upsample_primary"] == -1:
            bound.arguments["upsample_primary"] = 1
        return stock(*bound.args, **bound.kwargs)

    module.load_langpair_dataset = load_langpair_dataset


@patch(
    *UPSAMPLING,
    because="fairseq 0.12.2: with --combine-valid-subsets, --upsample-primary counts the sentences "
    "of the first validation set several times in loss and BLEU",
)
def only_training_is_upsampled(module: PatchedModule) -> None:
    """Read each sentence of other sets than --train-subset once."""
    class_name, method, options = UPSAMPLING[module.__name__]
    reader = getattr(module, class_name)
    stock = getattr(reader, method)

    @functools.wraps(stock)
    def load(self: Any, split: str, *args: Any, **kwargs: Any) -> Any:
        cfg = getattr(self, options)
        if split == cfg.train_subset:
            return stock(self, split, *args, **kwargs)
        once = copy.copy(cfg)
        once.upsample_primary = 1
        setattr(self, options, once)
        try:
            return stock(self, split, *args, **kwargs)
        finally:
            setattr(self, options, cfg)

    setattr(reader, method, load)


@patch(
    "fairseq.tasks.translation_from_pretrained_bart",
    because="fairseq 0.12.2: with mBART, --sampling, --diverse-beam-groups, --diversity-rate, "
    "--lm-path and other options of the search have no effect",
)
def bart_searches_as_asked(module: PatchedModule) -> None:
    """Build the generator as other tasks do; its end of a sentence is the target language."""
    task = module.TranslationFromPretrainedBARTTask
    stock = task.build_generator

    @functools.wraps(stock)
    def build_generator(
        self: FairseqTask,
        models: list[Any],
        args: Any,
        seq_gen_cls: Any = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        **more: Any,
    ) -> Any:
        if getattr(args, "score_reference", False):
            return stock(self, models, args)
        end = self.target_dictionary.index(f"[{self.args.target_lang}]")
        extra = {**(extra_gen_cls_kwargs or {}), "eos": end}
        # found when it is called: the base class has patches of its own
        build = super(task, self).build_generator
        return build(models, args, seq_gen_cls, extra, **more)

    task.build_generator = build_generator


class OptionsOfTask:
    """A parser that leaves an option of POSITIONS to the model where the model has it."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser

    def add_argument(self, name: str, *names: str, **settings: Any) -> argparse.Action:
        """Add an option, or give that of the model its default if it has none."""
        action = self.parser._option_string_actions.get(name)
        if name not in POSITIONS or action is None:
            return self.parser.add_argument(name, *names, **settings)
        if action.default == argparse.SUPPRESS:
            action.default = settings["default"]
        return action


@patch(
    "fairseq.tasks.denoising",
    because="fairseq 0.12.2: denoising and multilingual_denoising, so BART and mBART, fail with "
    "'conflicting option string: --max-source-positions'",
)
def denoising_shares_options(module: PatchedModule) -> None:
    """Let the task declare only the options that the model has not declared."""
    add = module.DenoisingTask.add_args

    def add_args(parser: argparse.ArgumentParser) -> None:
        add(OptionsOfTask(parser))

    module.DenoisingTask.add_args = staticmethod(add_args)


@patch(
    "fairseq.data.resampling_dataset",
    because="fairseq 0.12.2: multilingual_language_modeling with its default "
    "--multilang-sampling-alpha 1.0 ends in an AssertionError without a message",
)
def data_may_be_resampled_whole(module: PatchedModule) -> None:
    """Draw all of a set without replacement, in a new order for each epoch."""
    dataset_class = module.ResamplingDataset
    build = dataset_class.__init__

    @functools.wraps(build)
    def __init__(self: Any, dataset: Any, *args: Any, **options: Any) -> None:
        settings = inspect.signature(build).bind(self, dataset, *args, **options)
        settings.apply_defaults()
        if not settings.arguments["replace"] and settings.arguments["size_ratio"] == 1:
            # as many, rounded up, and below the bound that fairseq checks
            settings.arguments["size_ratio"] = 1 - 2**-53
        build(*settings.args, **settings.kwargs)

    dataset_class.__init__ = __init__


@patch(
    "fairseq.data.legacy.block_pair_dataset",
    because="fairseq 0.12.2: legacy_masked_lm with --break-mode none looks blocks up by the sizes "
    "of blocks in place of those of the lines, ends in AssertionError, and has no list of pairs",
)
def blocks_are_cut_from_lines(module: PatchedModule) -> None:
    """Let the dataset find the lines that each block of equally many tokens begins and ends in."""
    import numpy as np

    def _sent_to_dataset_index(self: Any, sent_sizes: Any) -> list[tuple[int, int, int, int]]:
        """Return (first line, offset in it, last line, length) of blocks of sizes (N,)."""
        # lists that fairseq fills next, and makes with --break-mode doc only
        self.sent_pairs, self.sizes = [], []
        ends = np.cumsum(self.dataset.sizes)
        stops = np.cumsum(sent_sizes)
        starts = stops - sent_sizes
        first = np.searchsorted(ends, starts, side="right")
        last = np.searchsorted(ends, stops, side="left")
        offsets = starts - (ends[first] - np.asarray(self.dataset.sizes)[first])
        blocks = zip(first, offsets, last, sent_sizes)
        return [(int(b), int(offset), int(e), int(size)) for b, offset, e, size in blocks]

    module.BlockPairDataset._sent_to_dataset_index = _sent_to_dataset_index


@patch(
    "fairseq.tasks",
    because="fairseq 0.12 gives its tasks more arguments than before: those written for earlier "
    "versions, sentence_prediction_adapters and legacy_masked_lm fail with 'unexpected keyword "
    "argument'",
)
def older_tasks_are_called(module: PatchedModule) -> None:
    """Leave out the arguments of NEWER_ARGUMENTS that a task does not take."""
    stock = module.register_task

    @functools.wraps(stock)
    def register_task(name: str, dataclass: Any = None) -> Callable[[type], type]:
        register = stock(name, dataclass)

        def register_task_cls(task: type) -> type:
            take_newer_arguments(task)
            return register(task)

        return register_task_cls

    for task in module.TASK_REGISTRY.values():
        take_newer_arguments(task)
    module.register_task = register_task


def take_newer_arguments(task: Any) -> None:
    """Replace methods of the class itself that lack arguments of NEWER_ARGUMENTS."""
    for name, newer in NEWER_ARGUMENTS.items():
        method = task.__dict__.get(name)
        if not inspect.isfunction(method):
            continue
        parameters = inspect.signature(method).parameters
        unknown = [argument for argument in newer if argument not in parameters]
        if unknown and all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
            setattr(task, name, without_arguments(method, unknown))


def without_arguments(method: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    """Return the method so that it ignores the keyword arguments of these names."""

    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        return method(*args, **{name: options[name] for name in options if name not in names})

    return call


@patch(
    "fairseq.tasks.legacy_masked_lm",
    because="fairseq 0.12.2: every set that legacy_masked_lm loads prints a traceback of logging",
)
def folders_are_logged(module: PatchedModule) -> None:
    """Leave out what does not fit into the text of a line of the log."""

    def fits(record: logging.LogRecord) -> bool:
        if "%" not in str(record.msg):
            record.args = ()
        return True

    module.logger.addFilter(fits)


@patch(
    "fairseq.data.encoders",
    because='fairseq 0.12.2: --bpe characters, --bpe bytes and coders of plugins end in "Could not '
    "find 'bpe/characters'\", because they have no configuration",
)
def coders_have_configurations(module: PatchedModule) -> None:
    """Store an empty configuration for every tokenizer and sub-word coder without one."""
    from fairseq.registry import REGISTRIES

    for group in ("bpe", "tokenizer"):
        coders = REGISTRIES[group]
        for name in set(coders["registry"]) - set(coders["dataclass_registry"]):
            store_configuration(group, name)
        register = getattr(module, f"register_{group}")
        setattr(module, f"register_{group}", storing_configurations(group, register))


def store_configuration(group: str, name: str) -> None:
    """Let hydra find a choice of a group; it has no options."""
    from fairseq.dataclass import FairseqDataclass
    from hydra.core.config_store import ConfigStore

    node = FairseqDataclass(_name=name)
    ConfigStore.instance().store(name=name, group=group, node=node, provider="fairseq")


def storing_configurations(group: str, register: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator for plugins: `register`, and a configuration where they give none."""

    @functools.wraps(register)
    def register_coder(name: str, dataclass: Any = None) -> Callable[[type], type]:
        decorate: Callable[[type], type] = register(name, dataclass)
        if dataclass is not None:
            return decorate

        def register_class(coder: type) -> type:
            decorate(coder)
            store_configuration(group, name)
            delattr(coder, "__dataclass")  # None, which fairseq's parser would call
            return coder

        return register_class

    return register_coder
