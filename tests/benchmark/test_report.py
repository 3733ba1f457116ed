"""Tables, pictures and files, written whole or not at all."""

import json

import pytest
from speed import growth, report
from speed.families import EQUAL

from fairseq_ext.tools import UsageError


@pytest.mark.parametrize(
    "value, text",
    [(None, ""), (12239776, "12,239,776"), (1234.56, "1,235"), (56.78, "56.8"), (5.678, "5.68"),
     (0.5678, "0.568"), (0.00012345, "0.00012"), (0.0, "0.000")],
)  # fmt: skip
def test_numbers(value, text):
    assert report.number(value) == text


def part(ratio):
    return {
        "rate": 10.0 * ratio, "turns": [0.1], "operations": 2e6, "seconds": 0.01, "ratio": ratio,
        "bound": "memory", "expected ratio": 1.0, "ratio at equal FLOP": ratio,
        "share of the limit": 0.25, "padding": 0.045,
    }  # fmt: skip


def row(ratio, peak_ratio=0.5):
    return {
        "first update": 2.5, "peak": 123.4, "peak ratio": peak_ratio, "parameters": 4321,
        "training": part(ratio), "beam 5, batch 64": part(2 * ratio),
    }  # fmt: skip


@pytest.fixture
def record(tiny):
    settings = {**vars(tiny), "searches": [(5, 64)]}
    results = {"stock lstm": row(1.0, 1.0), EQUAL: row(1.2, 1.1), "multiway": row(1.5)}
    return {
        **report.circumstances("cpu"),
        "settings": settings,
        "machine": [{"precision": "fp32", "threads": 1, "operations": 2e11, "bytes": 1e10}],
        "families": {"multiway": [{"precision": "fp32", "threads": 1, "results": results}]},
        "startup": {"fairseq-train --help": {"stock": None, "--user-dir": 3.25}},
    }


def test_markdown_has_every_figure(record):
    text = report.markdown(record)
    assert record["date"] in text and record["device"] in text and record["torch"] in text
    assert (
        "| fp32, 1 | multiway | 15.0 | 1.50 | 1.00 | 1.50 | 0.250 | 2.00 | 4.50 | 123.4 |"
        " 0.500 | 2.50 | 4,321 |" in text
    )
    assert "| fp32, 1 | multiway | 30.0 | 3.00 | 0.250 |" in text
    assert "| fp32 | 1 | 200.0 | 10.0 |" in text
    assert "| fairseq-train --help |  | 3.25 |" in text
    assert (
        f"Ratios of multiway to {EQUAL}, fp32, 1 thread(s): training 1.25; beam 5, batch 64 1.25."
        in text
    )
    columns = {line.count("|") for line in text.splitlines() if line.startswith("| fp32, 1 |")}
    heads = {line.count("|") for line in text.splitlines() if line.startswith("| precision, ")}
    assert columns == heads


def test_files_and_marks_of_a_page(record, tmp_path):
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- begin cpu -->\nold\n<!-- end cpu -->\nafter\n", encoding="utf-8")
    report.publish(record, "new\n", tmp_path / "cpu", report.chart, page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "new" in text and "](cpu.png)" in text
    assert (tmp_path / "cpu.png").read_bytes().startswith(b"\x89PNG")
    stored = json.loads((tmp_path / "cpu.json").read_text(encoding="utf-8"))
    assert stored["families"]["multiway"][0]["results"]["multiway"]["training"]["turns"] == [0.1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "cpu.json", "cpu.png"]


@pytest.mark.parametrize(
    "name, text, message",
    [("README.md", "no marks", "there must be one line <!-- begin cpu -->"),
     ("other/README.md", "<!-- begin cpu --><!-- end cpu -->", "must be in the folder of")],
)  # fmt: skip
def test_a_wrong_page_is_refused_before_anything_is_written(name, text, message, record, tmp_path):
    page = tmp_path / name
    page.parent.mkdir(exist_ok=True)
    page.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        report.publish(record, "new\n", tmp_path / "cpu", report.chart, page)
    assert page.read_text(encoding="utf-8") == text
    assert not (tmp_path / "cpu.json").exists()


def test_a_picture_that_fails_leaves_the_old_one(record, tmp_path, monkeypatch):
    (tmp_path / "cpu.png").write_bytes(b"old")
    from matplotlib.figure import Figure

    def fail(self, file, **more):
        file.write(b"half")
        raise ValueError("no room")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(ValueError, match="no room"):
        report.chart(record, tmp_path / "cpu.png")
    assert (tmp_path / "cpu.png").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["cpu.png"]


def test_slopes():
    values = [1, 2, 4, 8]
    assert growth.slope(values, [3 * x**2 for x in values]) == pytest.approx(2)
    # a constant hides the growth of small inputs, not of the last step
    seconds = [50 + x**1.5 for x in (1, 10, 100, 1000)]
    curve = growth.Curve([1, 10, 100, 1000], seconds, [1.0, 10.0, 100.0, 1000.0])
    slopes = growth.slopes(curve)
    assert slopes["slope"] < slopes["last step"] < 1.5
    assert slopes["predicted"] == pytest.approx(1) == slopes["last predicted"]
    assert growth.steeper(slopes)
    assert not growth.steeper({**slopes, "last step": 1.05})


def test_table_and_picture_of_growth(tmp_path):
    curves = {}
    for system, power in (("lstm", 1), ("dual", 2)):
        curve = growth.Curve([8, 16, 32], [1e-3 * x**power for x in (8, 16, 32)], [8, 16, 32])
        curves[system] = {"training": {**curve._asdict(), "slopes": growth.slopes(curve)}}
    record = {**report.circumstances("cpu"), "threads": 1, "axes": {"length": curves}}
    text = growth.markdown(record)
    row = "| length | lstm | training | 8 | 32 | 0.008 to 0.032 | 1.00 | 1.00 | 1.00 | 1.00 |  |"
    assert row in text
    assert "| 2.00 | 1.00 | 2.00 | 1.00 | yes |" in text
    growth.draw(record, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
