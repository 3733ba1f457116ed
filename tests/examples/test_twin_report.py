"""Metrics, tables and curves of examples/twin."""

import json
import math
import re

import pytest
from recipe_tools import RecipeError
from twin_recipe import metrics
from twin_recipe.scoring import parameters_of, scores
from twin_recipe.settings import SYSTEMS, read_settings

WANTED = ["one two three"] * 20 + ["four five"] * 20


@pytest.mark.parametrize(
    "one, other, number",
    [("", "", 0), ("abc", "", 3), ("abc", "abc", 0), ("kitten", "sitting", 3), ("ab", "ba", 2)],
)
def test_distance(one, other, number):
    assert metrics.distance(one, other) == metrics.distance(other, one) == number


def test_metrics_of_a_run(write, tmp_path):
    references = write(tmp_path / "ref", ["one two", "a\tb", "three"])
    write(tmp_path / "test.hyp", ["one tow", "b", "three"])
    write(tmp_path / "test.nll", ["2.0 4", "1.0 1", "3.0 5"])
    found = scores(
        (metrics.Right(), metrics.Perplexity(), metrics.Nats()), tmp_path, "test", references
    )
    assert found == {
        "right": pytest.approx(200 / 3), "ppl": pytest.approx(math.exp(0.6)), "nats": 2.0,
    }  # fmt: skip
    write(tmp_path / "ref", ["one two", "b", "three"])
    found = scores((metrics.CharacterErrors(), metrics.WordErrors()), tmp_path, "test", references)
    assert found == {"cer": pytest.approx(100 * 2 / 13), "wer": pytest.approx(100 / 4)}


def test_bleu_reads_several_references():
    bleu = metrics.SacreBLEU("bleu")
    lines = ["a b c d e", "f g h i j"]
    sums = bleu.statistics(lines, ["x y z v w\ta b c d e", "f g h i j\tk l m n o"]).sum(axis=0)
    assert bleu.score(sums) == pytest.approx(100)


def test_parameters(tmp_path):
    import torch

    weights = {"a": torch.zeros(3, 4), "b": torch.zeros(5)}
    torch.save({"model": weights, "criterion": None}, tmp_path / "plain.pt")
    torch.save({"model": weights, "criterion": {"g": torch.zeros(7)}}, tmp_path / "twin.pt")
    assert parameters_of(tmp_path / "plain.pt") == {"model": 17, "criterion": 0}
    assert parameters_of(tmp_path / "twin.pt") == {"model": 17, "criterion": 7}


def evaluated(write, folder, settings, system, seed, wrong, seconds):
    """What evaluate.py leaves of a run with so many wrong lines."""
    run = folder / "runs" / f"{system}.{seed}"
    lines = ["nothing"] * wrong + WANTED[wrong:]
    write(run / "test.hyp", lines)
    write(run / "test.nll", [f"{wrong + 1}.0 10"] * len(WANTED))
    values = {metric.name: float(wrong) for metric in settings.kind.METRICS}
    result = {
        "settings": settings.relevant(system),
        "scores": {"valid": {name: value + 1 for name, value in values.items()}, "test": values},
        "parameters": {"model": 1234, "criterion": 0 if system == "baseline" else 777},
        "seconds_per_update": seconds, "updates": 100,
    }  # fmt: skip
    write(run / "scores.json", [json.dumps(result)])


def test_report(tmp_path, script, write, capsys):
    settings = read_settings("digits")
    write(tmp_path / "data" / "raw" / "test.ref", WANTED)
    for seed in (1, 2):
        evaluated(write, tmp_path, settings, "baseline", seed, 30, 0.5)
        evaluated(write, tmp_path, settings, "learnt", seed, 5 + seed, 0.8)
    evaluated(write, tmp_path, settings, "zeros", 2, 30, 0.5)
    page = write(tmp_path / "page.md", ["<!-- begin twin digits -->", "<!-- end twin digits -->"])
    words = [tmp_path / "data", tmp_path / "runs", 1, 2, "--recipe", "digits", "--into", page]
    script("report", "twin").main(list(map(str, words)))
    text = capsys.readouterr().out
    assert "| baseline | 30.00 | 31.00 |" in text and "| + AR | 30.00 | 31.00 |" in text
    assert "| + TwinNet, learnt g | 6.50 (6.00-7.00) | 7.50 (7.00-8.00) |" in text
    (test,) = (line for line in text.splitlines() if "learnt g minus baseline" in line)
    # the character error rate falls with either seed, and not by chance
    assert re.match(r"-\d+\.\d\d \(-\d+\.\d\d to -\d+\.\d\d\)$", test.split("|")[2].strip())
    assert float(test.split("|")[3]) < 0.01
    assert "| + AR minus baseline | 0.00 | 1.000 |" in text
    # of the seed that both have
    assert re.search(r"\| \+ TwinNet, learnt g minus \+ AR \| -\d+\.\d\d \|", text)
    assert "| + TwinNet, learnt g | 1,234 | 777 | 100 | 800 | 1.60 |" in text
    assert "noise.1, noise.2" in text.split("not evaluated: ")[1]
    assert "TwinNet" in page.read_text(encoding="utf-8")
    assert json.loads((tmp_path / "runs" / "report.json").read_text())["missing"]


def test_report_without_runs(tmp_path, script):
    (tmp_path / "runs").mkdir()
    words = [str(tmp_path), str(tmp_path / "runs"), "1", "--recipe", "digits"]
    with pytest.raises(RecipeError, match="has no scores.json for these seeds; run evaluate.py"):
        script("report", "twin").main(words)


def test_curves(tmp_path, script):
    for number, system in enumerate(SYSTEMS):
        distance = f" | L_t {0.5 + number}" if system in ("identity", "learnt", "noise") else ""
        lines = []
        for n in (1, 2):
            lines.append(f"epoch {n:03d} | loss 2.5{distance} | num_updates {10 * n}")
            name = f"epoch {n:03d} | valid on 'valid' subset"
            lines.append(f"{name} | loss {3 - n / 2} | num_updates {10 * n}")
        (tmp_path / f"{system}.1.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    module = script("curves", "twin")
    figure = module.draw(module.curves_of(tmp_path, [1, 2]), "digits")
    losses, distances = (panel.lines for panel in figure.axes)
    # noise has another scale
    assert len(losses) == len(SYSTEMS) and len(distances) == 2
    assert list(losses[0].get_ydata()) == [2.5, 2.0]
    picture = tmp_path / "curves.png"
    module.main([str(tmp_path), "1", "--recipe", "digits", "--output", str(picture)])
    assert picture.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(RecipeError, match="has no log for these seeds"):
        module.curves_of(tmp_path, [3])
