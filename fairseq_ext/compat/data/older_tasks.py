"""Tasks that were written for earlier versions of fairseq."""

from __future__ import annotations

import argparse
import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable

from ..computed_attributes import AttributeUntilSet
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

if TYPE_CHECKING:
    from fairseq.tasks import FairseqTask

# options that models have too, with the same meaning
POSITIONS = ("--max-source-positions", "--max-target-positions")
# {method of a task: arguments that fairseq gives it since some version}
NEWER_ARGUMENTS = {
    "build_model": ("from_checkpoint",),
    "load_dataset": ("data_selector", "tpu", "task_cfg"),
    "train_step": ("update_num",),
    "get_batch_iterator": ("data_buffer_size", "disable_iterator_cache"),
}
# the same, of arguments that are left out only if they ask for nothing: the method could not do it
NEWER_REQUESTS = {
    "get_batch_iterator": ("skip_remainder_batch", "grouped_shuffling", "update_epoch_batch_itr"),
    "build_generator": ("seq_gen_cls", "extra_gen_cls_kwargs", "prefix_allowed_tokens_fn"),
    "build_dataset_for_inference": ("constraints",),
    "inference_step": ("constraints",),
}


@patch(
    "fairseq.tasks.fairseq_task",
    because="fairseq 0.12.2: tasks with add_args that derive from stock ones, such as translation, "
    "fail with \"object has no attribute 'args'\"; mBART's is among them",
)
def older_tasks_have_their_options(module: PatchedModule) -> None:
    """Keep the options as `args` too, where tasks without a dataclass look for them."""

    def keep_options(self: FairseqTask, cfg: Any, *more: Any, **states: Any) -> None:
        # a task may have a property of this name
        is_free = isinstance(getattr(type(self), "args", None), (AttributeUntilSet, type(None)))
        if isinstance(cfg, argparse.Namespace) and is_free:
            self.args = cfg

    call_after(module.FairseqTask, "__init__", keep_options)


@patch(
    "fairseq.tasks.fairseq_task",
    because="fairseq 0.11: tasks of plugins for 0.9 and 0.10 with an __init__ that does not call "
    "FairseqTask's, such as a copy of LegacyFairseqTask, fail with \"has no attribute 'cfg'\"",
)
def tasks_may_set_their_attributes(module: PatchedModule) -> None:
    """Give tasks that have not set them what their base reads since: no `cfg`, and a `state`."""
    module.FairseqTask.cfg = None  # as LegacyFairseqTask has it
    module.FairseqTask.state = AttributeUntilSet(
        lambda task: vars(task).setdefault("state", module.StatefulContainer())
    )


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
            action.default = settings.get("default")
        return action

    def __getattr__(self, name: str) -> Any:
        return getattr(self.parser, name)


@patch(
    "fairseq.tasks.fairseq_task",
    because="fairseq 0.12.2: tasks of plugins with add_args that declare --max-source-positions, "
    "as those for fairseq 0.10 do, fail with 'conflicting option string'",
)
def options_of_dataclasses_are_read_as_ever(module: PatchedModule) -> None:
    """Give the parser itself to tasks with a dataclass, which leave out what models declare."""
    task = module.FairseqTask
    stock = task.add_args.__func__

    @functools.wraps(stock)
    def add_args(cls: type, parser: Any) -> None:
        stock(cls, parser.parser if isinstance(parser, OptionsOfTask) else parser)

    task.add_args = classmethod(add_args)


def share_options(task: Any) -> None:
    """Let the add_args of a class leave the options of POSITIONS to the model."""
    declared = task.__dict__.get("add_args")
    if inspect.isfunction(declared):  # without @staticmethod, as it is called
        declared = staticmethod(declared)
    if not isinstance(declared, (staticmethod, classmethod)):
        return
    add: Callable[..., Any] = declared.__func__

    def of_task(parser: Any) -> None:
        add(OptionsOfTask(parser))

    def of_class(cls: type, parser: Any) -> None:
        add(cls, OptionsOfTask(parser))

    is_static = isinstance(declared, staticmethod)
    add_args = functools.wraps(add)(of_task if is_static else of_class)
    task.add_args = staticmethod(add_args) if is_static else classmethod(add_args)


