"""Experiments: files of literal commands, and what runs them.

definition.py     reads a file: variables, data, systems, comparisons
schema.py         says which keys and values a file may have
preparation.py    makes the data
execution.py      runs the commands of one system and seed, each once
surroundings.py   notes when, where and with which packages a run was trained
scoring_checks.py tries metrics and tokenisers before a system is trained
metrics.py        what is measured of hypotheses and references, line by line
logs.py           what the logs of a run tell: updates, time, curves, likelihoods
parameters.py     how many parameters the checkpoints of a run have
scores.py         a score of a run and the sums that its significance rests on
trainings.py      says which trainings a system is made of
results.py        collects the scores, tests differences, reports
stored_values.py  writes the values as data, for the manual too
files.py          JSON files, and folders that one process holds
"""

from fairseq_ext.tools import UsageError

__all__ = ["UsageError"]
