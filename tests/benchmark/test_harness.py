"""Turns, medians, ratios, equal widths; a system in its own process."""

import contextlib
import os

import pytest
from speed import families, harness
from speed.harness import compare, equal_width, in_turns, label, measure_family, summary
from speed.report import family_tables
from speed.worker import Worker

from fairseq_ext.tools import UsageError


def test_members_take_turns_and_the_first_turn_warms_up():
    asked, times = [], {"a": iter([9.0, 1.0, 2.0, 6.0]), "b": iter([9.0, 4.0, 4.0, 4.0])}

    def measure(member):
        asked.append(member)
        return next(times[member]), 2

    said = []
    turns = in_turns({"a": "a", "b": "b"}, measure, 3, said.append)
    assert asked == ["a", "b"] * 4
    assert turns == {"a": [0.5, 1.0, 3.0], "b": [2.0, 2.0, 2.0]}
    assert summary(turns["a"])["rate"] == 1 and summary(turns["b"])["rate"] == 0.5
    assert len(said) == 6 and said[0] == "turn 1/3: a 2/s"


@pytest.mark.parametrize("family", families.FAMILIES)
def test_stock_translates_by_its_own_search_and_the_suite_by_its_own(family, tiny):
    searches = {True: set(), False: set()}
    for row in families.rows(family, tiny):
        searches[row.ours].add("--task" in row.task)
    assert searches == {True: {True}, False: {False}}


def test_equal_width_inverts_a_cost():
    def cost(width):
        return 3 * width**2 + 40 * width + 1000

    assert equal_width(cost(256), cost) == 256
    assert equal_width(cost(259), cost) == 256
    assert equal_width(cost(261), cost) == 264
    with pytest.raises(ValueError, match="as small as"):
        equal_width(500.0, cost)


def figures(rate, operations, peak, seconds=0.001):
    part = {"rate": rate, "turns": [1 / rate], "operations": operations}
    part.update(seconds=seconds, bound="products")
    return {
        "first update": 1.5, "peak": peak, "parameters": 10, "training": part,
        label(5, 64): dict(part),
    }  # fmt: skip


def test_ratios_are_to_the_first_row():
    rows = {"stock": figures(100.0, 6e6, 50.0), "ours": figures(150.0, 12e6, 25.0)}
    compare(rows)
    for part in (rows["ours"]["training"], rows["ours"]["beam 5, batch 64"]):
        assert part["ratio"] == 1.5 and part["expected ratio"] == 0.5
        assert part["ratio at equal FLOP"] == 3
        assert part["share of the limit"] == pytest.approx(0.15)
    assert rows["ours"]["peak ratio"] == 0.5
    assert rows["stock"]["training"]["ratio"] == rows["stock"]["peak ratio"] == 1


class Stub:
    """A member that answers without doing anything; ours is twice as fast."""

    opened, closed = [], []

    def __init__(self, row, data, folder, args):
        self.row, self.first_update = row, 0.5
        assert folder.is_dir()
        Stub.opened.append(row.name)

    def call(self, method, *arguments):
        speed = 2.0 if self.row.ours else 1.0
        cost = {"operations": 1e6, "seconds": 1e-3, "bound": "products"}
        return {
            "train": (4.0 / speed, 100),
            "translate": (8.0 / speed, 64),
            "forget_peak": None,
            "peak": 3 << 20,
            "training_cost": {**cost, "parameters": 7, "padding": 0.25},
            "translation_cost": cost,
            "machine": {"operations": 1e11, "bytes": 1e10},
        }[method]

    def close(self):
        Stub.closed.append(self.row.name)


def test_a_family_from_start_to_tables(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(Stub, "opened", [])
    monkeypatch.setattr(Stub, "closed", [])
    monkeypatch.setattr(harness, "rows_of", lambda family, data, args: families.rows(family, args))
    by_system, machine = measure_family(
        "dual", tmp_path, tmp_path, tiny, start=Stub, say=lambda text: None
    )
    assert list(by_system) == Stub.opened == ["two stock", "dual"]
    assert sorted(Stub.closed) == sorted(Stub.opened)
    assert (
        by_system["dual"]["training"]["rate"] == 50 and by_system["dual"]["training"]["ratio"] == 2
    )
    assert by_system["dual"]["beam 2, batch 4"]["ratio"] == 2
    assert by_system["dual"]["peak"] == 3 and machine["bytes"] == 1e10
    setting = {"precision": "fp32", "threads": 1, "results": by_system}
    text = family_tables("dual", [setting])
    assert "| fp32, 1 | dual | 50.0 | 2.00 | 1.00 | 2.00 |" in text
    assert "beam 2, batch 4: sentences/s" in text


def test_a_system_in_its_own_process(tiny, data, tmp_path):
    row = families.rows("multiway", tiny)[-1]
    with contextlib.closing(Worker(row, data, tmp_path, tiny)) as remote:
        assert remote.first_update > 0
        seconds, tokens = remote.call("train")
        assert seconds > 0 and tokens > 2
        remote.call("forget_peak")
        remote.call("train")
        assert remote.call("peak") > 0
        # what goes wrong there is raised here
        with pytest.raises(AttributeError, match="no_such_thing"):
            remote.call("no_such_thing")
        remote._process.submit(os._exit, 3)
        with pytest.raises(UsageError, match="multiway: its process ended"):
            remote.call("train")
