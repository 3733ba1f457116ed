"""Which tensors a model drops, at which rate: a recorder in place of common/dropout.py."""

from typing import List, Tuple

from fairseq_ext.common import dropout


def record(monkeypatch) -> List[Tuple]:
    """(shape, rate, whether in training) of every call of ``dropout`` from now on.

    Nothing is dropped. A list of what is expected notices a place that is left out, which two
    different outputs of a model with several places do not.
    """
    calls: List[Tuple] = []

    def recorder(values, rate, training=True):
        calls.append((tuple(values.shape), rate, training))
        return values

    monkeypatch.setattr(dropout, "dropout", recorder)
    return calls
