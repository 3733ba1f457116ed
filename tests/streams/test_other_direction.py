"""The task of another direction shares dictionaries and leaves the first as it is."""

from types import SimpleNamespace

import pytest

from fairseq_ext.streams.language_pair import LanguagePair
from fairseq_ext.streams.other_direction import task_toward
from fairseq_ext.streams.subwords import SubwordsByLanguage
from fairseq_ext.streams.task import StreamsTask


@pytest.fixture
def task():
    """A task as it is once a checkpoint is loaded; its dictionaries are names."""
    entry = StreamsTask.__new__(StreamsTask)
    entry.cfg = SimpleNamespace()
    entry.pairs, entry.requested = ["xx-yy", "xx-zz", "yy-xx"], LanguagePair.parse("xx-yy")
    entry.dictionaries = {lang: f"words of {lang}" for lang in ("xx", "yy", "zz")}
    entry.src_dict, entry.tgt_dict = "words of xx", "words of yy"
    entry.pair, entry.subwords = "xx-yy", SubwordsByLanguage()
    entry.subwords.coders = {"xx": "a coder"}
    return entry


def test_it_has_its_own_direction(task):
    other = task_toward(task, "xx-zz")
    assert (other.pair, other.src_dict, other.tgt_dict) == ("xx-zz", "words of xx", "words of zz")
    assert str(other.requested) == "xx-zz" and other.subwords is not task.subwords
    assert other.dictionaries is task.dictionaries
    back = task_toward(other, "yy-xx")
    assert (back.pair, back.src_dict, back.tgt_dict) == ("yy-xx", "words of yy", "words of xx")


def test_the_first_stays(task):
    before = dict(vars(task))
    task_toward(task, "yy-xx")
    assert vars(task) == before


def test_directions_that_the_models_do_not_have(task):
    for pair in ("zz-xx", "xx-qq", "xx+yy-zz"):
        source, _, target = pair.partition("-")
        with pytest.raises(ValueError, match="the checkpoint translates xx-yy, xx-zz, yy-xx"):
            task_toward(task, pair)
    with pytest.raises(ValueError, match="'nonsense': not of the form SOURCE-TARGET"):
        task_toward(task, "nonsense")
