"""Values of reports that are kept with the data of the manual."""

import json
import threading

from experiments.files import write_json
from experiments.stored_values import store


def test_reports_that_are_stored_at_the_same_time_wait_for_each_other(tmp_path, monkeypatch):
    """All experiments share experiments.json, which each report reads and replaces."""
    (tmp_path / "experiments.json").write_text("{}", encoding="utf-8")
    second = threading.Thread(target=store, args=("second", [], {"data": "b"}, tmp_path))

    def write_late(path, content):
        if not second.ident:
            second.start()
            second.join(timeout=0.3)  # long enough for all of it, unless it waits
        write_json(path, content)

    monkeypatch.setattr("experiments.stored_values.write_json", write_late)
    store("first", [], {"data": "a"}, tmp_path)
    second.join()
    facts = json.loads((tmp_path / "experiments.json").read_text(encoding="utf-8"))
    assert facts == {"first": {"data": "a"}, "second": {"data": "b"}}
