"""Dual inference: a reranker of n-best lists by the models of both directions (Sec. 5, Eq. 7).

    y* = argmin_y  alpha * l_f(x, y) + (1 - alpha) * l_g(x, y)                            (Eq. 7)

over the candidates y of the beam search, with the losses of both directions::

    l_f(x, y) = -log P(y|x; f), which the beam search has computed
    l_g(x, y) = -log P(x|y; g), teacher-forced by the reverse models

With --match-source-len l_f is teacher-forced too: for the search, which knows the length, an end
symbol has probability 1.

Dimensions: B sentences, R rows (the candidates of all sentences), S positions of x, T positions of
the candidates y, both with the end symbol, V entries of the dictionary of what is scored.
"""

import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import torch
from fairseq.data import Dictionary
from fairseq.data.data_utils import collate_tokens
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor, nn

from ..common.ensembles import mean_log_probs

LENGTH_NORMS = ("tokens", "none")
# more logits than these are computed in several parts: on CPUs so that they stay in the cache
# (measured: 0.8 of the time), on GPUs for the memory
MOST_LOGITS = {"cpu": 2**22, "cuda": 2**27}
# fairseq's generators return one such dict per candidate
Hypothesis = Dict[str, Any]


def check_alpha(alpha: float) -> None:
    """Raise ValueError unless 0 <= alpha <= 1."""
    # Python callers may give anything
    if not isinstance(alpha, (int, float)) or not 0 <= alpha <= 1:
        raise ValueError(f"--dual-alpha {alpha!r}: allowed: 0 to 1")


class Terms(NamedTuple):
    """The terms of Eq. 7 of a candidate y of x, as numbers, or of R candidates, as tensors (R,).

    log_y_x: log P(y|x; f), natural logarithm. y_tokens: |y|, its end symbol included. log_x_y,
    x_tokens: log P(x|y; g) and |x|.
    """

    log_y_x: Any
    y_tokens: Any
    log_x_y: Any
    x_tokens: Any


def dual_score(terms: Terms, alpha: float, length_norm: str = "tokens") -> Any:
    """Return -(alpha * l_f + (1 - alpha) * l_g) of Eq. 7; the best candidate has the highest.

    ``length_norm``: both losses are per token ("tokens") or per sentence ("none"). The paper does
    not say which. The result is a number or (R,), as the terms are.
    """
    log_f, log_g = terms.log_y_x, terms.log_x_y
    if length_norm == "tokens":
        log_f, log_g = log_f / terms.y_tokens, log_g / terms.x_tokens
    return alpha * log_f + (1 - alpha) * log_g


