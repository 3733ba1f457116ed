"""Pairs that stop improving leave the run, and a resumed run knows it."""

import math
import shutil
from argparse import Namespace

import pytest
import torch
from common import inprocess
from fairseq import checkpoint_utils
from fairseq.logging.meters import AverageMeter, MetersDict
from streams.support import in_batches, pairs_of, streams

from fairseq_ext.streams.iterator import StreamsIterator
from fairseq_ext.streams.patience import PairPatience, check_patience, is_stalled
from fairseq_ext.streams.plan import TrainingPlan
from fairseq_ext.streams.state import RunState

FLAGS = ["-s", "xx", "-t", "yy", "--schedule", "cycle", "--batch-size", 64]
FLAGS += ["--validate-interval", 1, "--pair-patience", 1]


def stalls(scores, maximise, patience):
    state = RunState()
    return [is_stalled(state, "a-b", score, maximise, patience) for score in scores]


def test_a_pair_stalls_after_so_many_validations_without_a_better_score():
    falling = [5, 4, 4, 4.5, 3, 3, 3, 3]
    assert stalls(falling, False, 2) == [0, 0, 0, 1, 0, 0, 1, 0]
    assert stalls([-score for score in falling], True, 2) == [0, 0, 0, 1, 0, 0, 1, 0]
    assert stalls(falling, False, 1) == [0, 0, 1, 1, 0, 1, 1, 1]
    assert stalls(falling, False, 4) == [0] * 8
    assert stalls([math.nan, 2, math.nan, 3], False, 2) == [0, 0, 0, 1]


@pytest.mark.parametrize(
    "arguments, message",
    [((-1, False), "--pair-patience -1: must be at least 0"), ((2, True), "--disable-validation")],
)
def test_impossible_patience_names_the_option(arguments, message):
    with pytest.raises(ValueError, match=message):
        check_patience(*arguments)
    check_patience(0, True), check_patience(2, False)


@pytest.mark.parametrize("eval_bleu", [True, False])
def test_bleu_is_not_compared_with_a_loss(eval_bleu):
    """A run that is resumed with --eval-bleu, or without it, has no best score of that kind."""
    state, agg = RunState(), MetersDict()
    agg.add_meter("a-b_loss", AverageMeter(), priority=1)
    for is_bleu, loss, bleu in ((not eval_bleu, 5.0, 3.0), (eval_bleu, 4.0, 2.0)):
        agg["a-b_loss"].reset()
        agg["a-b_loss"].update(loss)
        cfg = Namespace(eval_bleu=is_bleu, pair_patience=1)
        # as in the checkpoint between the two
        resumed = RunState()
        resumed.load_state_dict(state.state_dict())
        state, patience = resumed, PairPatience(cfg, ["a-b"], {}, resumed)
        patience.judge(1, {"num_updates": 9, "a-b_bleu": bleu}, agg)
    assert state.left == {} and state.best == {"a-b": 2.0 if eval_bleu else 4.0}


def judged(pairs, updates, state, **joins):
    """The pairs whose scores a validation in epoch 2, after so many updates, has noted."""
    agg = MetersDict()
    for pair in pairs:
        agg.add_meter(f"{pair}_loss", AverageMeter(), priority=1)
        agg[f"{pair}_loss"].update(1.0)
    joins = {name.replace("_", "-"): number for name, number in joins.items()}
    cfg = Namespace(eval_bleu=False, pair_patience=1)
    PairPatience(cfg, pairs, joins, state).judge(2, {"num_updates": updates}, agg)
    return sorted(state.best)


def test_a_pair_counts_from_its_first_update_on():
    for left, updates, expected in (
        ({}, 15, ["a-b"]),
        ({}, 16, ["a-b", "c-d"]),
        # it joins when it alone is left, long before its time
        ({"a-b": 2}, 11, ["c-d"]),
    ):
        state = RunState()
        state.load_state_dict({"begins": {1: 0, 2: 10}, "left": left})
        assert judged(["a-b", "c-d"], updates, state, c_d=15) == expected


def planned(dataset, **left):
    plan = TrainingPlan(dataset, in_batches(dataset, 3), "cycle", 1, lambda epoch: 1)
    plan.state.left.update({name.replace("_", "-"): epoch for name, epoch in left.items()})
    return plan


