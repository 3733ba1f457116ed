"""Experiments: files of literal commands, and what runs them.

definition.py  reads a file: variables, data, systems, comparisons
execution.py   runs the commands of one system and seed, each once
results.py     collects the scores, tests differences, writes them as data
scores.py      a score of a run and the sums that its significance rests on
"""

from fairseq_ext.tools import UsageError

__all__ = ["UsageError"]
