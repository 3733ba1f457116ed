"""The Duo classifier, the equations of arXiv 2003.01371, Sec. 3.1, in plain torch.

Two embeddings S and P of the words of a text, learnt vectors w_S and w_P, matrices W_O and W_y::

    a_P = softmax(w_S S^T) P                                                            (Eq. 1)
    a_S = softmax(w_P P^T) S                                                            (Eq. 2)
    e = [a_P ; a_S] W_O                                                                 (Eq. 3)
    P(label | text) = softmax(W_y e)

"linear" leaves the softmax over words out, as the paper's experiments do; a padded position then
has weight 0. There are no biases: w_S, w_P, W_O and W_y are the d1 + d2 + (d1 + d2) F + F L
parameters that Sec. 3.1.4 counts, while the embeddings are frozen.

The baselines give Eq. 1 - 3 one embedding in both places: S itself ("single", the diagonal of
Tables 2 - 4), the average of S and P with zeros where one is narrower, or [S ; P]
("concatenation"). "mean-mlp" is softmax(W_2 relu(W_1 m + b_1) + b_2) of the mean m of the words'
vectors, of [S ; P] where there are two.

Dimensions: B texts, T words, d1 and d2 widths of S and P, F width of e, L labels, V vocabulary.
Masks are bool, True = padding.
"""

from typing import Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...common.attention import masked_softmax
from ...common.dropout import RetainsDropout
from ...common.layers import linear
from ...common.sizes import check_rate

METHODS = ("duo", "single", "average", "concatenation", "mean-mlp")
ATTENTIONS = ("softmax", "linear")


def attention_weights(w: Tensor, keys: Tensor, padding: Tensor, kind: str) -> Tensor:
    """Return softmax(w K^T) of Eq. 2, or w K^T ("linear"): (B, T), zero at padding.

    w (d,), keys (B, T, d), padding (B, T).
    """
    scores = keys @ w  # (B, T)
    if kind != "softmax":
        return scores.masked_fill(padding, 0.0)
    return masked_softmax(scores, padding)


def duo_attention(w: Tensor, keys: Tensor, values: Tensor, padding: Tensor, kind: str) -> Tensor:
    """Return Attention(w, keys, values) of Eq. 1 and 2: softmax(w K^T) V, or (w K^T) V ("linear").

    w (d,), keys (B, T, d), values (B, T, d'), padding (B, T) -> (B, d').
    """
    # back to the precision of the values, for the product
    weights = attention_weights(w, keys, padding, kind).to(values)
    # sum over words of weight times vector
    return torch.einsum("bt,btd->bd", weights, values)


class DuoSentence(RetainsDropout, nn.Module):
    """Eq. 1 - 3: the embedding e of a text.

    Args:
        s_dim, p_dim: d1, d2.
        out_dim: F.
        kind: one of ATTENTIONS.
        dropout: on [a_P ; a_S].
    """

    def __init__(self, s_dim: int, p_dim: int, out_dim: int, kind: str, dropout: float):
        super().__init__()
        self.kind, self.dropout = kind, dropout
        # w . k has variance |k|^2 / d at the start, whatever the width
        self.w_s = nn.Parameter(torch.randn(s_dim) * s_dim**-0.5)
        self.w_p = nn.Parameter(torch.randn(p_dim) * p_dim**-0.5)
        self.w_o = linear(p_dim + s_dim, out_dim, bias=False)

    def forward(self, s: Tensor, p: Tensor, padding: Tensor) -> Tensor:
        """Return e (B, F) of S (B, T, d1), P (B, T, d2) and padding (B, T)."""
        a_p = duo_attention(self.w_s, s, p, padding, self.kind)  # (B, d2)
        a_s = duo_attention(self.w_p, p, s, padding, self.kind)  # (B, d1)
        both = self.drop(torch.cat([a_p, a_s], dim=1))
        return self.w_o(both)

    def weights(self, s: Tensor, p: Tensor, padding: Tensor) -> Tuple[Tensor, Tensor]:
        """Return the weights of the words (B, T), by the keys S and by the keys P."""
        by_s = attention_weights(self.w_s, s, padding, self.kind)
        return by_s, attention_weights(self.w_p, p, padding, self.kind)


