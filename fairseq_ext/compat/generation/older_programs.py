"""Programs for fairseq 0.9 and 0.10 that load a model and translate with it."""

from __future__ import annotations

import argparse
import copy
import dataclasses
import functools
import inspect
from typing import Any, Callable

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after

# groups of options that are chosen by a name, which was an option of the group's name
NAMED_GROUPS = ("task", "criterion", "optimizer", "lr_scheduler", "bpe", "tokenizer", "scoring")
# where groups have an option of the same name, that of the later group counts
LAST_GROUPS = "generation task model"


class OptionsOfHub(argparse.Namespace):
    """The options of a model in one Namespace, for reading. A copy of it is a plain Namespace."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"args.{name} would change nothing: args is a copy of the options, for reading; "
            "change cfg, or give the option to the method"
        )

    def __copy__(self) -> argparse.Namespace:
        return argparse.Namespace(**vars(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> argparse.Namespace:
        return argparse.Namespace(**copy.deepcopy(vars(self), memo))


def options_in_one(cfg: Any, task: Any) -> argparse.Namespace:
    """Return the options of a model as fairseq 0.10 had them, without groups.

    Args:
        cfg: the configuration of a checkpoint, in groups; a Namespace is returned as it is.
        task: whose own options count; it infers the languages, for example.
    """
    from omegaconf import DictConfig

    if not isinstance(cfg, DictConfig):
        return cfg
    groups = {str(name): options_of_group(cfg[name]) for name in cfg}
    groups["task"].update(options_of_group(vars(task).get("cfg")))
    together: dict[str, Any] = {}
    if isinstance(cfg.model, argparse.Namespace):  # without a dataclass: the options of all groups
        together.update(groups.pop("model"))
    for name in sorted(groups, key=place_of_group):
        together.update(groups[name])
        if name in NAMED_GROUPS:
            together[name] = groups[name].get("_name")
    together.setdefault("arch", groups.get("model", {}).get("_name"))
    together.pop("_name", None)
    options = OptionsOfHub()
    vars(options).update(together)
    return options


def place_of_group(name: str) -> tuple[int, str]:
    """Return the place of a group in the order in which options of the same name replace others."""
    return (LAST_GROUPS.find(name), name)


def options_of_group(group: Any) -> dict[str, Any]:
    """Return the options of a group of a configuration; none of what is not a group."""
    from omegaconf import DictConfig, OmegaConf

    if isinstance(group, DictConfig):
        options = OmegaConf.to_container(group, resolve=True)
        assert isinstance(options, dict)
        return {str(name): value for name, value in options.items()}
    return dict(vars(group)) if isinstance(group, argparse.Namespace) else {}


@patch(
    "fairseq.hub_utils",
    "fairseq.models.roberta.hub_interface",
    because="fairseq 0.12: programs for 0.9 and 0.10 that read roberta.args.encoder_embed_dim, "
    "and hub interfaces of plugins that read self.args, fail with \"has no attribute 'args'\"",
)
def hubs_have_args(module: PatchedModule) -> None:
    """Give what from_pretrained returns the options in one Namespace, as `args`."""

    def keep_options(self: Any, cfg: Any, task: Any, *more: Any, **named: Any) -> None:
        if not hasattr(type(self), "args"):
            self.args = options_in_one(cfg, task)

    for name in ("GeneratorHubInterface", "RobertaHubInterface"):
        hub = vars(module).get(name)
        if hub is not None and hub.__module__ == module.__name__:
            call_after(hub, "__init__", keep_options)


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12: programs for 0.9 and 0.10 that read args.source_lang of what "
    "load_model_ensemble_and_task returns fail with 'Missing key source_lang', and "
    "getattr(args, 'beam', 5) is 5 whatever arg_overrides says",
)
def loaded_configurations_have_options(module: PatchedModule) -> None:
    """Let the configuration of a loaded model answer for options without naming their group."""
    stock = module.load_model_ensemble_and_task

    @functools.wraps(stock)
    def load_model_ensemble_and_task(*args: Any, **options: Any) -> Any:
        from omegaconf import DictConfig

        models, cfg, task = stock(*args, **options)
        if type(cfg) is DictConfig:
            # an assignment to an attribute would add an option of this name
            object.__setattr__(cfg, "__class__", answering_configuration())
            vars(cfg)["_task"] = task
        return models, cfg, task

    module.load_model_ensemble_and_task = load_model_ensemble_and_task


@functools.lru_cache(maxsize=None)
def answering_configuration() -> Any:
    """Return a class of configurations that look for a name among the options of all groups.

    Copies, and what is stored of such a configuration, are of omegaconf's own class.
    """
    from omegaconf import DictConfig

    class AnsweringConfiguration(DictConfig):
        def __getattr__(self, key: str) -> Any:
            try:
                return super().__getattr__(key)
            except AttributeError:
                options = {} if key.startswith("_") else vars(options_in_one(self, self._task))
                if key not in options:
                    raise
                return options[key]

        def __reduce_ex__(self, protocol: Any) -> Any:
            return copy.copy(self).__reduce_ex__(protocol)

        # pickle stores no object by another class than its own
        @property  # type: ignore[misc]  # of one that can be assigned
        def __class__(self) -> Any:
            return DictConfig

    return AnsweringConfiguration


class SearchOfOptions:
    """A search that is built with the models that its `generate` is given."""

    def __init__(self, build: Callable[[list[Any]], Any]) -> None:
        """Keep `build`, which makes the search of a list of models."""
        self.build = build
        self.models: list[Any] = []
        self.search: Any = None

    def generate(self, models: Any, sample: Any, *more: Any, **options: Any) -> Any:
        """Return what the search of these models returns."""
        models = list(models)
        if self.search is None or list(map(id, models)) != list(map(id, self.models)):
            self.models, self.search = models, self.build(models)
        return self.search.generate(models, sample, *more, **options)

    def __getattr__(self, name: str) -> Any:
        search = vars(self).get("search")
        if search is None:
            raise AttributeError(f"{name} is known after the first call of generate")
        return getattr(search, name)


@patch(
    "fairseq.tasks",
    because="fairseq 0.10: programs for 0.9, and tasks that call build_generator of the task that "
    "they derive from, fail with \"missing 1 required positional argument: 'args'\"",
)
def searches_are_built_without_models(module: PatchedModule) -> None:
    """Let `build_generator` of fairseq's tasks take the options alone."""
    changed = set()
    for task in module.TASK_REGISTRY.values():
        for owner in task.__mro__:
            method = owner.__dict__.get("build_generator")
            if owner not in changed and inspect.isfunction(method):
                changed.add(owner)
                owner.build_generator = taking_options_alone(method)


