"""The task of another direction of models that are loaded already."""

import copy

from .language_pair import LanguagePair
from .subwords import SubwordsByLanguage
from .task import StreamsTask


def task_toward(task: StreamsTask, pair: str) -> StreamsTask:
    """Return the task with which the same models translate ``pair``; ``task`` stays as it is.

    Dictionaries are shared. The new task has no sub-word models. ValueError, with those that there
    are, for a direction that the models do not translate.
    """
    other = copy.copy(task)
    other.requested = LanguagePair.parse(pair)
    other.choose_direction()
    source, target = other.requested.sources[0], other.requested.target
    other.src_dict, other.tgt_dict = other.dictionaries[source], other.dictionaries[target]
    other.subwords = SubwordsByLanguage()
    return other
