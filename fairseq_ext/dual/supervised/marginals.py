"""log P(x) and log P(y) of dual supervised learning, by models that are not trained here.

Texts have language models, labels their frequencies in the training data.

Dimensions: B sentences, T target positions with the end symbol, V vocabulary, L labels.
"""

from typing import Any, Dict, List, Optional, cast

import torch
from fairseq.data import Dictionary
from fairseq.tasks.language_modeling import LanguageModelingTask
from torch import Tensor, nn

from ...common import labels
from ...common.named_values import named_values
from ...common.stored import Stored, check_symbols, read_stored
from ...compat.user_errors import option_of

OPTION = "--language-models"
# options of language_modeling, and the values with which a model gives log P(y)
NEEDED: Dict[str, Any] = {
    "output_dictionary_size": -1,
    "add_bos_token": False,
    "self_target": False,
    "past_target": False,
}


def parse_language_models(
    text: Optional[str], langs: List[str], label_lang: Optional[str] = None
) -> Dict[str, str]:
    """Return {"de": "a.pt", "en": "b.pt"} of "de=a.pt,en=b.pt"; ValueError unless of ``langs``."""
    models = named_values(text)
    paths = {model.name: model.value for model in models}
    if len(paths) < len(models):
        raise ValueError(f"{OPTION} {text}: a language is named twice; allowed: one model of each")
    for lang in langs:
        if not paths.get(lang):
            raise ValueError(
                f"{OPTION} {text}: has no model of {lang}; needed: "
                + ",".join(f"{name}=FILE" for name in langs)
            )
    for lang in paths:
        if lang == label_lang:
            raise ValueError(
                f"{OPTION} {text}: P({lang}) is the share of each label in dict.{lang}.txt; "
                f"allowed: without {lang}="
            )
        if lang not in langs:
            raise ValueError(
                f"{OPTION} {text}: {lang!r} is no language of the run: {', '.join(langs)}"
            )
    return paths


def load_language_model(path: str, lang: str, dictionary: Dictionary, length: int) -> nn.Module:
    """Return the model of one checkpoint, frozen, on the CPU.

    Args:
        path: of a checkpoint of fairseq's task language_modeling, any architecture.
        lang: the language whose text it predicts.
        dictionary: of that language in this run.
        length: the longest sentence of the run, in tokens.

    Raises ValueError, naming option and file, for one that is missing or does not fit.
    """
    stored = read_stored(f"{OPTION} of {lang}:", path)
    _check_kind(stored)
    check_symbols(stored, "dict.txt", lang, dictionary)
    # "future": the next word is predicted, as in a left-to-right model
    task = LanguageModelingTask(stored.task, dictionary, dictionary, ["future"])
    model = task.build_model(stored.model, from_checkpoint=True)
    try:
        model.load_state_dict(stored.weights, strict=True, model_cfg=stored.model)
    except RuntimeError as error:
        raise stored.error(
            f"does not fit dict.{lang}.txt of the run's data, which has {len(dictionary)} words: "
            f"{error}"
        ) from error
    # some architectures have a table of positions, which cannot be read beyond its end
    if model.max_positions() < length:
        raise stored.error(
            f"reads {model.max_positions()} tokens at most, the run has sentences of up to "
            f"{length}: give --max-source-positions and --max-target-positions "
            f"{model.max_positions()}"
        )
    # P(x) and P(y) stay as they are: no dropout, no gradient
    return model.eval().requires_grad_(False)


def _check_kind(stored: Stored) -> None:
    """Raise ValueError for a checkpoint that holds no left-to-right language model."""
    if stored.task._name != "language_modeling":
        raise stored.error(
            f"holds a {stored.model._name} of the task {stored.task._name}; allowed: a model of "
            "the task language_modeling"
        )
    for name, value in NEEDED.items():
        trained = stored.task.get(name, value)
        if trained != value:
            raise stored.error(f"was trained with {option_of(name)} {trained}; allowed: {value}")