def test_a_pair_that_left_is_in_no_later_epoch():
    dataset = streams(x_y=25, z_y=11)
    plan = planned(dataset, x_y=3)
    pairs = [{pairs_of(dataset, batch) for batch in plan(epoch)} for epoch in (1, 2, 3, 4)]
    assert pairs == [{("x-y",), ("z-y",)}] * 2 + [{("z-y",)}] * 2
    assert plan(1) == planned(dataset)(1)
    assert [plan.begin(epoch) for epoch in (1, 2, 3, 4)] == [0, 18, 36, 40]


def test_when_all_have_left_the_run_is_over():
    dataset = streams(x_y=25, z_y=11)
    iterator = StreamsIterator(dataset, planned(dataset, x_y=2, z_y=3), seed=1)
    assert [iterator.is_run_over(epoch) for epoch in (1, 2, 3, 4)] == [False, False, True, True]
    for _ in iterator.next_epoch_itr():
        pass
    assert iterator.next_epoch_idx == 2


def test_an_epoch_after_the_end_is_refused():
    """A loop of one's own that does not ask is_run_over."""
    dataset = streams(x_y=25, z_y=11)
    with pytest.raises(RuntimeError, match=r"epoch 3 has no batches: all pairs have left"):
        planned(dataset, x_y=2, z_y=3)(3)


def test_a_pair_still_to_come_joins_when_it_alone_is_left():
    dataset = streams(x_y=25, z_y=11)
    plan = TrainingPlan(
        dataset, in_batches(dataset, 3), "cycle", 1, lambda epoch: 1, join_at={"z-y": 1000}
    )
    plan.state.left["x-y"] = 2
    assert set(plan.slots(1)) == {("x-y",)} and set(plan.slots(2)) == {("z-y",)}


class Script:
    """Scores in the place of losses: xx-yy gets worse from the 2nd validation, yy-xx from the 4th.

    Epochs of 8 updates while both train, of 4 afterwards: xx-yy leaves with the 3rd epoch, yy-xx
    with the 5th, which is not run: 24 updates.
    """

    best_at = {"xx-yy": 8, "yy-xx": 20}

    def __init__(self):
        self.asked = []

    def __call__(self, patience, pair, stats, agg):
        updates = stats["num_updates"]
        self.asked.append((pair, updates))
        assert agg[f"{pair}_loss"].avg > 0
        return float(abs(updates - self.best_at[pair]))


@pytest.fixture
def script(monkeypatch):
    script = Script()
    monkeypatch.setattr(PairPatience, "score", lambda *arguments: script(*arguments))
    return script


def ends(folder):
    checkpoint = checkpoint_utils.torch.load(folder / "checkpoint_last.pt", weights_only=True)
    position = checkpoint["extra_state"]["train_iterator"]
    return checkpoint["optimizer_history"][-1]["num_updates"], position, checkpoint["model"]


def test_the_run_ends_when_all_pairs_have_left(toy_corpus, train_small, tmp_path, script):
    subsets = ["--valid-subset", "valid,test"]
    train_small(toy_corpus.two, tmp_path, 90, *FLAGS, *subsets)
    updates, position, _ = ends(tmp_path)
    assert updates == 24 and position["epoch"] == 5
    assert position["streams"]["left"] == {"xx-yy": 3, "yy-xx": 5}
    assert position["streams"]["begins"] == {1: 0, 5: 24}
    both = [(pair, updates) for updates in (8, 16) for pair in ("xx-yy", "yy-xx")]
    assert script.asked == [*both, ("yy-xx", 20), ("yy-xx", 24)], "the first subset alone counts"


@pytest.mark.parametrize("stop", ["checkpoint1.pt", "checkpoint2.pt", "checkpoint_3_18.pt"])
def test_a_resumed_run_remembers(stop, toy_corpus, train_small, tmp_path, script):
    """Stopped before and after a pair left, in mid-epoch too: the same end to the last bit."""
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    flags = [*FLAGS, "--dropout", 0.2]
    train_small(toy_corpus.two, whole, 90, *flags, "--save-interval-updates", 9)
    resumed.mkdir()
    shutil.copy(whole / stop, resumed / "checkpoint_last.pt")
    train_small(toy_corpus.two, resumed, 90, *flags, "--save-interval-updates", 9)
    (updates, position, model), again = ends(whole), ends(resumed)
    assert again[:2] == (updates, position) and updates < 40
    assert all(torch.equal(model[name], again[2][name]) for name in model)