@patch(
    "fairseq.utils",
    because="fairseq 0.12.2: eval_bool(True) is False. Tasks for 0.10 with a setup_task of their "
    "own pad on the other side, since --left-pad-source of translation is a bool; so does a model "
    "of multilingual_translation that is loaded with the options of its checkpoint",
)
def booleans_stay_as_they_are(module: PatchedModule) -> None:
    """Let eval_bool return a bool that it is given."""
    stock = module.eval_bool

    @functools.wraps(stock)
    def eval_bool(x: Any, default: bool = False) -> bool:
        return x if isinstance(x, bool) else bool(stock(x, default))

    module.eval_bool = eval_bool


@patch(
    "fairseq.tasks.sentence_prediction",
    because="fairseq 0.12 dropped two arguments of SentencePredictionTask.load_dictionary: tasks "
    "for 0.10 that derive from it fail with 'takes 2 positional arguments'",
)
def classes_are_read_with_options(module: PatchedModule) -> None:
    """Take the options before the name of the file, as fairseq 0.10 gave them."""
    task = module.SentencePredictionTask
    stock = task.load_dictionary.__func__

    @functools.wraps(stock)
    def load_dictionary(cls: type, *values: Any, source: bool = True, **named: Any) -> Any:
        # (filename) today, (args, filename, source) once; the options and `source` were not read
        if values and not isinstance(values[0], str):
            values = values[1:2]
        return stock(cls, *values, **{name: named[name] for name in named if name != "args"})

    task.load_dictionary = classmethod(load_dictionary)


@patch(
    "fairseq.tasks.translation",
    because="fairseq 0.12.2: tasks for earlier versions that derive from translation and declare "
    "--left-pad-target with the default 'False', a text, pad the target on the left",
)
def older_tasks_pad_as_asked(module: PatchedModule) -> None:
    """Read the texts 'True' and 'False' of the two options, as fairseq 0.10 did."""
    task = module.TranslationTask
    stock = task.setup_task.__func__

    @functools.wraps(stock)
    def setup_task(cls: type, cfg: Any, **more: Any) -> FairseqTask:
        for name in ("left_pad_source", "left_pad_target"):
            if isinstance(cfg, argparse.Namespace) and isinstance(getattr(cfg, name, None), str):
                setattr(cfg, name, module.utils.eval_bool(getattr(cfg, name)))
        return stock(cls, cfg, **more)

    task.setup_task = classmethod(setup_task)


@patch(
    "fairseq.tasks",
    because="fairseq 0.12 gives its tasks more arguments than before: those written for earlier "
    "versions, sentence_prediction_adapters and legacy_masked_lm fail with 'unexpected keyword "
    "argument'",
)
def older_tasks_are_called(module: PatchedModule) -> None:
    """Leave out the arguments of NEWER_ARGUMENTS and NEWER_REQUESTS that a task does not take."""
    stock = module.register_task

    @functools.wraps(stock)
    def register_task(name: str, *options: Any, **named: Any) -> Callable[[type], type]:
        register = stock(name, *options, **named)  # forks of 0.9 take the name alone

        def register_task_cls(task: type) -> type:
            registered = register(task)  # which refuses what is no task
            take_newer_arguments(task)
            share_options(task)
            if not task.__module__.startswith("fairseq."):
                give_options_to_model(task)
                call_update_step(task)
                evaluate_language_models(task)
            return registered

        return register_task_cls

    for task in module.TASK_REGISTRY.values():
        take_newer_arguments(task)
    module.register_task = register_task


@patch(
    "fairseq.tasks.masked_lm",
    because="fairseq 0.12 dropped MaskedLMTask.seed: tasks for 0.10 that derive from masked_lm and "
    "seed their noise by it fail with \"has no attribute 'seed'\"",
)
def masking_tasks_have_their_seed(module: PatchedModule) -> None:
    """Give masked_lm --seed as an attribute, which a task may set."""
    module.MaskedLMTask.seed = AttributeUntilSet(lambda task: task.cfg.seed)


