"""Perplexities of texts, each on its own, as ``fairseq-eval-lm --sample-break-mode eos`` has them.

Dimensions: B texts, T tokens with the end symbol.
"""

import math
from typing import TYPE_CHECKING, Any, Dict, List, Sequence

import torch
from fairseq import utils
from fairseq.data.data_utils import collate_tokens
from fairseq.data.encoders import build_tokenizer
from fairseq.sequence_scorer import SequenceScorer
from omegaconf import OmegaConf
from torch import Tensor

from ..compat.checkpoints.configurations import options_of_task
from .extras import twin_distances
from .inputs import Input, encode_words
from .results import Perplexity
from .search import check_count

if TYPE_CHECKING:  # model.py imports this file
    from .model import Model


def perplexity_of(score: float) -> float:
    """Return 2 to the power of minus a score; infinity where that is more than a float holds."""
    try:
        return 2.0**-score
    except OverflowError:  # of a model that diverged
        return math.inf


class Perplexities:
    """Scores of texts by a language model.

    Args:
        model: the language model.
        batch: texts that are scored together.
    """

    def __init__(self, model: "Model", batch: int):
        self.model, self.batch = model, check_count("batch", batch)
        self.dictionary = model.task.source_dictionary
        words = model.loaded.tokenizer  # of the training, whose options name the language
        tokenizer = build_tokenizer(OmegaConf.create(words)) if words else None
        self.coders = (tokenizer, model.loaded.coders.get(""))  # first words, then sub-words
        self.scorer = SequenceScorer(model.task.target_dictionary)
        # with --output-dictionary-size fewer are written than read
        self.written = len(model.task.target_dictionary)
        self.has_bos = bool(options_of_task(model.task).get("add_bos_token", False))
        limits = [member.max_positions() for member in model.loaded.models]
        longest = min((limit for limit in limits if limit is not None), default=math.inf)
        self.longest = longest - self.has_bos  # which stands in front of a text

    def of(self, inputs: Sequence[Input]) -> List[Perplexity]:
        """Return the perplexities of the inputs, in their order."""
        results: Dict[int, Perplexity] = {}
        rows: Dict[int, Tensor] = {}
        for number, entry in enumerate(inputs):
            rows[number] = self._encode(entry.line)
            if len(rows[number]) > self.longest:
                error = (
                    f"{len(rows[number])} tokens, more than the model takes; allowed: "
                    f"{self.longest}"
                )
                results[number] = Perplexity(entry.original, math.inf, [], -math.inf, [], error)
        order = sorted((n for n in rows if n not in results), key=lambda n: len(rows[n]))
        for start in range(0, len(order), self.batch):
            numbers = order[start : start + self.batch]
            sample = self._sample([rows[number] for number in numbers])
            lengths = [len(rows[number]) for number in numbers]
            extras = self._extras(sample, len(numbers))
            for number, of_tokens, more in zip(numbers, self._scores(sample, lengths), extras):
                mean = sum(of_tokens) / len(of_tokens)
                tokens = [self.dictionary[index] for index in self._target(rows[number]).tolist()]
                original = inputs[number].original
                results[number] = Perplexity(
                    original, perplexity_of(mean), tokens, mean, of_tokens, None, more
                )
        return [results[number] for number in range(len(inputs))]

    def _encode(self, text: str) -> Tensor:
        """Return the tokens of a text (T,)."""
        for coder in self.coders:
            text = text if coder is None else coder.encode(text)
        return encode_words(self.dictionary, text)

    def _target(self, tokens: Tensor) -> Tensor:
        """Return tokens (..) as they are scored: unknown where the model does not write them."""
        return tokens.masked_fill(tokens >= self.written, self.dictionary.unk())

    def _sample(self, rows: Sequence[Tensor]) -> Dict[str, Any]:
        """Return a batch of rows (T,), as the task makes it."""
        pad, eos = self.dictionary.pad(), self.dictionary.eos()
        if self.has_bos:
            first = rows[0].new_tensor([self.dictionary.bos()])
            rows = [torch.cat([first, row]) for row in rows]
        target = self._target(collate_tokens(list(rows), pad, eos))  # (B, T)
        # what is read before each token; fairseq begins with the symbol that ends texts
        skip = int(self.has_bos)
        read = [torch.cat([row[:skip], row.new_tensor([eos]), row[skip:-1]]) for row in rows]
        lengths = torch.tensor([len(row) for row in rows])
        sample = {
            "net_input": {"src_tokens": collate_tokens(read, pad, eos), "src_lengths": lengths},
            "target": target,
        }
        if self.model.device.type != "cpu":
            sample = utils.move_to_cuda(sample, self.model.device)
        return sample

    def _scores(self, sample: Dict[str, Any], lengths: Sequence[int]) -> List[List[float]]:
        """Return log2 P of the tokens of each row, which has so many."""
        scores = []
        for length, (hypothesis,) in zip(
            lengths, self.scorer.generate(self.model.loaded.models, sample)
        ):
            of_row = hypothesis["positional_scores"].float() / math.log(2)
            scores.append(of_row[self.has_bos :][:length].tolist())
        return scores

    def _extras(self, sample: Dict[str, Any], rows: int) -> List[Dict[str, Any]]:
        """Return what the system adds to each of the rows."""
        loaded = self.model.loaded
        if loaded.twin is None or len(loaded.models) > 1:
            return [{} for _ in range(rows)]
        distances = twin_distances(self.model, loaded.twin, sample)
        return [{"twin_distance": distance[self.has_bos :]} for distance in distances]
