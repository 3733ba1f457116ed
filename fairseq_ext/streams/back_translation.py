"""Batches of synthetic pairs: the model translates lines of a language into another one.

Of a line y of language Y it makes x', by its direction Y -> X, and the update trains X -> Y on
(x', y) (Sennrich et al. 2016; inside of one model: Niu et al. 2018). Dimensions: B sentences, S
positions, T words.
"""

from functools import partial
from typing import Any, Callable, List, Mapping, NamedTuple, Tuple, TypeVar

import torch
from fairseq.data import Dictionary
from torch import Tensor

from ..common.beam_search import BeamSearchGenerator
from ..common.greedy_search import best_word, greedy_search
from ..common.hashed_random import key_of, uniform
from .config import StreamsConfig
from .dataset import Sample
from .language_pair import LanguagePair, pair_of, reverse_of
from .synthetic_noise import noised

BEAM = 5  # of --synthetic-sources noised_beam
Count = TypeVar("Count", int, Tensor)


class LengthLimit(NamedTuple):
    """The most words of a translation, as by --max-len-a and --max-len-b."""

    slope: int
    constant: int

    def of(self, words: Count) -> Count:
        """Return the limit of the translations of lines with so many words."""
        return self.slope * words + self.constant


LIMIT = LengthLimit(slope=2, constant=10)


