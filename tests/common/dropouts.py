"""Which tensors a model drops, at which rate: a recorder in place of common/dropout.py."""

from typing import List, Tuple


def record(monkeypatch, *files) -> List[Tuple]:
    """(shape, rate, whether in training) of every call of ``dropout`` in these files from now on.

    Nothing is dropped. A list of what is expected notices a place that is left out, which two
    different outputs of a model with several places do not.
    """
    calls: List[Tuple] = []

    def recorder(values, rate, training=True):
        calls.append((tuple(values.shape), rate, training))
        return values

    for file in files:
        monkeypatch.setattr(file, "dropout", recorder)
    return calls
