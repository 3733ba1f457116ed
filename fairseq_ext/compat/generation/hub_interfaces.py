"""What `from_pretrained` gives: models in Python, their coders, options and answers."""

from __future__ import annotations

import contextvars
import functools
import inspect
import types
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ..command_line.chosen_classes import is_stock
from ..context_values import holding
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..user_errors import OptionError, hint_for

if TYPE_CHECKING:
    from fairseq.hub_utils import GeneratorHubInterface
    from torch import Tensor

MASK = "<mask>"
CODERS = ("bpe", "tokenizer")

# {"bpe" or "tokenizer": name} that a caller of from_pretrained gave, while checkpoints are read
coders_by_name: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar(
    "coders of from_pretrained", default=types.MappingProxyType({})
)


@patch(
    "fairseq.models.fairseq_model",
    "fairseq.models.roberta.model",
    "fairseq.models.roberta.model_camembert",
    "fairseq.models.roberta.model_gottbert",
    "fairseq.models.roberta.model_xlmr",
    "fairseq.models.xmod.model",
    "fairseq.models.bart.model",
    because="fairseq 0.12.2: from_pretrained ignores bpe= and tokenizer= where the checkpoint was "
    "trained with another --bpe or --tokenizer: a text is cut into pieces of that one",
)
def coders_are_those_of_the_caller(module: PatchedModule) -> None:
    """Hand bpe= and tokenizer= to the loading of checkpoints, but not a model's own defaults."""
    for entry in vars(module).values():
        if inspect.isclass(entry) and entry.__module__ == module.__name__:
            note_coders(entry)


def note_coders(model: Any) -> None:
    """Let `from_pretrained` of a class, if it has one of its own, note the coders."""
    method = vars(model).get("from_pretrained")
    if isinstance(method, classmethod):
        model.from_pretrained = classmethod(noting_coders(method.__func__))


