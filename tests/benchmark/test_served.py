"""The script that times the server beside fairseq-interactive: figures, options, a whole run."""

import csv
import json
import math
import os

import pytest

from benchmarks import served
from fairseq_ext.tools import UsageError


def test_figures_are_medians_over_the_turns():
    late = [0.01] * 98 + [0.5, 9.0]
    turns = [served.Turn(2.0, 1.0, late), served.Turn(1.0, 0.5, late), served.Turn(4.0, 9.0, late)]
    values = served.figures(turns)
    assert values[served.RATE] == 50 and values[served.MEDIAN] == pytest.approx(10)
    assert values[served.LATE] == pytest.approx(500) and values[served.CPU] == pytest.approx(10)
    single = served.figures([served.Turn(1.0, math.nan, [0.25])])
    assert single[served.LATE] == 250 and math.isnan(single[served.CPU])


def test_the_csv_has_a_line_for_each_figure(tmp_path):
    values = dict.fromkeys(served.COLUMNS, 1.25)
    served.write_csv({"8": {"server": values}}, tmp_path / "figures.csv")
    with open(tmp_path / "figures.csv", newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [line["metric"] for line in lines] == list(served.COLUMNS)
    assert lines[0] == {"clients": "8", "system": "server", "metric": served.RATE, "value": "1.2"}


SIZES = ["-s", "xx", "-t", "yy", "--clients", "1", "2", "--sentences", "4", "--beam", "2"]


@pytest.mark.parametrize(
    "more, message",
    [
        (("--sentences", "5"), "--sentences 5: must be a multiple of 2 clients"),
        (("--sentences", "10"), "3 lines, --sentences 10"),
        (("--input", "nothing"), "cannot read nothing: No such file"),
    ],
)
def test_wrong_options(more, message, tmp_path):
    lines = tmp_path / "lines"
    lines.write_text("a\n\nb\u2028b\nc\n", encoding="utf-8")  # three sentences
    with pytest.raises(UsageError, match=message):
        served.main(["checkpoint", "data", *SIZES, "--input", str(lines), *more])


@pytest.mark.slow
def test_a_whole_run(dual_checkpoint, toy_corpus, tmp_path):
    words = [dual_checkpoint, toy_corpus.two, *SIZES, "--repeats", 1]
    words += ["--input", toy_corpus.text / "test.xx", "--output", tmp_path / "figures"]
    served.main([str(word) for word in words])
    results = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["results"]
    assert list(results) == ["1", "2"]
    assert {"server", "fairseq-interactive"} <= set(results["1"])
    for systems in results.values():
        for values in systems.values():
            assert values[served.RATE] > 0 and values[served.MEDIAN] <= values[served.LATE]
    if os.path.isdir("/proc/self"):  # whose clock has ticks of 10 ms, longer than some of these
        rows = [row for systems in results.values() for row in systems.values()]
        seconds = [row[served.CPU] for row in rows]
        assert min(seconds) >= 0 and sum(seconds) > 0
    assert (tmp_path / "figures.csv").is_file() and (tmp_path / "figures.md").is_file()
