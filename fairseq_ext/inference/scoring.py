"""How probable given translations are, as ``fairseq-generate --score-reference`` says.

Dimensions: S source tokens, T target tokens, the end symbol among both.
"""

import math
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence

import torch
from fairseq.data import encoders
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import FairseqMultiModel
from fairseq.sequence_scorer import SequenceScorer
from omegaconf import OmegaConf
from torch import Tensor

from ..compat.generation.line_translator import EncodedLine, Line, LineTranslator
from ..compat.user_errors import OptionError
from .inputs import Input, encode_words, one_line
from .results import Score
from .search import tokenizer_options
from .subword_models import DirectionCoder
from .teacher_forcing import forced_batches
from .translations import unpadded_attention

if TYPE_CHECKING:  # model.py imports this file
    from .model import Model

# options of tasks that say what a score is, not how to search
OPTIONS = ("source_average",)


def check_scoring(options: Mapping[str, Any]) -> None:
    """Raise ValueError for an option that scores do not have."""
    for name in options:
        if name not in OPTIONS:
            raise ValueError(f"score: {name}: no option of scores; allowed: {', '.join(OPTIONS)}")


class Scoring:
    """Scores of one direction.

    Args:
        model: of the direction.
        translator: encodes the sources.
    """

    def __init__(self, model: "Model", translator: LineTranslator):
        self.translator = translator
        options = OmegaConf.structured(GenerationConfig(score_reference=True))
        try:
            self.scorer = translator.task.build_generator(translator.models, options)
        except OptionError:  # a task that refuses --score-reference
            self.scorer = None
        is_scorer = isinstance(self.scorer, SequenceScorer)
        # models for several pairs that fairseq itself calls by their parts alone
        is_scorer &= not isinstance(translator.models[0], FairseqMultiModel)
        # targets of mBART end with the symbol of their language, which is that of no text
        if not is_scorer or self.scorer.eos != translator.target_dictionary.eos():
            raise ValueError(
                f"score: {type(translator.task).__name__} has no scorer of texts; "
                "allowed: translate"
            )
        self.coders = model.coders()
        if model.loaded.tokenizer and model.pair:
            target = model.pair.target
            options = tokenizer_options(model.loaded.tokenizer, target, target)
            tokenizer = encoders.build_tokenizer(options)
            self.coders = self.coders._replace(tokenizer=tokenizer)

    def of(self, inputs: Sequence[Input], targets: Sequence[str]) -> List[Score]:
        """Return the scores of the inputs with as many of the targets, in their order."""
        results: Dict[int, Score] = {}
        sources: List[EncodedLine] = []
        rows: List[Tensor] = []
        for number, (entry, target) in enumerate(zip(inputs, targets)):
            try:
                if entry.error is not None:
                    raise ValueError(entry.error)
                source = self.translator.source(Line(number, entry.line))
                rows.append(self.encode_target(target))
                sources.append(source)
            except ValueError as error:
                results[number] = Score(entry.original, target, [], -math.inf, [], None, str(error))
        for sample, places in forced_batches(self.translator, sources, rows) if sources else ():
            tokens = sample["net_input"]["src_tokens"]
            real = sample["target"].ne(self.translator.target_dictionary.pad())  # (B, T)
            lists = self.translator.task.inference_step(self.scorer, self.translator.models, sample)
            for row, (place, (hypothesis,)) in enumerate(zip(places, lists)):
                number = sources[place].line.number
                if torch.is_tensor(hypothesis["attention"]):
                    # the scorer has it as (T, S) with padding, searches have it as (S, T)
                    hypothesis["attention"] = hypothesis["attention"][real[row]].t()
                scored = self._score(hypothesis, rows[place], tokens[row])
                original = inputs[number].original
                results[number] = Score(original, targets[number], *scored)
        return [results[number] for number in range(len(inputs))]

    def encode_target(self, text: str) -> Tensor:
        """Return the tokens (T,) of a target; ValueError for one that is too long."""
        if not isinstance(text, str):
            raise TypeError(f"target: {type(text).__name__}; allowed: str")
        line = one_line(text)
        bpe = self.coders.bpe
        bpe = bpe.target if isinstance(bpe, DirectionCoder) else bpe
        for coder in (self.coders.tokenizer, bpe):
            line = line if coder is None else coder.encode(line)
        tokens = encode_words(self.translator.target_dictionary, line)
        limits = self.translator.max_positions
        longest = limits[1] if isinstance(limits, (tuple, list)) else limits
        if longest is not None and len(tokens) > longest:
            raise ValueError(
                f"{len(tokens)} tokens in the target, more than the model takes; allowed: {longest}"
            )
        return tokens

    def _score(self, hypothesis: Dict[str, Any], target: Tensor, source: Tensor) -> List[Any]:
        """Return the tokens, score, token scores and attention of a hypothesis of the scorer."""
        dictionary = self.translator.target_dictionary
        scores = hypothesis["positional_scores"][: len(target)].float() / math.log(2)
        return [
            [dictionary[index] for index in target.tolist()],
            float(hypothesis["score"]) / math.log(2),
            scores.tolist(),
            unpadded_attention(hypothesis["attention"], source, dictionary.pad()),
        ]
