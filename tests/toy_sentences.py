"""Sentences as lists of tokens, which the NumPy references read, and as rows of a batch.

Legend: B sentences, S and T positions, V words.
"""

import torch

from properties import collate
from reference.losses import negative_log_likelihood

PAD, END = 1, 2


def random_sentence(rng, length, words):
    """``length`` tokens, the end symbol last."""
    return [*(int(word) for word in rng.integers(4, words, size=length - 1)), END]


def shifted(sentence):
    """The decoder's inputs as fairseq makes them: the end symbol first."""
    return [END, *sentence[:-1]]


def rows(sentences, left=False):
    """Lists of tokens -> (B, S)."""
    return collate([torch.tensor(sentence) for sentence in sentences], PAD, left=left)


def previous(sentences):
    """The decoder's inputs (B, T) of several sentences."""
    return rows([shifted(sentence) for sentence in sentences])


def sum_of_nll(logits, sentences):
    """Minus the log-likelihood of sentences by logits (B, T, V), summed."""
    log_probs, target = logits.log_softmax(dim=-1), rows(sentences)
    picked = log_probs.gather(2, target.unsqueeze(2)).squeeze(2)
    return -(picked * target.ne(PAD)).sum()


class WithTargets:
    """The loss of ``targets`` in both forms; a subclass has ``reference_logits(number)`` (T, V)."""

    def loss(self, logits):
        """Minus the log-likelihood of the batch by logits (B, T, V)."""
        return sum_of_nll(logits, self.targets)

    def reference_loss(self):
        """What ``loss`` should be."""
        return sum(
            negative_log_likelihood(self.reference_logits(number), target, PAD)[0]
            for number, target in enumerate(self.targets)
        )