def take_newer_arguments(task: type) -> None:
    """Replace methods that lack newer arguments, of the class and of its bases in a plugin."""
    for owner in task.__mro__:
        if owner is task or not owner.__module__.startswith(("fairseq.", "builtins")):
            for name in {**NEWER_ARGUMENTS, **NEWER_REQUESTS}:
                method = owner.__dict__.get(name)
                if inspect.isfunction(method):
                    _replace(owner, name, method)


def _replace(owner: type, name: str, method: Callable[..., Any]) -> None:
    parameters = inspect.signature(method).parameters
    if name == "build_generator" and len(parameters) == 2:  # fairseq 0.9: self and the options
        setattr(owner, name, without_models(method))
        return
    ignored = [argument for argument in NEWER_ARGUMENTS.get(name, ()) if argument not in parameters]
    empty = [argument for argument in NEWER_REQUESTS.get(name, ()) if argument not in parameters]
    if (ignored or empty) and all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
        setattr(owner, name, without_arguments(method, ignored, empty))


def without_arguments(
    method: Callable[..., Any], ignored: list[str], empty: list[str]
) -> Callable[..., Any]:
    """Return the method so that it ignores these keyword arguments, some only if they are empty."""

    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        left = {
            name: value
            for name, value in options.items()
            if name not in ignored and not (name in empty and asks_for_nothing(value))
        }
        return method(*args, **left)

    return call


def without_models(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method `build_generator` that ignores the models before the options."""
    call = without_arguments(method, [], list(NEWER_REQUESTS["build_generator"]))

    @functools.wraps(method)
    def build_generator(self: FairseqTask, *args: Any, **options: Any) -> Any:
        options.pop("models", None)
        return call(self, *args[-1:], **options)

    return build_generator


def asks_for_nothing(value: Any) -> bool:
    """True if an argument of NEWER_REQUESTS is empty; without --lm-path, lm_model is None."""
    return not value or (isinstance(value, dict) and value.get("lm_model", value) is None)


def give_options_to_model(task: Any) -> None:
    """Give a model that is trained the options that its task has set.

    Tasks and models of fairseq 0.9 had one Namespace; today each has a copy. A model that is loaded
    has the options of its checkpoint, with those that were set then.
    """
    method = task.build_model
    names = list(inspect.signature(method).parameters)
    takes_origin = "from_checkpoint" in names

    # the name of the second argument tells fairseq that it may be given
    @functools.wraps(method)
    def build_model(
        self: FairseqTask,
        args: Any = None,
        from_checkpoint: bool = False,
        *more: Any,
        **named: Any,
    ) -> Any:
        # under the name that the method has for it
        args = named.pop(names[1]) if args is None and names[1] in named else args
        options = vars(self).get("args")
        if not from_checkpoint and type(args) is type(options) is argparse.Namespace:
            for name, value in vars(options).items():
                # unchanged values are the same objects in both copies
                if name != "_name" and getattr(args, name, method) is not value:
                    setattr(args, name, value)
        if more:  # by place, as the task's own programs call it
            return method(self, args, from_checkpoint, *more, **named)
        origin = {"from_checkpoint": from_checkpoint} if takes_origin else {}
        return method(self, args, **origin, **named)

    task.build_model = build_model


def call_update_step(task: Any) -> None:
    """Call the update_step of a task for fairseq 0.9 before the first batch after an update."""
    step, train = getattr(task, "update_step", None), task.train_step
    calls_itself = "update_step" in inspect.unwrap(train).__code__.co_names
    if step is None or step.__module__.startswith("fairseq.") or calls_itself:
        return

    @functools.wraps(train)
    def train_step(self: Any, *args: Any, update_num: int = 0, **options: Any) -> Any:
        if update_num and update_num != vars(self).get("noted_update"):
            self.noted_update = update_num
            self.update_step(update_num)
        return train(self, *args, update_num=update_num, **options)

    task.train_step = train_step


def evaluate_language_models(task: Any) -> None:
    """Give a task for fairseq 0.9, which lacks eval_lm_dataloader, that of language models."""
    if hasattr(task, "eval_lm_dataloader"):
        return

    def eval_lm_dataloader(self: Any, dataset: Any, **options: Any) -> Any:
        from fairseq.tasks.language_modeling import LanguageModelingTask

        return LanguageModelingTask.eval_lm_dataloader(self, dataset, **options)

    task.eval_lm_dataloader = eval_lm_dataloader
