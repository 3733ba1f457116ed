"""A model whose searches CTranslate2 does (an optional dependency).

Each direction is exported when the server starts. fairseq's model is loaded too: texts are cut and
joined by it.
"""

import math
import tempfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np
import torch
from fairseq.data import Dictionary
from omegaconf import OmegaConf

from ...compat.checkpoints.configurations import stored_name
from ...compat.generation.line_translator import EncodedLine, Line, LineTranslator
from ...inference.inputs import one_line
from ...inference.model import Model
from ...inference.packed import is_packed, read_packed
from ...inference.results import Hypothesis, Score, Translation
from ...inference.scoring import Scoring
from ...inference.translations import source_tokens
from ...streams.language_pair import LanguagePair
from .. import UsageError
from ..checkpoint.reading import model_of, read
from ..export.ctranslate2 import import_converter, write_folder
from ..export.protocol import Checkpoint, all_exporters, stock_checkpoint
from .answers import of_score, of_translation
from .limits import Limits
from .served import Pair, ServedModel

# our options -> those of CTranslate2
OPTIONS = {
    "beam": "beam_size",
    "nbest": "num_hypotheses",
    "lenpen": "length_penalty",
    "min_len": "min_decoding_length",
    "max_len_b": "max_decoding_length",
    "no_repeat_ngram_size": "no_repeat_ngram_size",
}
# as in fairseq-generate
DEFAULTS = {"beam_size": 5, "num_hypotheses": 1, "max_decoding_length": 200}
STOCK = "transformer"
# others put a tag of a language in front of the words, or behind them
STOCK_TASKS = ("translation", "fast_translation")
BLANK = "<blank>"  # what CTranslate2's converter calls fairseq's padding
LOG_2 = math.log(2)


def read_state(path: Path) -> Checkpoint:
    """Return what a checkpoint or a packed folder holds, with a plain configuration."""
    if not is_packed(path):
        exporters = all_exporters()
        return read(path, STOCK, *exporters.directions, *exporters.whole)
    states = read_packed(path).states
    if len(states) > 1:
        raise UsageError(f"--engine ctranslate2: {path} is an ensemble; allowed: single models")
    state = states[0][1]
    return {**state, "cfg": OmegaConf.to_container(state["cfg"], resolve=True)}


def stock_of(state: Checkpoint, pair: LanguagePair, name: str) -> Optional[Checkpoint]:
    """Return the stock checkpoint of a direction, or None where there is none.

    UsageError for a model that CTranslate2 cannot be given.
    """
    exporters, model = all_exporters(), model_of(state)
    if model == STOCK:
        task = stored_name(state, "task")
        if task not in STOCK_TASKS:
            raise UsageError(
                f"--engine ctranslate2: {name} is of the task {task}; allowed: "
                f"{', '.join(STOCK_TASKS)}"
            )
        return state
    if model in exporters.whole:
        plain = exporters.whole[model].plain_checkpoint(state, state["model"], model, name)
        if model_of(plain) == STOCK:
            return plain
    elif model in exporters.directions:
        exporter = exporters.directions[model]
        if exporter.lack(state, pair.source, pair.target):
            return None
        return stock_checkpoint(exporter, state, state["model"], pair, name)
    allowed = ", ".join([STOCK, *exporters.directions])
    raise UsageError(f"--engine ctranslate2: {name} is of a {model}; allowed: {allowed}")


class Encoded(NamedTuple):
    """A sentence that can be translated: its place among the items, and its tokens."""

    place: int
    source: EncodedLine


