"""A trained model in one direction: what ``fairseq_ext.load`` returns.

Dimensions: S source tokens, T target tokens, the end symbol among both.
"""

import itertools
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, TypeVar

import torch
from fairseq.data import Dictionary, encoders
from fairseq.models import BaseFairseqModel, FairseqLanguageModel
from fairseq.tasks import FairseqTask
from fairseq.tasks.speech_to_text import SpeechToTextTask

from ..compat.checkpoints.configurations import options_of_task
from ..compat.generation.line_translator import Coders, LineTranslator
from ..duo.classifier.task import TextClassificationTask
from ..streams.language_pair import LanguagePair, sides
from ..streams.other_direction import task_toward
from ..streams.task import StreamsTask
from ..twin.captions.task import ImageCaptioningTask
from ..twin.criterion import TwinCriterion
from .classification import Classifications
from .inputs import Input, Inputs, check_several
from .perplexities import Perplexities
from .results import Classification, Perplexity, Score, Translation
from .scoring import Scoring, check_scoring
from .search import build_translator, check_count, check_flag, plain_value, tokenizer_options
from .subword_models import SubwordModels, direction_coder
from .translations import Translations

# sentences that are sorted by length together
BUFFER = 1024
# searches with other options that are kept ready
SEARCHES = 8
ALL_LABELS = 1 << 20  # of a text that is classified: more than any model has
Result = TypeVar("Result")


class LoadedModels:
    """What all directions of a model share.

    Attributes:
        models: an ensemble.
        device: where they are.
        subwords: files of the sub-word models.
        coders: {language: what the files made}.
        tokenizer: options of fairseq's --tokenizer, or None.
        twin: the criterion with the backward network, or None.
        folder: of the dictionaries.
        lock: held while the models compute.
    """

    def __init__(
        self,
        models: List[BaseFairseqModel],
        device: torch.device,
        subwords: SubwordModels,
        coders: Mapping[str, Any],
        tokenizer: Optional[Mapping[str, Any]],
        twin: Optional[TwinCriterion],
        folder: Path,
    ):
        self.models, self.device = models, device
        self.subwords, self.coders = subwords, coders
        self.tokenizer, self.twin, self.folder = tokenizer, twin, folder
        self.lock = threading.RLock()

    @property
    def dtype(self) -> torch.dtype:
        """Return the type of the parameters."""
        return next(self.models[0].parameters()).dtype