class LabelFrequencies(nn.Module):
    """log P(y) of a label, its share of the training data; the end symbol after it is certain.

    It has the interface of a language model. fairseq-preprocess counted the labels of the training
    data and wrote the counts to dict.LANG.txt.

    Args:
        dictionary: of the labels.
        lang: their "language".

    Raises ValueError, naming the file, for a label that was counted 0 times.
    """

    log_p: Tensor

    def __init__(self, dictionary: Dictionary, lang: str):
        super().__init__()
        names, first = labels.labels(dictionary), dictionary.nspecial
        # their counts in the training data
        counts = torch.tensor(dictionary.count[first : first + len(names)], dtype=torch.double)
        # log 0 would make the gap infinite
        if not counts.gt(0).all():
            name = names[int(counts.argmin())]
            raise ValueError(
                f"dict.{lang}.txt: count {int(counts.min())} of the label {name}; allowed: at "
                "least 1, the number of its training texts"
            )
        # row 0: the label; row 1: the end symbol, which follows for certain
        log_p = torch.full((2, len(dictionary)), float("-inf"))  # (T, N)
        log_p[0, first : first + len(names)] = (counts / counts.sum()).log()
        log_p[1, dictionary.eos()] = 0
        self.register_buffer("log_p", log_p)

    def forward(self, prev_tokens: Tensor) -> Tensor:
        """Return log P (B, T, N) of a label, then of end symbols, whatever (B, T) holds."""
        rows, length = prev_tokens.shape
        # (B, T, N) without a copy for each text
        first, end = self.log_p[:1], self.log_p[1:].expand(length - 1, -1)
        return torch.cat([first, end]).expand(rows, -1, -1)

    def get_normalized_probs(
        self, output: Tensor, _log_probs: bool, _sample: Optional[Dict[str, Tensor]] = None
    ) -> Tensor:
        """Return the output (B, T, N), which is log P already."""
        return output


class Marginals:
    """log P(y) of sentences by one frozen language model for each language.

    This is no torch module, so that neither checkpoints nor optimisers see the models. They stay
    in float32 and follow the device of the sentences.

    Args:
        models: {lang: language model}, of labels ``LabelFrequencies``.
    """

    def __init__(self, models: Dict[str, nn.Module]):
        self.models = models

    @classmethod
    def load(
        cls,
        language_models: Optional[str],
        dictionaries: Dict[str, Dictionary],
        length: int,
        label_lang: Optional[str] = None,
    ) -> "Marginals":
        """Return the models that the option names; ValueError for one that is missing or no fit."""
        models: Dict[str, nn.Module] = {}
        paths = parse_language_models(
            language_models, [lang for lang in dictionaries if lang != label_lang], label_lang
        )
        for lang, dictionary in dictionaries.items():
            if lang == label_lang:
                models[lang] = LabelFrequencies(dictionary, lang)
            else:
                models[lang] = load_language_model(paths[lang], lang, dictionary, length)
        return cls(models)

    def is_learnt(self, lang: str) -> bool:
        """True if ``lang`` has a language model."""
        return not isinstance(self.models[lang], LabelFrequencies)

    @torch.no_grad()
    def __call__(self, lang: str, prev_tokens: Tensor, target: Tensor, padding: int) -> Tensor:
        """Return log P(y) (B,), the end symbol included.

        prev_tokens (B, T): y, with the end symbol in front instead of at the end; target (B, T): y;
        both padded on the right with ``padding``.
        """
        # moves at the first call only
        model = self.models[lang].to(target.device)
        # sums over whole sentences: half precision would lose more than the gap
        with torch.autocast(target.device.type, enabled=False):
            output = model(prev_tokens)
            log_p = cast(Any, model).get_normalized_probs(
                output, True, {"target": target}
            )  # (B, T, V)
        log_p = log_p.gather(2, target.unsqueeze(2)).squeeze(2)  # (B, T)
        # sum over the sentence; padding is no part of it
        return log_p.masked_fill(target.eq(padding), 0).sum(dim=1)