class CTranslate2Model(ServedModel):
    """A model under a name, searched by CTranslate2.

    Args:
        name, model, limits: as of ``ServedModel``.
        paths: of the model: one checkpoint, or one packed folder.
    """

    engine = "ctranslate2"

    def __init__(self, name: str, model: Model, limits: Limits, paths: Sequence[str]):
        super().__init__(name, model, limits)
        if len(paths) > 1:
            raise UsageError(f"--engine ctranslate2: {name} is an ensemble; allowed: single models")
        converter = import_converter()
        import ctranslate2

        threads = torch.get_num_threads()
        self.searches: Dict[str, Any] = {}
        with tempfile.TemporaryDirectory(prefix="fairseq-ext-") as folder:
            for direction, member in list(self.directions.items()):
                # read for each: exporters may take it apart
                state = read_state(Path(paths[0]))
                stock = stock_of(state, member.pair, name) if member.pair else None
                if stock is None or model.kind != "translation":
                    del self.directions[direction]
                    continue
                path = Path(folder) / direction
                write_folder(converter, stock, model.loaded.folder, path)
                device = model.device
                self.searches[direction] = ctranslate2.Translator(
                    str(path),
                    device=device.type,
                    device_index=device.index or 0,
                    compute_type=str(model.loaded.dtype).rpartition(".")[2],
                    intra_threads=threads,
                )

    def translate(
        self, model: Model, items: Sequence[Any], options: Dict[str, Any]
    ) -> List[Dict[str, Any]]:
        """Return translations; token scores are null, which CTranslate2 does not give."""
        asked, options = options, dict(options)
        attention, _ = options.pop("attention", False), options.pop("extras", False)
        others = sorted(set(options) - set(OPTIONS))
        if others:
            allowed = ", ".join(OPTIONS)
            raise ValueError(f"{others[0]}: the engine ctranslate2 has it not; allowed: {allowed}")
        translator = self._translator(model)
        chosen = self._search_options(options)
        results: List[Any] = [None] * len(items)
        encoded = self._encoded(translator, items, results)
        # Empty texts, and those that the sub-word model leaves nothing of: CTranslate2 answers with
        # a sentence of score 0 and does not search.
        for entry in [entry for entry in encoded if not entry.source.words]:
            encoded.remove(entry)
            (results[entry.place],) = super().translate(model, [items[entry.place]], asked)
        answers = self.searches[model.direction].translate_batch(
            [_words(entry.source, translator) for entry in encoded],
            return_scores=True,
            return_attention=attention,
            max_input_length=0,
            suppress_sequences=never_written(translator.target_dictionary),
            **chosen,
        )
        scores = self._scores(model, encoded, answers, chosen)
        for entry, answer, of_answer in zip(encoded, answers, scores):
            read_tokens = source_tokens(translator, entry.source.tokens)
            hypotheses = _hypotheses(translator, answer, of_answer, attention)
            results[entry.place] = Translation(items[entry.place], read_tokens, hypotheses)
        answered = (
            result if isinstance(result, dict) else of_translation(result) for result in results
        )
        return [without_token_scores(answer) for answer in answered]

    def _scores(
        self,
        model: Model,
        encoded: Sequence[Encoded],
        answers: Sequence[Any],
        chosen: Dict[str, Any],
    ) -> List[List[float]]:
        """Return ln P of the hypotheses of each sentence, with the length penalty.

        Those of the greatest length, which CTranslate2 has cut, get the score of their end, as in
        fairseq.

        Args:
            encoded, answers: the sentences, and what CTranslate2 has found.
            chosen: its options.
        """
        translator, limit = self._translator(model), chosen["max_decoding_length"]
        scores = [list(answer.scores) for answer in answers]
        cut = [
            (number, rank)
            for number, answer in enumerate(answers)
            for rank, tokens in enumerate(answer.hypotheses)
            if len(tokens) == limit
        ]
        whole = self.searches[model.direction].score_batch(
            [_words(encoded[number].source, translator) for number, _ in cut],
            [answers[number].hypotheses[rank] for number, rank in cut],
            max_input_length=0,
        )
        for (number, rank), answer in zip(cut, whole):
            log_probs = answer.log_probs  # of the words and the end symbol
            penalty = len(log_probs) ** float(chosen.get("length_penalty", 1))
            scores[number][rank] = sum(log_probs) / penalty
        return scores

    def _search_options(self, options: Dict[str, Any]) -> Dict[str, Any]:
        """Return options by CTranslate2's names; ValueError for a min_len that is too large."""
        chosen = {**DEFAULTS, **{OPTIONS[name]: value for name, value in options.items()}}
        # CTranslate2 fails at a word behind the last position; the end symbol takes one, as in
        # fairseq's search
        longest = self.first.loaded.models[0].max_decoder_positions() - 1
        if options.get("min_len", 1) > longest:
            raise ValueError(f"min_len {options['min_len']}; allowed: at most {longest}")
        chosen["max_decoding_length"] = min(chosen["max_decoding_length"], longest)
        return chosen

    def score(
        self, model: Model, items: Sequence[Pair], options: Dict[str, Any]
    ) -> List[Dict[str, Any]]:
        """Return how probable targets are; the attention is null."""
        translator = self._translator(model)
        scoring = Scoring(model, translator)
        dictionary = translator.target_dictionary
        results: List[Any] = [None] * len(items)
        encoded = self._encoded(translator, [pair.source for pair in items], results)
        targets = []
        for entry in list(encoded):
            try:
                row = scoring.encode_target(items[entry.place].target)
                targets.append([dictionary[index] for index in row.tolist()])
            except ValueError as error:
                encoded.remove(entry)
                results[entry.place] = str(error)
        answers = self.searches[model.direction].score_batch(
            [_words(entry.source, translator) for entry in encoded],
            [row[:-1] for row in targets],
            max_input_length=0,
        )
        for entry, tokens, answer in zip(encoded, targets, answers):
            scores = [value / LOG_2 for value in answer.log_probs]
            mean = sum(scores) / len(scores)
            results[entry.place] = Score(*items[entry.place], tokens, mean, scores)
        return [of_score(_whole_score(pair, result), False) for pair, result in zip(items, results)]

    def _translator(self, model: Model) -> LineTranslator:
        """Return what cuts and joins texts of a direction."""
        return model.translator(self.limits.batch_sentences, {})

    def _encoded(
        self, translator: LineTranslator, items: Sequence[str], results: List[Any]
    ) -> List[Encoded]:
        """Return the sentences that can be translated; ``results`` gets the errors of others."""
        encoded = []
        for place, item in enumerate(items):
            try:
                encoded.append(Encoded(place, translator.source(Line(place, one_line(item)))))
            except ValueError as error:
                empty = Hypothesis("", [], -math.inf, [])
                results[place] = Translation(item, [], [empty], str(error))
        return encoded


