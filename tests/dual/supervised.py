"""Dual supervised learning in tests: bigram language models, batches of both directions."""

import torch
from toy_sentences import END, PAD

from fairseq_ext.dual.supervised.criterion import DualSupervisedCriterion
from fairseq_ext.dual.supervised.marginals import Marginals
from properties import collate


class Bigrams(torch.nn.Module):
    """A language model that sees one word: scores of the next one from a table (V, V)."""

    def __init__(self, table):
        super().__init__()
        self.table = torch.nn.Parameter(torch.as_tensor(table))

    def forward(self, tokens):
        return self.table[tokens], {}

    def get_normalized_probs(self, output, log_probs, sample=None):
        return output[0].log_softmax(dim=-1)


class PaddingCounts(Marginals):
    """The broken twin: log P of padding is part of the sum."""

    def __call__(self, lang, prev_tokens, target, padding):
        return super().__call__(lang, prev_tokens, target, padding=-1)


def bigrams(tables, kind=Marginals):
    """{lang: (V, V)} -> the criterion's marginals."""
    return kind({lang: Bigrams(table) for lang, table in tables.items()})


def sample_of(sources, targets, numbers, pair):
    """A batch as fairseq's: ordered by source lengths, the longest first."""
    order = sorted(range(len(sources)), key=lambda row: -len(sources[row]))
    rows = [[torch.tensor(side[row]) for row in order] for side in (sources, targets)]
    target = collate(rows[1], PAD)
    prev = target.roll(1, dims=1)
    prev[prev.eq(END)] = PAD
    prev[:, 0] = END
    return {
        "id": torch.tensor([numbers[row] for row in order]),
        "net_input": {
            "src_tokens": collate(rows[0], PAD, left=True),
            "src_lengths": torch.tensor([len(row) for row in rows[0]]),
            "prev_output_tokens": prev,
            "pair": pair,
        },
        "target": target,
        "ntokens": sum(map(len, rows[1])),
    }


def couple(x, y, numbers=None):
    """{pair: batch} of the sentences in both directions."""
    numbers = numbers or list(range(len(x)))
    return {
        "xx-yy": sample_of(x, y, numbers, "xx-yy"),
        "yy-xx": sample_of(y, x, numbers, "yy-xx"),
    }


def criterion_of(task, weight, tables, smoothing=0.0, kind=Marginals):
    """The criterion with bigram models as marginals."""
    return DualSupervisedCriterion(task, weight, bigrams(tables, kind), smoothing)