def average(s: Tensor, p: Tensor) -> Tensor:
    """Return (S + P) / 2, the narrower filled up with zeros: (.., d1), (.., d2) -> (.., max)."""
    width = max(s.size(-1), p.size(-1))
    return (F.pad(s, (0, width - s.size(-1))) + F.pad(p, (0, width - p.size(-1)))) / 2


class Classifier(RetainsDropout, nn.Module):
    """Texts -> scores of labels, by Eq. 1 - 3 or by one of the baselines.

    Args:
        s, p: embeddings (V, d1) and (V, d2) of one padding index; ``p`` is None for "single" and
            may be for "mean-mlp".
        out_dim: F.
        labels: L.
        method: one of METHODS.
        attention: one of ATTENTIONS; not used by "mean-mlp".
        dropout: on [a_P ; a_S] and on e, or on the mean and the hidden layer.
    """

    def __init__(
        self,
        s: nn.Embedding,
        p: Optional[nn.Embedding],
        out_dim: int,
        labels: int,
        method: str = "duo",
        attention: str = "softmax",
        dropout: float = 0.0,
    ):
        super().__init__()
        check_rate("--dropout", dropout)
        for option, size in (("--ffn-embed-dim", out_dim), ("labels in the dictionary", labels)):
            if size < 1:
                raise ValueError(f"{option} {size}: must be at least 1")
        for option, value, allowed in (
            ("--meta-embedding", method, METHODS),
            ("--duo-attention", attention, ATTENTIONS),
        ):
            if value not in allowed:
                raise ValueError(f"{option} {value}: must be one of {', '.join(allowed)}")
        if (p is None) != (method == "single") and method != "mean-mlp":
            raise ValueError(f"--meta-embedding {method}: takes {'one' if p else 'two'} embeddings")
        assert s.padding_idx is not None
        self.s, self.p, self.method, self.dropout = s, p, method, dropout
        self.padding_index = s.padding_idx
        d1, d2 = s.embedding_dim, p.embedding_dim if p is not None else 0
        if method == "mean-mlp":
            self.inner, self.outer = linear(d1 + d2, out_dim), linear(out_dim, labels)
            return
        # the baselines put one embedding into both places of Eq. 1 - 3
        shared = {"single": d1, "average": max(d1, d2), "concatenation": d1 + d2}.get(method)
        self.sentence = DuoSentence(shared or d1, shared or d2, out_dim, attention, dropout)
        self.w_y = linear(out_dim, labels, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return scores (B, L) of tokens (B, T), of which every row has at least one word."""
        s, p, padding = self._embed(tokens)
        if self.method == "mean-mlp":
            words = torch.cat([s, p], dim=-1) if self.p is not None else s
            # the mean over words that are not padding
            real = (~padding).to(words)  # (B, T)
            # every text has a word: the task refuses empty ones
            mean = torch.einsum("bt,btd->bd", real, words) / real.sum(dim=1, keepdim=True)
            hidden = F.relu(self.inner(self.drop(mean)))
            return self.outer(self.drop(hidden))
        e = self.sentence(s, p, padding)  # (B, F)
        return self.w_y(self.drop(e))

    def attention(self, tokens: Tensor) -> Optional[Tuple[Tensor, Tensor]]:
        """Return the weights of the words (B, T) in S and in P; None for "mean-mlp"."""
        if self.method == "mean-mlp":
            return None
        return self.sentence.weights(*self._embed(tokens))

    def _embed(self, tokens: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        """Return S, P (B, T, .) as the method combines them, and the padding (B, T)."""
        s = self.s(tokens)  # (B, T, d1)
        p = self.p(tokens) if self.p is not None else s
        if self.method == "average":
            s = p = average(s, p)
        elif self.method == "concatenation":
            s = p = torch.cat([s, p], dim=-1)
        return s, p, tokens.eq(self.padding_index)
