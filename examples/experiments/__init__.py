"""Experiments: files of literal commands, and what runs them.

definition.py   reads a file: variables, data, systems, comparisons
schema.py       says which keys and values a file may have
preparation.py  makes the data
execution.py    runs the commands of one system and seed, each once
results.py      collects the scores, tests differences, writes them as data
scores.py       a score of a run and the sums that its significance rests on
files.py        JSON files, and folders that one process holds
"""

from fairseq_ext.tools import UsageError

__all__ = ["UsageError"]