def test_a_finished_run_stays_finished(toy_corpus, train_small, tmp_path, script):
    train_small(toy_corpus.two, tmp_path, 90, *FLAGS)
    asked = list(script.asked)
    with inprocess.logged_lines() as lines:
        train_small(toy_corpus.two, tmp_path, 90, *FLAGS)
    assert ends(tmp_path)[0] == 24 and script.asked == asked
    assert lines[-1].startswith("done training")
    assert not any(line.startswith("begin training epoch") for line in lines)


@pytest.mark.parametrize(
    "resets, left, waited",
    [("--reset-dataloader", {"xx-yy": 1}, 2), ("--reset-meters", {"xx-yy": 3}, 0)]
    + [("--reset-dataloader --reset-meters", {}, 0)],
)
def test_what_options_of_resuming_forget(
    resets, left, waited, toy_corpus, train_small, tmp_path, script
):
    """With new data a pair that has left stays away; with new meters no score before counts."""
    flags = [*FLAGS[:-1], 9, "--no-epoch-checkpoints"]
    train_small(toy_corpus.two, tmp_path, 16, *flags)
    path = tmp_path / "left.pt"
    stored = checkpoint_utils.torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)
    history = stored["extra_state"]["train_iterator"]["streams"]
    history.update(left={"xx-yy": 3}, best={"yy-xx": -1.0}, waited={"yy-xx": 1})
    torch.save(stored, path)
    options = ["--restore-file", path, *resets.split()]
    records = train_small(toy_corpus.two, tmp_path, 20, *flags, *options)
    assert any("xx-yy_loss" in record for record in records) == (not left)
    state = ends(tmp_path)[1]["streams"]
    assert state["left"] == left and state["waited"]["yy-xx"] == waited


def test_pairs_join_by_the_updates_of_the_run(toy_corpus, train_small, tmp_path, script):
    """Also where the optimiser counts anew; the count outlives --reset-dataloader afterwards."""
    flags = [*FLAGS[:-1], 9, "--join-at", "yy-xx=12"]
    train_small(toy_corpus.two, tmp_path / "whole", 13, *flags)
    assert ends(tmp_path / "whole")[1]["streams"]["begins"][4] == 12
    script.asked.clear()
    first = ["--restore-file", tmp_path / "whole" / "checkpoint2.pt", "--reset-optimizer"]
    train_small(toy_corpus.two, tmp_path / "anew", 13, *flags, *first)
    # 8 updates before
    assert script.asked[:3] == [("xx-yy", 4), ("xx-yy", 12), ("yy-xx", 12)]
    last = tmp_path / "anew" / "checkpoint_last.pt"
    again = ["--restore-file", last, "--reset-dataloader"]
    train_small(toy_corpus.two, tmp_path / "again", 14, *flags, *again)
    assert ends(tmp_path / "again")[1]["streams"]["begins"][1] == 21


def test_without_a_better_loss_the_run_ends(toy_corpus, train_small, tmp_path):
    """The real score: nothing is learnt with a learning rate of 0."""
    records = train_small(toy_corpus.two, tmp_path, 90, *FLAGS, "--lr", 0)
    assert len([record for record in records if "valid_loss" in record]) == 2
    assert ends(tmp_path)[0] == 16


def test_bleu_is_the_score_where_it_is_computed(toy_corpus, train_small, tmp_path):
    flags = ["--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_b": 5}']
    records = train_small(toy_corpus.two, tmp_path, 8, *FLAGS, *flags)
    (record,) = [record for record in records if "valid_loss" in record]
    best = ends(tmp_path)[1]["streams"]["best"]
    assert best == {pair: record[f"valid_{pair}_bleu"] for pair in ("xx-yy", "yy-xx")}


def test_a_system_may_do_something_else(toy_corpus, train_small, tmp_path, script, monkeypatch):
    """E.g. halve the pair's weight, which the checkpoint keeps."""

    def halve(patience, pair, epoch):
        weights = patience.state.more.setdefault("weights", {})
        weights[pair] = weights.get(pair, 1.0) / 2

    monkeypatch.setattr(PairPatience, "pair_stalled", halve)
    train_small(toy_corpus.two, tmp_path, 24, *FLAGS)
    streams_state = ends(tmp_path)[1]["streams"]
    assert streams_state["left"] == {}
    # validations at 8, 16, 24: distances 0, 8, 16 and 12, 4, 4
    assert streams_state["more"]["weights"] == {"xx-yy": 0.25, "yy-xx": 0.5}