class Model:
    """A model in one direction; ``load`` makes it. Several threads may use it.

    Args:
        loaded: what the directions share.
        task: of this direction.
    """

    def __init__(self, loaded: LoadedModels, task: FairseqTask):
        self.loaded, self.task = loaded, task
        if isinstance(task, StreamsTask):
            task.keep_attention = True
        self.kind = kind_of(task, loaded.models)
        self.pair = direction_of(task)
        self.direction = str(self.pair or "")
        self._translators: "OrderedDict[str, LineTranslator]" = OrderedDict()
        self._coders: Optional[Coders] = None

    def __repr__(self) -> str:
        direction = f" {self.direction}" if self.direction else ""
        return f"<{type(self).__name__}: {self.kind}{direction}, {self.device}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raise TypeError: a copy or a pickle would need another lock and other parameters."""
        raise TypeError(
            "a loaded model cannot be copied or pickled; allowed: fairseq_ext.load(..) in each "
            "process, or a fork of this one"
        )

    # ---------------------------------------------------------------- what it is

    @property
    def device(self) -> torch.device:
        """Return where the model computes."""
        return self.loaded.device

    @property
    def directions(self) -> Tuple[str, ...]:
        """Return what ``toward`` takes; also "de+fr-en" where the model reads several sources."""
        task = self.task
        if not isinstance(task, StreamsTask) or not hasattr(self.loaded.models[0], "direction"):
            return (self.direction,) if self.direction else ()
        sources, targets = sides(task.pairs)
        pairs = [f"{source}-{target}" for source in sources for target in targets]
        # those that were trained come first
        names = dict.fromkeys([*task.pairs, *pairs])
        return tuple(name for name in names if task.can_translate(name))

    def toward(self, direction: str) -> "Model":
        """Return this model in another direction; both share their memory.

        ValueError, with those that there are, for a direction that the model does not have.
        """
        if direction == self.direction:
            return self
        if not isinstance(self.task, StreamsTask) or len(self.directions) < 2:
            allowed = ", ".join(self.directions) or "none, the model has no languages"
            raise ValueError(f"direction {direction!r}: allowed: {allowed}")
        try:
            with self.loaded.lock:
                return type(self)(self.loaded, task_toward(self.task, direction))
        except ValueError as error:
            raise ValueError(
                f"direction {direction!r}: {error}; allowed: {', '.join(self.directions)}"
            ) from error

    # ---------------------------------------------------------------- what it does

    def translate(
        self,
        sentences: Iterable[Any],
        beam: int = 5,
        nbest: int = 1,
        batch: int = 64,
        progress: bool = False,
        *,
        attention: bool = True,
        extras: bool = True,
        **search: Any,
    ) -> List[Translation]:
        """Return the translations of the sentences, one for each and in their order.

        Args:
            sentences: raw texts, in a list or an iterator; tuples of them for several sources. For
                speech, wav files or features; for captions, features: file names or arrays.
            beam: hypotheses that the search follows.
            nbest: hypotheses that are returned, at most ``beam``.
            batch: sentences that are translated together; they do not change the translations.
            progress: show a bar on the standard error.
            attention: whether the hypotheses have it.
            extras: whether they have what the system adds, which may take another pass.
            search: ``max_tokens`` of a batch, with padding, also the limit of a sentence; further
                options of fairseq-generate, such as ``lenpen=0.6`` or ``max_len_b=50``; and
                ``dual_alpha``, ``source_average`` or ``well_formed_targets`` of our tasks.

        ValueError for options that are not allowed, TypeError for what is no sentence.
        """
        if self.kind == "language_model":
            raise ValueError("translate: the model is a language model; allowed: perplexity")
        for name, value in dict(progress=progress, attention=attention, extras=extras).items():
            check_flag(name, value)
        batch, beam = check_count("batch", batch), check_count("beam", beam)
        nbest = min(check_count("nbest", nbest), beam)
        options = {"beam": beam, "nbest": nbest, **search}
        translator = self.translator(batch, options)
        work = Translations(self, translator, attention, extras)
        return self._results(sentences, work.of, max(BUFFER, batch), progress)

    def score(
        self, sources: Iterable[Any], targets: Iterable[str], batch: int = 64, **options: Any
    ) -> List[Score]:
        """Return how probable targets are, as ``fairseq-generate --score-reference`` does.

        Args:
            sources: as in ``translate``.
            targets: raw texts, as many.
            batch: pairs that are scored together.
            options: ``source_average`` of a model with several sources.

        ValueError for a model of another kind and for sides of unequal length.
        """
        if self.kind in ("classification", "language_model"):
            allowed = "classify" if self.kind == "classification" else "perplexity"
            raise ValueError(f"score: the model is for {self.kind}; allowed: {allowed}")
        check_several("sources", sources)
        check_several("targets", targets)
        sources, targets = list(sources), list(targets)
        if len(sources) != len(targets):
            raise ValueError(f"score: {len(sources)} sources, but {len(targets)} targets")
        check_scoring(options)
        scoring = Scoring(self, self.translator(batch, options))
        rest = iter(targets)
        return self._results(
            sources, lambda part: scoring.of(part, list(itertools.islice(rest, len(part))))
        )

    def classify(self, texts: Iterable[str], batch: int = 64) -> List[Classification]:
        """Return the labels of texts, with the probabilities of all labels.

        batch: texts that are classified together. ValueError for a model of another kind.
        """
        if self.kind != "classification":
            raise ValueError(f"classify: the model is for {self.kind}; allowed: {self._allowed()}")
        work = Classifications(self.translator(batch, {"nbest": ALL_LABELS}))
        return self._results(texts, work.of)

    def perplexity(self, texts: Iterable[str], batch: int = 64) -> List[Perplexity]:
        """Return the perplexities of texts by a language model, as fairseq-eval-lm has them.

        batch: texts that are scored together. ValueError for a model of another kind.
        """
        if self.kind != "language_model":
            raise ValueError(
                f"perplexity: the model is for {self.kind}; allowed: {self._allowed()}"
            )
        work = Perplexities(self, batch)
        return self._results(texts, work.of)

    def _results(
        self,
        originals: Iterable[Any],
        work: Callable[[List[Input]], List[Result]],
        size: int = BUFFER,
        progress: bool = False,
    ) -> List[Result]:
        """Return what ``work`` makes of the inputs, of at most ``size`` at a time, in order."""
        results: List[Result] = []
        with Inputs(self.kind, self.sources, self.task) as inputs:
            for part in inputs.buffers(originals, size, progress):
                with self.loaded.lock:
                    results += work(part)
        return results

    def _allowed(self) -> str:
        """Return the methods that fit the kind of model, for errors."""
        special = {"language_model": "perplexity", "classification": "classify, translate"}
        return special.get(self.kind, "translate, score")

    # ---------------------------------------------------------------- its parts

    @property
    def sources(self) -> Tuple[str, ...]:
        """Return the source languages of the direction; none for a model without languages."""
        return self.pair.sources if self.pair else ()

    @property
    def target_dictionary(self) -> Dictionary:
        """Return the dictionary of the target."""
        return self.task.target_dictionary

    @property
    def has_languages(self) -> bool:
        """True if the model reads text of one language and writes text of one."""
        return self.task.source_dictionary is not None and self.pair is not None

    def coders(self) -> Coders:
        """Return what cuts and joins the texts of this direction."""
        if self._coders is None:
            if self.pair is None or not self.has_languages:
                # recordings, features and language models: the first have their own options
                options = vars(self.task).get("args")
                captions = self.loaded.coders.get("") if self.kind == "captions" else None
                bpe = self.task.build_bpe(options) if self.kind == "speech" else captions
                self._coders = Coders(None, bpe)
            else:
                tokenizer = None
                if self.loaded.tokenizer:
                    options = tokenizer_options(self.loaded.tokenizer, *self.pair)
                    # a task of several pairs may have one for each source
                    place = self.task if isinstance(self.task, StreamsTask) else encoders
                    tokenizer = place.build_tokenizer(options)
                loaded = self.loaded
                coder = direction_coder(self.task, loaded.coders, self.pair, loaded.subwords.kind)
                self._coders = Coders(tokenizer, coder)
        return self._coders

    def translator(self, batch: int, options: Dict[str, Any]) -> LineTranslator:
        """Return the translator for these options of the search, which is kept for a while."""
        options = {name: plain_value(value) for name, value in options.items()}
        key = repr((batch, sorted(options.items())))
        with self.loaded.lock:
            if key not in self._translators:
                self._translators[key] = build_translator(
                    self.task, self.loaded.models, options, self.coders(), batch, self.device
                )
                if len(self._translators) > SEARCHES:
                    self._translators.popitem(last=False)
            self._translators.move_to_end(key)
            return self._translators[key]


def kind_of(task: FairseqTask, models: Sequence[BaseFairseqModel]) -> str:
    """Return what a model does."""
    if isinstance(models[0], FairseqLanguageModel):
        return "language_model"
    if isinstance(task, TextClassificationTask) or _writes_labels(task):
        return "classification"
    if isinstance(task, ImageCaptioningTask):
        return "captions"
    return "speech" if isinstance(task, SpeechToTextTask) else "translation"


def _writes_labels(task: FairseqTask) -> bool:
    """True if the target of the direction is a label."""
    label_lang = getattr(task, "label_lang", None)
    if label_lang is None:
        return False
    pair = direction_of(task)
    return pair is not None and pair.target == label_lang


def direction_of(task: FairseqTask) -> Optional[LanguagePair]:
    """Return the direction of a task, or None for a model without languages."""
    pair = getattr(task, "pair", None)
    if pair:
        return LanguagePair.parse(pair)
    options = options_of_task(task)
    # not parsed: languages of fairseq's own tasks may have a dash in their names
    source, target = options.get("source_lang"), options.get("target_lang")
    return LanguagePair(source, target) if source and target else None