class PairScorer:
    """Scores log P(written|read) of pairs of sentences (mean of the models' probabilities).

    For log P(x|y; g) the models are those of the reverse direction: they read y and write x.

    Args:
        models: encoder-decoder models.
        dictionary: of what they write; its padding and end symbols are those of what they read too.
        left_pad_source: True if the models read sentences padded on the left.
    """

    def __init__(
        self, models: Sequence[BaseFairseqModel], dictionary: Dictionary, left_pad_source: bool
    ):
        self.models, self.left_pad_source = models, left_pad_source
        self.pad, self.eos, self.vocab_size = dictionary.pad(), dictionary.eos(), len(dictionary)

    def __call__(self, read: List[Tensor], written: List[Tensor]) -> Tensor:
        """Return log P(written|read) (R,) of each row's sentences, (T,) and (S,) for P(x|y).

        All sentences end with the end symbol.
        """
        longest = max(len(sentence) for sentence in written)
        limit = MOST_LOGITS.get(read[0].device.type, MOST_LOGITS["cuda"])
        rows = max(1, limit // (longest * self.vocab_size))
        parts = [
            self._score(read[start : start + rows], written[start : start + rows])
            for start in range(0, len(written), rows)
        ]
        return torch.cat(parts)

    def _score(self, read_rows: List[Tensor], written_rows: List[Tensor]) -> Tensor:
        """Return log P (R,) of so few rows that their logits are computed at once."""
        read = collate_tokens(read_rows, self.pad, left_pad=self.left_pad_source)  # (R, T)
        target = collate_tokens(written_rows, self.pad)  # (R, S)
        previous = collate_tokens(written_rows, self.pad, self.eos, move_eos_to_beginning=True)
        lengths = read.ne(self.pad).sum(dim=1)  # (R,)
        # fairseq's lstm takes the longest sentences first
        lengths, order = lengths.sort(descending=True, stable=True)
        read, previous, target = read[order], previous[order], target[order]

        def of_target(model: BaseFairseqModel) -> Tensor:
            """Return log P of the target's tokens (R, S) by one model."""
            output = model(read, lengths, previous)
            log_probs = model.get_normalized_probs(output, log_probs=True)  # (R, S, V)
            return log_probs.gather(2, target.unsqueeze(2)).squeeze(2).float()  # (R, S)

        mean = mean_log_probs(self.models, of_target)
        return mean.masked_fill(target.eq(self.pad), 0).sum(dim=1)[order.argsort()]


class DualReranker:
    """A generator whose n-best lists are ordered by ``dual_score``.

    It has the attributes of the generator inside. A hypothesis has ``dual_score`` as its "score",
    its ``Terms`` as "terms" and its place in the list of the beam search as "rank".
    log P(y|x; f) is the sum of its "positional_scores". What the search has ruled out by a score of
    -inf, as --match-source-len does, keeps this score.

    Args:
        generator: fairseq's, of the models x -> y.
        reverse: scores log P(x|y; g).
        alpha, length_norm: of ``dual_score``.
        forward: scores log P(y|x; f) where the search has not counted the end symbol.
        longest_source: |x| that ``reverse`` can score.
    """

    def __init__(
        self,
        generator: SequenceGenerator,
        reverse: PairScorer,
        alpha: float,
        length_norm: str,
        forward: Optional[PairScorer] = None,
        longest_source: float = math.inf,
    ):
        self.generator, self.reverse, self.forward = generator, reverse, forward
        self.alpha, self.length_norm, self.longest_source = alpha, length_norm, longest_source

    def __getattr__(self, name: str) -> Any:
        if name == "generator":  # of a copy that has no attributes yet
            raise AttributeError(name)
        # fairseq's commands also read attributes such as symbols_to_strip_from_output
        return getattr(self.generator, name)

    @torch.no_grad()
    def generate(
        self, models: Sequence[BaseFairseqModel], sample: Dict[str, Any], **options: Any
    ) -> List[List[Hypothesis]]:
        """Return the hypotheses of each sentence, the best first, as fairseq's generators do.

        ValueError for a source that is longer than the models of the reverse direction write.
        """
        longest = int(sample["net_input"]["src_tokens"].ne(self.reverse.pad).sum(dim=1).max())
        if longest > self.longest_source:
            raise ValueError(
                f"--dual-alpha {self.alpha}: a source of {longest} tokens, which the models of the "
                f"reverse direction do not write; allowed: --max-source-positions "
                f"{self.longest_source} with --skip-invalid-size-inputs-valid-test"
            )
        nbest_lists = self.generator.generate(models, sample, **options)
        # all candidates of the batch are scored together
        flat = [hypothesis for nbest in nbest_lists for hypothesis in nbest]
        sources = self._sources(sample, [len(nbest) for nbest in nbest_lists])
        terms = self._terms(flat, sources)
        scores = dual_score(terms, self.alpha, self.length_norm)  # (R,)
        # --match-source-len rules translations out by their score alone
        of_search = torch.stack([torch.as_tensor(hypothesis["score"]) for hypothesis in flat])
        scores = scores.masked_fill(of_search.to(scores.device) == -torch.inf, -torch.inf).cpu()
        # one copy from the device for all hypotheses
        columns = [column.tolist() for column in terms]
        for row, hypothesis in enumerate(flat):
            hypothesis["score"] = scores[row]
            hypothesis["terms"] = Terms(*(column[row] for column in columns))
        for nbest in nbest_lists:
            for rank, hypothesis in enumerate(nbest):
                hypothesis["rank"] = rank
        # the sort is stable: equal scores stay in the order of the beam search
        return [sorted(nbest, key=_descending_score) for nbest in nbest_lists]

    def _sources(self, sample: Dict[str, Any], counts: List[int]) -> List[Tensor]:
        """Return the sentence x of each of the R rows, (S,) without padding.

        counts: candidates of each of the B sentences; their sum is R.
        """
        tokens = sample["net_input"]["src_tokens"]  # (B, S)
        sentences = [row[row.ne(self.reverse.pad)] for row in tokens]
        return [x for x, count in zip(sentences, counts) for _ in range(count)]

    def _terms(self, flat: List[Hypothesis], sources: List[Tensor]) -> Terms:
        """Return the terms of all rows, (R,) each."""
        candidates = [hypothesis["tokens"] for hypothesis in flat]
        log_x_y = self.reverse(candidates, sources)  # (R,)
        if self.forward is None:
            token_scores = [hypothesis["positional_scores"].float() for hypothesis in flat]
            log_y_x = nn.utils.rnn.pad_sequence(token_scores, batch_first=True).sum(dim=1)  # (R,)
        else:
            log_y_x = self.forward(sources, candidates)  # (R,)
        y_tokens, x_tokens = (_lengths(side, log_x_y) for side in (candidates, sources))
        return Terms(log_y_x.to(log_x_y), y_tokens, log_x_y, x_tokens)


def _lengths(sentences: List[Tensor], like: Tensor) -> Tensor:
    """Return the lengths (R,), of the type and on the device of ``like``."""
    return like.new_tensor([len(sentence) for sentence in sentences])


def _descending_score(hypothesis: Hypothesis) -> float:
    """Return the key that sorts hypotheses from the best to the worst."""
    return -float(hypothesis["score"])
