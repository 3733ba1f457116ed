"""The task: which pairs it trains on, weights of the tasks, and options refused by name."""

import pytest

from fairseq_ext.routed.task import parse_gamma


def test_wrong_main_pairs_are_named(routed_task):
    for pairs in ("xx-yy,xx-zz", "xx-yy"):
        with pytest.raises(ValueError, match="--main-pair 'xx-qq': must be one of xx-yy"):
            routed_task(pairs=pairs, main="xx-qq")
    with pytest.raises(ValueError, match="--main-pair None: must be one of xx-yy, xx-zz"):
        routed_task(pairs="xx-yy,xx-zz", main=None)


def test_one_pair_is_a_single_task(routed_task):
    task, model = routed_task("--target-kinds", "zz=tags", pairs="xx-yy", main=None)
    assert task.schedule == "cycle" and str(task.cfg.schedule) == "main+aux"
    assert model.pairs == ["xx-yy"]


def test_weights_of_tasks():
    assert parse_gamma("a-c=0.5", ["a-b", "a-c"]) == {"a-b": 1.0, "a-c": 0.5}
    assert parse_gamma(None, ["a-b"]) == {"a-b": 1.0}


@pytest.mark.parametrize(
    "entry", ["a-d=1", "a-c=0", "a-c=-1", "a-c=x", "a-c", "a-c=inf", "a-c=1,a-c=2"]
)
def test_wrong_weights_are_named(entry):
    with pytest.raises(ValueError, match=f"^--task-gamma '{entry}': "):
        parse_gamma(entry, ["a-b", "a-c"])


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--task-gamma", "xx-qq=1"], "--task-gamma 'xx-qq=1': 'xx-qq' is none of xx-yy"),
        (["--task-gamma", "xx-yy=0"], "'0' must be a number greater than 0"),
        (["--task-patience", -1], "--task-patience -1: must be at least 0"),
        (["--task-patience", 1, "--pair-patience", 2], "not go together with --pair-patience"),
        (["--task-patience", 1, "--disable-validation"], "together with --disable-validation"),
        (["--target-kinds", "zz=song"], "--target-kinds 'zz=song': must be LANG=KIND"),
        (["--target-kinds", "nre=tags"], "'nre=tags': 'nre'; allowed: each of yy, zz once"),
        (["--target-kinds", "yy=tags,yy=trees"], "'yy=trees': 'yy'; allowed: each of yy, zz once"),
        (["--num-batch-buckets", 4], "--num-batch-buckets 4"),
    ],
)
def test_wrong_options_are_named(routed_task, flags, message):
    with pytest.raises(ValueError, match=message):
        routed_task(*flags)