class BackTranslation:
    """Makes the sources of synthetic pairs, without gradient and without dropout.

    What a batch becomes is a function of the parameters, the batch, the number of the update and
    the seed; of sampled words and noise the sentence's own id is the key, not its place.

    Args:
        cfg: the task's.
        dictionaries: {lang: dictionary}.
        prefix: returns the tokens in front of every source of a direction.
        limit: of the words of a source.
    """

    def __init__(
        self,
        cfg: StreamsConfig,
        dictionaries: Mapping[str, Dictionary],
        prefix: Callable[[str], List[int]],
        limit: LengthLimit = LIMIT,
    ):
        self.cfg, self.dictionaries, self.prefix, self.limit = cfg, dictionaries, prefix, limit

    def __call__(self, stream: str, sample: Sample, model: Any, update: int) -> Sample:
        """Return the batch of pairs (x', y); ``sample`` stays as it is.

        Args:
            stream: such as "de-en@mono".
            sample: lines as sources of the reverse direction, and as targets.
            model: what translates, with the direction of each pair.
            update: number of the update.
        """
        pair = LanguagePair.parse(pair_of(stream))
        key = key_of(self.cfg.seed, update, stream)
        was_training = model.training
        model.eval()
        with torch.no_grad():
            words, lengths = self._translate(pair, sample, model, key)
        model.train(was_training)
        tokens, lengths = self._sources(pair, words, lengths)
        more = {"src_tokens": tokens, "src_lengths": lengths, "pair": str(pair)}
        return {**sample, "net_input": {**sample["net_input"], **more}}

    def _translate(
        self, pair: LanguagePair, sample: Sample, model: Any, key: int
    ) -> Tuple[Tensor, Tensor]:
        """Return the sources' words (B, T), padded on the right, and their numbers (B,)."""
        reverse = reverse_of(str(pair))
        direction = model.direction(reverse)
        net_input = sample["net_input"]
        before = len(self.prefix(reverse)) + 1  # tokens that are no words: these and the end symbol
        most = self._most_words(pair)
        longest = self.limit.of(net_input["src_lengths"] - before).clamp(max=most)  # (B,)
        steps = min(self.limit.of(net_input["src_tokens"].size(1) - before), most)
        method = str(self.cfg.synthetic_sources)
        if method == "noised_beam":
            words, lengths = self._beam(direction, sample, pair.source, longest)
            dictionary = self.dictionaries[pair.source]
            pad, unk = dictionary.pad(), dictionary.unk()
            return noised(words, lengths, sample["id"], key, pad, unk)
        choose = best_word if method == "greedy" else partial(_drawn_word, sample["id"], key)
        return greedy_search(direction, net_input, longest, steps, choose)

    def _most_words(self, pair: LanguagePair) -> int:
        """Return the words of the longest source that the model can make and read."""
        # the decoder reads an end symbol and all words but the last, and predicts one more
        return min(
            self.cfg.max_source_positions - len(self._marks(pair)) - 1,
            self.cfg.max_target_positions - 1,
        )

    def _beam(
        self, direction: Any, sample: Sample, lang: str, longest: Tensor
    ) -> Tuple[Tensor, Tensor]:
        """Return the words (B, T) and their numbers (B,) of the best hypotheses of a beam.

        The search has one limit for the batch: what is longer than ``longest`` (B,) is cut, as
        greedy translations are.
        """
        limits = longest.tolist()
        search = BeamSearchGenerator(
            [direction],
            self.dictionaries[lang],
            beam_size=self.cfg.synthetic_beam or BEAM,
            max_len_a=0,
            max_len_b=max(limits),
            max_len=max(limits) + 1,
        )
        inputs = {name: sample["net_input"][name] for name in ("src_tokens", "src_lengths")}
        lists = search.generate(None, {"net_input": inputs})
        # without the end symbol
        best = [beam[0]["tokens"][:-1][:limit] for beam, limit in zip(lists, limits)]
        words = torch.nn.utils.rnn.pad_sequence(
            best, batch_first=True, padding_value=self.dictionaries[lang].pad()
        )
        lengths = [len(tokens) for tokens in best]
        return words, torch.tensor(lengths, device=words.device)

    def _marks(self, pair: LanguagePair) -> List[int]:
        """Return the tokens in front of every synthetic source of a direction."""
        tag = [self.dictionaries[pair.source].bos()] if self.cfg.synthetic_tag else []
        return [*self.prefix(str(pair)), *tag]

    def _sources(self, pair: LanguagePair, words: Tensor, lengths: Tensor) -> Tuple[Tensor, Tensor]:
        """Return sources (B, S) as the data set would pad them, and their lengths (B,)."""
        dictionary, marks = self.dictionaries[pair.source], self._marks(pair)
        width = words.size(1) + len(marks) + 1
        multiple = self.cfg.required_seq_len_multiple
        width = -(-width // multiple) * multiple
        tokens = words.new_full((words.size(0), width), dictionary.pad())
        for place, mark in enumerate(marks):
            tokens[:, place] = mark
        tokens[:, len(marks) : len(marks) + words.size(1)] = words
        ends = lengths + len(marks)  # (B,)
        tokens.scatter_(1, ends.unsqueeze(1), dictionary.eos())
        if self.cfg.left_pad_source:
            tokens = _moved_right(tokens, ends + 1, dictionary.pad())
        return tokens, ends + 1


def _moved_right(tokens: Tensor, lengths: Tensor, pad: int) -> Tensor:
    """Return tokens (B, S), padded on the right, with the padding on the left."""
    places = torch.arange(tokens.size(1), device=tokens.device)
    places = places - (tokens.size(1) - lengths.unsqueeze(1))  # (B, S)
    return tokens.gather(1, places.clamp(min=0)).masked_fill(places < 0, pad)


def _drawn_word(ids: Tensor, key: int, logits: Tensor, sentences: Tensor, step: int) -> Tensor:
    """Return words (R,) drawn by their probabilities: a function of sentence, step and key.

    Args:
        ids: of all sentences of the batch (B,).
        key: the number that stands for seed, update and stream.
        logits: (R, V).
        sentences: the places of the rows in the batch (R,).
        step: the number of words before.
    """
    sums = logits.float().softmax(dim=1).cumsum(dim=1)  # (R, V)
    draw = uniform(ids[sentences], torch.full((1,), step, device=ids.device), key)  # (R, 1)
    # of the sum, which rounding makes another number than one; the first word whose sum is above
    # the draw is no word of probability 0, which adds nothing
    word = torch.searchsorted(sums, draw * sums[:, -1:], right=True).squeeze(1)
    return word.clamp(max=logits.size(1) - 1)  # where rounding makes the product the whole sum
