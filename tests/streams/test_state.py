"""What a resumed run remembers of the pairs."""

import math

from fairseq_ext.streams.state import RunState


def state():
    history = RunState()
    history.begins[3] = 40
    history.left["a-b"] = 3
    history.best["c-b"], history.waited["c-b"] = 2.5, 1
    history.best_is_bleu["c-b"] = True
    history.joins_in["b-a@mono"], history.begins_at["b-a@mono"] = 2, 30
    history.added_at["a-b@bt"] = 25
    history.more["patience"] = {"c-b": 4}
    return history


def test_a_pair_leaves_with_its_epoch():
    """A run that is resumed in the epoch before plans the rest of it with the pair."""
    assert state().has_left(2) == []
    assert state().has_left(3) == state().has_left(9) == ["a-b"]


PAIRS, JOIN_AT = ["a-b", "c-b", "d-b"], {"c-b": 50, "d-b": 60, "b-a@mono": 30}


def test_pairs_are_as_late_as_the_run_has_updates_to_go():
    """Where the epoch begins after 40; from epoch 5 on a-b takes no part."""
    history = RunState()
    history.left["a-b"] = 5
    late = {"c-b": 10, "d-b": 20, "b-a@mono": 0}
    assert history.late(PAIRS, JOIN_AT, 4, 40) == late
    late = {"c-b": 0, "d-b": 0, "b-a@mono": 0, "a-b": math.inf}
    assert history.late(PAIRS, JOIN_AT, 5, 70) == late


def test_the_next_pair_joins_at_once_where_no_other_is_left():
    """The others wait as before; a run whose pairs have all left has none to wait for."""
    history = RunState()
    history.left["a-b"] = 4
    late = {"c-b": 0, "d-b": 20, "b-a@mono": 0, "a-b": math.inf}
    assert history.late(PAIRS, JOIN_AT, 4, 40) == late
    history.left.update({"c-b": 5, "d-b": 5})
    assert history.late(PAIRS, JOIN_AT, 5, 40) == {**late, "c-b": math.inf, "d-b": math.inf}


def test_loading_gives_what_was_stored():
    resumed = RunState()
    resumed.load_state_dict(state().state_dict())
    assert vars(resumed) == vars(state())


def test_names_in_checkpoints_are_those_of_earlier_versions():
    """Attributes that were keys of ``more`` are still stored there; nothing that is empty is."""
    more = {
        "patience": {"c-b": 4},
        "best_is_bleu": {"c-b": True},
        "synthetic_epoch": {"b-a@mono": 2},
        "synthetic_begin": {"b-a@mono": 30},
        "synthetic_added": {"a-b@bt": 25},
    }
    stored = state().state_dict()
    assert stored["more"] == more
    assert sorted(stored) == ["begins", "best", "left", "more", "waited"]
    assert RunState().state_dict()["more"] == {}
    resumed = state()
    resumed.load_state_dict({"more": {"patience": {"c-b": 4}}})
    assert (resumed.best_is_bleu, resumed.joins_in, resumed.begins_at) == ({}, {}, {})


def test_what_is_stored_does_not_change_any_more():
    history = state()
    stored = history.state_dict()
    history.left["c-b"], history.joins_in["a-b@mono"] = 4, 9
    history.begins[4] = 60
    assert stored == state().state_dict()


def test_other_versions_may_have_more_or_fewer_names():
    resumed = RunState()
    resumed.load_state_dict({"left": {"a-b": 2}, "of a later version": {"a-b": 1}})
    assert resumed.left == {"a-b": 2} and resumed.begins == {1: 0}
    assert "of a later version" not in resumed.state_dict()


def test_epochs_are_counted_anew_and_nothing_else():
    """One stream has joined after 40 updates, another was to join with the next epoch."""
    history = state()
    history.joins_in, history.begins_at = {"b-a@mono": 3, "a-b@mono": 5}, {"b-a@mono": 40}
    history.count_epochs_anew(75)
    assert history.begins == {1: 75} and history.has_left(1) == ["a-b"]
    assert history.joins_in == {"b-a@mono": 0, "a-b@mono": 1}
    assert history.begins_at == {"b-a@mono": 40}
    assert history.best == state().best and history.waited == state().waited


def test_streams_are_added_when_the_run_goes_on_with_them():
    """Where updates are counted anew, as with --finetune-from-model, they are there at once."""
    history = {**state().state_dict(), "synthetic": ["a-b@bt"]}
    resumed = RunState()
    resumed.note_added(history, ["a-b@bt", "b-a@mono"], 40)
    assert resumed.added_at == {"a-b@bt": 25, "b-a@mono": 40}
    resumed.note_added(history, ["b-a@mono"], 40)
    assert resumed.added_at == {"b-a@mono": 40}
    resumed.note_added(history, ["a-b@bt", "b-a@mono"], 0)
    assert resumed.added_at == {}
    resumed.note_added({}, ["b-a@mono"], 40)  # of a version that did not note the streams
    assert resumed.added_at == {}


def test_updates_before_a_position():
    """Within an epoch and at its beginning; without this history those of the optimiser."""
    streams = {"begins": {1: 0, 3: 40}}
    within = {"epoch": 3, "streams": {**streams, "position": {"of_run": 52}}}
    assert RunState.updates_before(within, 7) == 52
    assert RunState.updates_before({"epoch": 3, "streams": streams}, 7) == 40
    assert RunState.updates_before({"epoch": 3}, 7) == 7