def never_written(dictionary: Dictionary) -> List[List[str]]:
    """Return what no translation holds: fairseq's search never chooses the padding."""
    return [] if BLANK in dictionary else [[BLANK]]


def _words(source: EncodedLine, translator: LineTranslator) -> List[str]:
    """Return the words of a sentence; one that is spelt as CTranslate2's padding is unknown."""
    dictionary = translator.source_dictionary
    is_known = BLANK in dictionary
    return [
        dictionary.unk_word if word == BLANK and not is_known else word for word in source.words
    ]


def without_token_scores(answer: Dict[str, Any]) -> Dict[str, Any]:
    """Return a translation that says that its token scores are not known."""
    for hypothesis in answer["hypotheses"]:
        hypothesis["token_scores"] = None
    return answer


def _whole_score(pair: Pair, result: Any) -> Score:
    """Return a score; one with an error for what could not be scored."""
    if isinstance(result, Score):
        return result
    error = result.error if isinstance(result, Translation) else result
    return Score(pair.source, pair.target, [], -math.inf, [], None, error)


def _hypotheses(
    translator: LineTranslator, answer: Any, scores: Sequence[float], attention: bool
) -> List[Hypothesis]:
    """Return the translations of one answer of CTranslate2 with these scores, the best first."""
    weights = answer.attention if attention else [None] * len(answer.hypotheses)
    begin = translator.target_dictionary.bos_word  # which fairseq leaves out of texts
    hypotheses = [
        Hypothesis(
            translator.decode(" ".join(word for word in tokens if word != begin)),
            list(tokens),
            score / LOG_2,
            [],
            None if rows is None else np.array(rows),
        )
        for tokens, score, rows in zip(answer.hypotheses, scores, weights)
    ]
    # stable: CTranslate2 has put those in order that it has not cut
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
