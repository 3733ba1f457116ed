"""Dual inference: what the beam search found is ranked anew by both models (Sec. 5, Eq. 7).

Dimensions: B sentences, R rows (the candidates of all sentences), S positions of x, T positions of
the candidates y, both with the end symbol, V entries of the dictionary of x.
"""

from typing import Any, Dict, List, NamedTuple

import torch
from fairseq.data.data_utils import collate_tokens
from torch import Tensor, nn

LENGTH_NORMS = ("tokens", "none")
# more logits than these are computed in several parts: on CPUs so that they stay in the cache
# (measured: 0.8 of the time), on GPUs for the memory
LOGITS = {"cpu": 2**22, "cuda": 2**27}


def check_alpha(alpha: float) -> None:
    """Raise ValueError unless 0 <= alpha <= 1."""
    if not 0 <= alpha <= 1:
        raise ValueError(f"--dual-alpha {alpha}: allowed: 0 to 1")


class Terms(NamedTuple):
    """What Eq. 7 is made of, for one candidate y of x or for arrays of them; natural logarithms.

    log_y_x: log P(y|x; f). y_tokens: |y|, its end symbol included. log_x_y, x_tokens: the same of
    log P(x|y; g).
    """

    log_y_x: Any
    y_tokens: Any
    log_x_y: Any
    x_tokens: Any


def dual_score(terms: Terms, alpha: float, length_norm: str = "tokens"):
    """-(alpha * l_f(x, y) + (1 - alpha) * l_g(x, y)), Eq. 7; the best candidate has the highest.

    l_f = -log P(y|x; f) and l_g = -log P(x|y; g), by ``length_norm`` for each token ("tokens") or
    for the sentence ("none"); the paper does not say which.
    """
    f, g = terms.log_y_x, terms.log_x_y
    if length_norm == "tokens":
        f, g = f / terms.y_tokens, g / terms.x_tokens
    return alpha * f + (1 - alpha) * g


class Reverse:
    """log P(x|y; g) by one or several models of the other direction (the mean of probabilities).

    Args:
        models: encoder-decoder models that read y and write x.
        dictionary: of x; its padding and end symbols are those of y too.
        left_pad_source: on which side what they read is padded.
    """

    def __init__(self, models: List[nn.Module], dictionary, left_pad_source: bool):
        self.models, self.left_pad_source = models, left_pad_source
        self.pad, self.eos, self.words = dictionary.pad(), dictionary.eos(), len(dictionary)

    def __call__(self, candidates: List[Tensor], sources: List[Tensor]) -> Tensor:
        """Row by row: candidate y (T,), source x (S,), both with their ends -> (R,)."""
        longest = max(len(source) for source in sources)
        limit = LOGITS.get(candidates[0].device.type, LOGITS["cuda"])
        rows = max(1, limit // (longest * self.words))
        parts = [
            self._score(candidates[start : start + rows], sources[start : start + rows])
            for start in range(0, len(sources), rows)
        ]
        return torch.cat(parts)

    def _score(self, candidates: List[Tensor], sources: List[Tensor]) -> Tensor:
        read = collate_tokens(candidates, self.pad, left_pad=self.left_pad_source)  # (R, T)
        target = collate_tokens(sources, self.pad)  # (R, S)
        previous = collate_tokens(sources, self.pad, self.eos, move_eos_to_beginning=True)
        lengths = read.ne(self.pad).sum(dim=1)  # (R,)
        single = len(self.models) == 1
        total = 0
        for model in self.models:
            output = model.eval()(read, lengths, previous)
            found = model.get_normalized_probs(output, log_probs=single)  # (R, S, V)
            total = total + found.gather(2, target.unsqueeze(2)).squeeze(2).float()  # (R, S)
        logs = total if single else (total / len(self.models)).log()
        return logs.masked_fill(target.eq(self.pad), 0).sum(dim=1)


class DualInference:
    """A generator whose n-best lists are in the order of ``dual_score``; else like the one inside.

    A hypothesis has this score as its "score", its ``Terms`` as "terms" and its place in the list
    of the beam search as "rank". log P(y|x; f) is the sum of its "positional_scores".

    Args:
        generator: fairseq's, of the models x -> y.
        reverse: log P(x|y; g).
        alpha, length_norm: of ``dual_score``.
    """

    def __init__(self, generator, reverse: Reverse, alpha: float, length_norm: str):
        self.generator, self.reverse = generator, reverse
        self.alpha, self.length_norm = alpha, length_norm

    def __getattr__(self, name):
        return getattr(self.generator, name)

    @torch.no_grad()
    def generate(self, models, sample: Dict[str, Any], **options) -> List[List[Dict[str, Any]]]:
        """As fairseq's: for each sentence its hypotheses, the best first."""
        found = self.generator.generate(models, sample, **options)
        flat = [hypothesis for nbest in found for hypothesis in nbest]
        sources = self._sources(sample, [len(nbest) for nbest in found])
        terms = self._terms(flat, sources)
        scores = dual_score(terms, self.alpha, self.length_norm).cpu()  # (R,)
        # one copy from the device for all hypotheses
        columns = [column.tolist() for column in terms]
        for row, hypothesis in enumerate(flat):
            hypothesis["score"] = scores[row]
            hypothesis["terms"] = Terms(*(column[row] for column in columns))
        for nbest in found:
            for rank, hypothesis in enumerate(nbest):
                hypothesis["rank"] = rank
        return [sorted(nbest, key=lambda it: -float(it["score"])) for nbest in found]

    def _sources(self, sample, counts: List[int]) -> List[Tensor]:
        """The x of each row, without padding."""
        tokens = sample["net_input"]["src_tokens"]
        rows = [row[row.ne(self.reverse.pad)] for row in tokens]
        return [row for row, count in zip(rows, counts) for _ in range(count)]

    def _terms(self, flat: List[Dict[str, Any]], sources: List[Tensor]) -> Terms:
        """Of all rows: (R,) each."""
        candidates = [hypothesis["tokens"] for hypothesis in flat]
        log_x_y = self.reverse(candidates, sources)
        logs = [hypothesis["positional_scores"].float() for hypothesis in flat]
        log_y_x = nn.utils.rnn.pad_sequence(logs, batch_first=True).sum(dim=1)
        lengths = [log_x_y.new_tensor([len(one) for one in side]) for side in (candidates, sources)]
        return Terms(log_y_x.to(log_x_y), lengths[0], log_x_y, lengths[1])
