"""The results pages: their tables and pictures are those of the stored measurements."""

import json
import re
from pathlib import Path

import drawing
import measured
import pages
import pytest
from script_modules import load_script

SCRIPT = pages.REPOSITORY / "docs" / "site" / "results.py"


@pytest.fixture(scope="module")
def results():
    """The module docs/site/results.py."""
    return load_script(SCRIPT)


@pytest.fixture
def small(results, tmp_path, monkeypatch):
    """The module with a page, a picture and six measurements in a folder of their own."""
    data = tmp_path / "docs" / "results" / "data"
    data.mkdir(parents=True)
    lines = [
        "system,versus,set,metric,value,low,high,deviation,p",
        "a,,test,BLEU,38.10,37.00,39.20,,",
        "b,,test,BLEU,40.00,,,,",
        "b,,test,parameters,1234567,1234567,1234567,,",
        "b,a,test,BLEU,1.90,-0.10,3.90,,0.001 0.4",
        "c,a,test,BLEU,-2.00,,,,",
        "c,,valid,accuracy,62.31,,,2.74,",
    ]
    (data / "x.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    row = {"label": "b", "from": "x", "system": "b", "versus": "a"}
    picture = {"panels": [{"title": "gain", "rows": [row]}]}
    (data / "pictures.json").write_text(json.dumps({"x.svg": picture}), encoding="utf-8")
    page = tmp_path / "docs" / "page.md"
    layout = "x rows=system columns=metric set=test versus= metric=BLEU|parameters"
    page.write_text(f"# P\n\n<!-- table: {layout} -->\nold\n<!-- end table -->\nend\n")
    monkeypatch.setattr(measured, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(measured, "DATA", data)
    monkeypatch.setattr(results, "PAGES", [page])
    return results


def test_pages_and_pictures_show_the_measurements(results, capsys):
    """After a change of the data or of a mark, `make results` brings the pages up to date."""
    assert results.main(["--check"]) == 0, capsys.readouterr().out


def test_every_experiment_is_described_and_shown(results):
    names = {path.stem for path in measured.DATA.glob("*.csv")}
    described = set(json.loads((measured.DATA / "experiments.json").read_text(encoding="utf-8")))
    assert described == {name for name in names if not name.startswith(("benchmark-", "logs"))}
    shown = "\n".join(page.read_text(encoding="utf-8") for page in results.PAGES)
    assert not [name for name in names if f"<!-- table: {name} " not in shown]


def test_every_measurement_is_in_a_table(results, monkeypatch):
    """Differences, which two of them make, may be left out."""
    shown = set()
    cell = results.cell

    def recorded(measurement):
        shown.add(frozenset(measurement.items()))
        return cell(measurement)

    monkeypatch.setattr(results, "cell", recorded)
    for page in results.PAGES:
        for mark in results.MARK.finditer(page.read_text(encoding="utf-8")):
            if mark[2] == "table":
                results.table(mark[3])
    for path in sorted(measured.DATA.glob("*.csv")):
        scores = [entry for entry in measured.measurements(path.stem) if not entry.get("versus")]
        hidden = [entry for entry in scores if frozenset(entry.items()) not in shown]
        assert not hidden, (path.name, hidden[:3])


def test_a_page_is_filled_and_a_picture_drawn(small, capsys):
    assert small.main(["--check"]) == 1
    assert small.main([]) == 0
    text = small.PAGES[0].read_text(encoding="utf-8")
    assert text.startswith("# P\n") and text.endswith("<!-- end table -->\nend\n")
    assert "| a | 38.10 (37.00 to 39.20) |  |\n| b | 40.00 | 1,234,567 |" in text
    assert "old" not in text
    assert "outdated: docs/page.md" in capsys.readouterr().out
    assert small.main(["--check"]) == 0
    assert (measured.DOCS / "x.svg").read_text(encoding="utf-8").count("<svg") == 1


def test_an_interruption_leaves_what_was_there(small, monkeypatch):
    """The first half of a picture has its digest, and would count as the whole."""
    small.main([])
    shown = [small.PAGES[0], measured.DOCS / "x.svg"]
    before = [path.read_text(encoding="utf-8") for path in shown]
    table, write_text = measured.DATA / "x.csv", Path.write_text
    table.write_text(table.read_text(encoding="utf-8").replace("1.90", "1.80"), encoding="utf-8")

    def interrupted(path, text, **options):
        write_text(path, text[: len(text) // 2], **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", interrupted)
    for write in (small.replace_text, lambda path, _: drawing.draw(path, small.pictures()[path])):
        with pytest.raises(KeyboardInterrupt):
            write(shown.pop(0), "another")
    assert [
        path.read_text(encoding="utf-8") for path in (small.PAGES[0], measured.DOCS / "x.svg")
    ] == before


@pytest.mark.parametrize(
    "layout, line",
    [
        ("versus=*", "| b - a | +1.90 (-0.10 to +3.90), p 0.001, 0.4 |"),
        ("versus=a", "| c - a | -2.00 |"),
        ("set=valid", "| c | 62.31 ± 2.74 |"),
    ],
)
def test_cells(small, layout, line):
    assert line in small.table(f"x rows=system columns=metric {layout}")


def test_values_of_a_report_have_two_decimals_whatever_their_digits(small):
    lines = ["system,versus,metric,value,low,high,values"]
    lines += ["a,,nats,-81.291,-82.5,-80.1,-82.5 -80.1", "a,,tokens,1500,,,1500"]
    lines += ["b,a,nats,1.974,,,1.974", "b,,loss,2.380,,,"]
    (measured.DATA / "y.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = small.table("y rows=system,versus columns=metric")
    assert "| a | -81.29 (-82.50 to -80.10) | 1,500 |  |\n" in table
    assert "| +1.97 |" in table and "| 2.380 |" in table


def test_whole_numbers_that_seeds_share_have_no_range(small):
    lines = ["system,versus,metric,value,low,high,values"]
    lines += ["a,,updates,1500,1500,1500,1500 1500", "b,,updates,1450,1400,1500,1400 1500"]
    lines += ["b,a,updates,-50,-100,0,-100 0", "a,c,updates,250,250,250,250 250"]
    (measured.DATA / "y.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert "| a | 1,500 |\n| b | 1,450 (1,400 to 1,500) |" in small.table(
        "y rows=system columns=metric versus="
    )
    differences = small.table("y rows=system columns=metric versus=*")
    assert "| b - a | -50 (-100 to +0) |\n| a - c | +250 |" in differences


def test_changed_measurements_are_noticed(small):
    small.main([])
    table = measured.DATA / "x.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("1.90", "1.80"), encoding="utf-8")
    _, drawings = small.outdated()
    assert list(drawings) == [measured.DOCS / "x.svg"]


def test_curves_are_drawn_and_their_values_noticed(small, tmp_path):
    lines = [
        "system,epoch,metric,value,low,high",
        *("a,1.0 (last),ppl,4,3,6", "a,0.5,ppl,9,,", "b,half,ppl,8,,"),
    ]
    (measured.DATA / "y.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    panel = {"title": "t", "from": "y", "x": "epoch", "metric": "ppl", "y scale": "log"}
    panel |= {"x values": {"half": "0.5"}, "names": {"b": "best"}, "x label": "epochs"}
    nine, eight = (measured.Summary(value, value, value) for value in (9.0, 8.0))
    expected = {"a": [(0.5, nine), (1.0, measured.Summary(4.0, 3.0, 6.0))], "best": [(0.5, eight)]}
    assert drawing.curves(panel) == expected
    picture = {"curves": [panel]}
    drawing.draw(tmp_path / "y.svg", picture)
    assert small.is_drawn(tmp_path / "y.svg", picture)
    text = (measured.DATA / "y.csv").read_text(encoding="utf-8")
    (measured.DATA / "y.csv").write_text(text.replace(",8", ",7"), encoding="utf-8")
    assert not small.is_drawn(tmp_path / "y.svg", picture)
    with pytest.raises(ValueError, match="t: metric = 'ppl' has no number"):
        drawing.curves({**panel, "x": "metric"})


def test_curves_of_several_experiments_have_the_interval_of_each_point(small, tmp_path):
    for name, value in (("y", 1), ("z", 2)):
        lines = ["system,versus,direction,metric,value,low,high,interval"]
        lines += [f"a,b,de-en,BLEU,{value},,,{value - 1} {value + 1}", f"a,b,en-de,BLEU,{value},,,"]
        (measured.DATA / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    picks = {"system": "a", "versus": "b", "metric": "BLEU"}
    places = [{"x": 100, "from": "y", **picks}, {"x": 1000, "from": "z", **picks}]
    panel = {"title": "t", "x label": "pairs", "x ticks": [100, 1000], "line": 0}
    panel |= {"lines": {"name": places, "one": places[:1]}}
    first, second = measured.Summary(1.0, 0.0, 2.0), measured.Summary(2.0, 1.0, 3.0)
    assert drawing.curves(panel) == {"name": [(100.0, first), (1000.0, second)],
                                     "one": [(100.0, first)]}  # fmt: skip
    drawing.draw(tmp_path / "y.svg", {"columns": 1, "curves": [panel]})
    assert ">1,000<" in (tmp_path / "y.svg").read_text(encoding="utf-8")


def test_times_of_all_places_of_a_system_are_added(small):
    lines = ["system,versus,direction,metric,value"]
    for direction, updates, ms in (("de-en", 100, 20), ("en-de", 200, 30)):
        lines += [f"a,,{direction},updates,{updates}", f"a,,{direction},ms per update,{ms}"]
        lines += [f"a,b,{direction},updates,5", f"a,,{direction},BLEU,7"]
    (measured.DATA / "z.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert small.training_seconds("z", "a") == pytest.approx(8.0)


def test_a_time_that_was_measured_with_several_numbers_of_pairs_is_a_range(small):
    lines = ["system,pairs,metric,value", "a,1,minutes,10", "b,1,minutes,18", "a,2,minutes,20"]
    lines += ["b,2,minutes,50", "b,3,minutes,1"]
    (measured.DATA / "x.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    picks = {"from": "x", "metric": "minutes", "system": "b", "baseline": "a"}
    assert small.cost({**picks, "pairs": "1|2"}) == "1.8 to 2.5"
    assert small.cost({**picks, "pairs": "2"}) == "2.5"


def test_choices_have_their_evidence_and_are_shown_on_other_pages(small):
    gains = [{"label": "BLEU", "from": "x", "system": "b", "versus": "a"}]
    shared = {"method": "m", "use": "yes", "beside": "a", "gains": gains}
    listed = [{"data": "few", "also on": "few-pairs", "evidence": "two seeds", **shared}]
    listed.append({"data": "many", "evidence": "one seed", **shared})
    (measured.DATA / "choices.json").write_text(json.dumps(listed), encoding="utf-8")
    gain = "BLEU +1.9 (-0.1 to +3.9)"
    assert f"| few | m | yes | {gain} | not measured | a | 1 |" in small.choices("")
    assert "| 2 | many | one seed |" in small.choices("evidence")
    few = small.choices("few-pairs")
    assert f"| few | m | {gain} | not measured |" in few and "many" not in few


def test_two_values_in_a_cell_are_refused(small):
    with pytest.raises(ValueError, match="two values in the cell"):
        small.table("x rows=set columns=metric metric=BLEU")
    with pytest.raises(ValueError, match="nothing was measured"):
        small.table("x rows=set columns=metric metric=TER")


def test_time_of_training_is_not_that_of_differences(results, monkeypatch):
    entry = {"system": "a", "versus": "", "metric": "updates", "value": "100"}
    time = {**entry, "metric": "ms per update", "value": "50"}
    lines = [entry, time, {**time, "versus": "b", "value": "5"}]
    monkeypatch.setattr(measured, "measurements", lambda name: lines)
    assert results.training_seconds("x", "a") == 5.0


def test_how_far_seeds_lie_apart(small):
    """Within systems, pooled: squares 2 + 2 + 0.5 over 2 + 1 + 1 degrees of freedom."""
    lines = ["system,versus,metric,seeds,value,low,high,values"]
    lines += ["a,,BLEU,1 2 3,20,19,21,19 20 21", "b,,BLEU,1 2,31,30,32,30 32"]
    lines += ["c,,BLEU,1 2,40,39.5,40.5,", "d,,BLEU,1 2 3,50,40,60,", "e,,BLEU,1,5,,,5"]
    lines += ["a,b,BLEU,1 2,-11,-20,20,-20 20"]
    # of the same trainings as a
    lines += ["a.inference,,BLEU,1 2 3,20,15,25,15 20 25", "a.ensemble,,BLEU,1 2,20,15,25,15 25"]
    (measured.DATA / "y.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    seeds = measured.spread("y", {"versus": "", "metric": "BLEU"})
    assert seeds == measured.Spread(pytest.approx((4.5 / 4) ** 0.5), 2.0, 4)
    # the difference of two systems has twice the variance; two seeds halve it; Student's t is 2.776
    assert seeds.margin(2) == pytest.approx(2.776 * (4.5 / 4) ** 0.5, rel=1e-3)
    table = small.spread('versus= metric=BLEU "all=>y" "three=>y system=a"')
    assert "| all | ±4.2 | ±2.9 | ±2.4 | 1.06 | 2.0 | 4 |" in table
    assert "| three | ±6.1 | ±4.3 | ±3.5 | 1.00 | 2.0 | 2 |" in table
    with pytest.raises(ValueError, match="y: no two seeds were measured with"):
        measured.spread("y", {"system": "e"})


def test_differences_that_pages_call_unproven_are_those_of_the_table():
    text = (measured.DOCS / "results.md").read_text(encoding="utf-8")
    table = text.split("<!-- spread: ")[1].split("<!-- end spread -->")[0]
    pages = {page.name: page.read_text(encoding="utf-8") for page in measured.DOCS.glob("results/*")
             if page.suffix == ".md"}  # fmt: skip
    named = [
        (name, number)
        for name, page in pages.items()
        for sentence in re.findall(
            r"\[\d\.\d BLEU\]\(\.\./results\.md#how-far-seeds.*?unproven", page, re.S
        )
        for number in re.findall(r"\d\.\d", sentence)
    ]
    assert len(named) > 5 and not [entry for entry in named if f"±{entry[1]} " not in table]