def noting_coders(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that notes the coders among its arguments while it runs."""

    @functools.wraps(stock)
    def from_pretrained(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(stock).bind(*args, **kwargs).arguments
        named = {**bound, **kwargs}
        with holding(coders_by_name, {name: named[name] for name in CODERS if name in named}):
            return stock(*args, **kwargs)

    return from_pretrained


@patch(
    "fairseq.checkpoint_utils",
    because="fairseq 0.12.2: a name of a coder does not replace the coder of a checkpoint",
)
def coders_of_checkpoints_are_replaced(module: PatchedModule) -> None:
    """Forget the coder of a checkpoint where the caller names another, or None."""
    from omegaconf import DictConfig, open_dict

    def forget_coders(cfg: Any, overrides: dict[str, Any]) -> None:
        for group, name in coders_by_name.get().items():
            if isinstance(name, str):
                check_coder(group, name)
            coder = cfg.get(group)
            if isinstance(coder, DictConfig) and not isinstance(name, dict):
                if coder.get("_name") != name:
                    with open_dict(cfg):
                        cfg[group] = None

    call_before(module, "overwrite_args_by_name", forget_coders)


def check_coder(group: str, name: str) -> None:
    """Raise OptionError if no coder has this name."""
    from fairseq.data import encoders  # noqa: F401  (fills the registry)
    from fairseq.registry import REGISTRIES

    names = sorted(REGISTRIES[group]["registry"])
    if name not in names:
        raise OptionError(f"{group}={name!r} is not known; allowed: None, {', '.join(names)}")


@patch(
    "fairseq.hub_utils",
    "fairseq.models.bart.hub_interface",
    because="fairseq 0.12.2: with skip_invalid_size_inputs=True, or a task that leaves out inputs "
    "itself, the answers of the inputs after one that is left out stand in the wrong place; a "
    "single tensor loses the arguments of generate, such as prefix_allowed_tokens_fn; a name that "
    "is no option does nothing",
)
def each_input_has_its_answer(module: PatchedModule) -> None:
    """Check the options, and give an input that is too long one empty answer of score -inf."""
    for name in ("GeneratorHubInterface", "BARTHubInterface"):
        interface = vars(module).get(name)
        # the base class is also a name of the module of BART
        if interface is not None and interface.__module__ == module.__name__:
            interface.generate = with_an_answer_each(interface.generate)


def with_an_answer_each(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Return `generate` of an interface with an answer for each input, in their order."""
    import torch

    @functools.wraps(stock)
    def generate(
        self: GeneratorHubInterface,
        tokenized_sentences: Any,
        *args: Any,
        skip_invalid_size_inputs: bool = False,
        **kwargs: Any,
    ) -> Any:
        if torch.is_tensor(tokenized_sentences) and tokenized_sentences.dim() == 1:
            kwargs["skip_invalid_size_inputs"] = skip_invalid_size_inputs
            return self.generate([tokenized_sentences], *args, **kwargs)[0]
        parameters = inspect.signature(type(self).generate).parameters
        base = inspect.signature(stock).parameters
        check_options(self, [name for name in kwargs if name not in {*parameters, *base}])
        if not skip_invalid_size_inputs:
            hypotheses = stock(self, tokenized_sentences, *args, **kwargs)
            if len(hypotheses) == len(tokenized_sentences):
                return hypotheses
            # the task of a plugin has left some out of its batches
            valid = valid_places(self, tokenized_sentences, False)
            return in_their_places(hypotheses, valid, len(tokenized_sentences))
        valid = valid_places(self, tokenized_sentences, True)
        inputs = [tokenized_sentences[index] for index in valid]
        hypotheses = stock(self, inputs, *args, **kwargs) if inputs else []
        return in_their_places(hypotheses, valid, len(tokenized_sentences))

    return generate


def valid_places(
    interface: GeneratorHubInterface, inputs: Sequence[Tensor], skip_invalid: bool
) -> list[int]:
    """Return the places of the inputs that the task has in its batches, in their order."""
    batches = interface._build_batches(inputs, skip_invalid)
    return sorted(index for batch in batches for index in batch["id"].tolist())


def in_their_places(hypotheses: Sequence[Any], places: Sequence[int], count: int) -> list[Any]:
    """Return `count` answers: the hypotheses in their places, and empty ones in all others."""
    answers: list[Any] = [[empty_answer()] for _ in range(count)]
    for place, best in zip(places, hypotheses):
        answers[place] = best
    return answers


def check_options(interface: GeneratorHubInterface, names: list[str]) -> None:
    """Raise OptionError for a name that the search of a task of fairseq does not read."""
    from fairseq.dataclass.configs import GenerationConfig

    options = {*GenerationConfig.__dataclass_fields__, *interface.cfg.generation}
    # arguments of BARTHubInterface that go on to its base class
    options |= {"prefix_allowed_tokens_fn", "verbose"}
    for name in names:
        if name not in options and is_stock(type(interface.task)):
            raise OptionError(
                f"{name!r} is no option of the search{hint_for(name, options)}; allowed: those of "
                "fairseq-generate"
            )


@patch(
    "fairseq.models.bart.hub_interface",
    because="fairseq 0.12.2: encode of BART adds sub-words that are unknown to the dictionary",
)
def dictionaries_stay_as_they_are(module: PatchedModule) -> None:
    """Take them for <unk>, as RoBERTa does."""
    stock = module.BARTHubInterface.encode

    def encode(self: Any, sentence: str, *more: str, no_separator: bool = True) -> Tensor:
        """Return the symbols, (T,), of sentences."""
        dictionary = self.task.source_dictionary
        dictionary.add_symbol = dictionary.index
        try:
            tokens: Tensor = stock(self, sentence, *more, no_separator=no_separator)
        finally:
            del dictionary.add_symbol
        return tokens

    module.BARTHubInterface.encode = encode


def empty_answer() -> dict[str, Any]:
    """Return a hypothesis without words, of score -inf."""
    import torch

    return {
        "tokens": torch.zeros(0, dtype=torch.long),
        "score": -torch.inf,
        "attention": None,
        "alignment": None,
        "positional_scores": torch.zeros(0),
    }


@patch(
    "fairseq.models.roberta.hub_interface",
    because="fairseq 0.12.2: fill_mask of RoBERTa gives words the probabilities of others where "
    "<s> or </s> is among the most probable symbols, and fewer than topk words",
)
def masks_are_filled_with_words(module: PatchedModule) -> None:
    """Rank the symbols that are text, each with its probability among all symbols."""

    def fill_mask(self: Any, masked_input: str, topk: int = 5) -> list[tuple[str, float, str]]:
        """Return [(filled text, probability, word)] of the `topk` most probable words."""
        if masked_input.count(MASK) != 1:
            raise ValueError(f"the input has {masked_input.count(MASK)} {MASK}; allowed: 1")
        probabilities = probabilities_of_mask(self, masked_input, module.utils)  # (V,)
        dictionary = self.task.source_dictionary
        controls = {dictionary.bos(), dictionary.eos(), dictionary.pad()}
        count = min(topk + len(controls), len(dictionary))
        values, symbols = (ranked.tolist() for ranked in probabilities.topk(count))
        gap = f" {MASK}" if f" {MASK}" in masked_input else MASK
        filled = []
        for value, symbol in zip(values, symbols):
            if symbol not in controls:
                piece = dictionary[symbol]
                word = self.bpe.decode(piece)
                if piece.startswith("\u2581"):  # sentencepiece's sign of a blank, which it strips
                    word = " " + word
                filled.append((masked_input.replace(gap, word), value, word))
        return filled[:topk]

    module.RobertaHubInterface.fill_mask = fill_mask


def probabilities_of_mask(interface: Any, text: str, utils: Any) -> Tensor:
    """Return the probability of each symbol in the place of the mask, (V,)."""
    dictionary = interface.task.source_dictionary
    parts = [interface.bpe.encode(part.rstrip()) for part in text.split(MASK)]
    line = f"<s> {f' {MASK} '.join(parts).strip()} </s>"
    tokens = dictionary.encode_line(line, append_eos=False, add_if_not_exist=False).long()
    with utils.model_eval(interface.model):
        logits = interface.model(
            tokens[None].to(interface.device), features_only=False, return_all_hiddens=False
        )[0]  # (1, T, V)
    position = tokens.tolist().index(interface.task.mask_idx)
    probabilities: Tensor = logits[0, position].softmax(0)
    return probabilities