def taking_options_alone(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `build_generator` that builds later where it is given no models."""

    @functools.wraps(method)
    def build_generator(self: Any, *args: Any, **options: Any) -> Any:
        if len(args) > 1 or {"models", "cfg"} & set(options):
            return method(self, *args, **options)
        if len(args) == 1 and ("args" in options or isinstance(args[0], (list, tuple))):
            return method(self, *args, **options)
        older = args[0] if args else options.pop("args")
        return SearchOfOptions(lambda models: method(self, models, older, **options))

    return build_generator


@patch(
    "fairseq.data.encoders.moses_tokenizer",
    because="fairseq 0.10.1 renamed options: programs for earlier ones, and byte_level_bpe's "
    "get_bitext of 0.12.2 itself, end with \"has no attribute 'source_lang'\"",
)
def tokenizers_have_languages(module: PatchedModule) -> None:
    """Read `moses_source_lang` and `moses_target_lang` where the options have their old names."""
    stock = module.MosesTokenizer.__init__

    @functools.wraps(stock)
    def init(self: Any, cfg: Any) -> None:
        if not hasattr(cfg, "source_lang") and hasattr(cfg, "moses_source_lang"):
            source, target = cfg.moses_source_lang, getattr(cfg, "moses_target_lang", None)
            cfg = with_defaults(module.MosesTokenizerConfig, cfg)
            cfg.source_lang, cfg.target_lang = source, target
        stock(self, cfg)

    module.MosesTokenizer.__init__ = init


@patch(
    "fairseq.data.encoders.sentencepiece_bpe",
    because="fairseq 0.11 has more options: programs for earlier ones, and byte_level_bpe's "
    "get_bitext of 0.12.2 itself, end with \"has no attribute 'sentencepiece_enable_sampling'\"",
)
def pieces_are_not_sampled_by_default(module: PatchedModule) -> None:
    """Give the options of sampling their defaults where a program has none."""
    stock = module.SentencepieceBPE.__init__

    @functools.wraps(stock)
    def init(self: Any, cfg: Any) -> None:
        if not hasattr(cfg, "sentencepiece_enable_sampling"):
            cfg = with_defaults(module.SentencepieceConfig, cfg)
        stock(self, cfg)

    module.SentencepieceBPE.__init__ = init


def with_defaults(dataclass: Any, options: Any) -> Any:
    """Return a dataclass with the options that it has a field for; others have their defaults."""
    names = [field.name for field in dataclasses.fields(dataclass)]
    return dataclass(**{name: getattr(options, name) for name in names if hasattr(options, name)})
