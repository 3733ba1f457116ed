"""The report, and what evaluation needs."""

import json
import shutil
from argparse import Namespace
from pathlib import Path

import pytest
from dual_recipe.settings import FURTHER, RANKED, read_settings
from recipe_tools import RecipeError
from recipe_tools.scores import METRICS, score
from recipe_tools.tables import insert


@pytest.fixture
def runs(tmp_path, small, write, sentences):
    """Data and runs of two seeds in which the dual system is better, the more so for seed 2."""
    settings = read_settings(small)
    for language in settings.languages:
        for split in ("valid", "test"):
            write(tmp_path / "data" / "raw" / f"{split}.{language}", sentences)
    for seed in (1, 2):
        for system in (*settings.systems, *FURTHER):
            scores = {"valid": {}, "test": {}}
            for split in scores:
                for direction in settings.directions_of(system):
                    wrong = 20 if system.startswith("stock") else 8 - seed
                    lines = ["nothing at all"] * wrong + sentences[wrong:]
                    path = tmp_path / "runs" / f"{system}.{seed}" / f"{split}.{direction}.hyp"
                    write(path, lines)
                    references = tmp_path / "data" / "raw" / f"{split}.{direction[-2:]}"
                    scores[split][direction], signatures = score(path, references)
            result = {
                "scores": scores,
                "signatures": signatures,
                "settings": settings.relevant(system),
                "alpha": {each: "0.8" for each in ("de-en", "en-de") if "inf" in system},
                "parameters": {"unique": 110 if system == "dual" else 100, "used": 90},
                "seconds_per_epoch": 10.0 + seed,
                "epochs": 2,
            }
            path = tmp_path / "runs" / f"{system}.{seed}" / "scores.json"
            path.write_text(json.dumps(result), encoding="utf-8")
    return tmp_path


def test_report(script, small, runs, write, capsys):
    page = write(
        runs / "results.md", ["# R", "<!-- begin small -->", "old", "<!-- end small -->", "z"]
    )
    for system in FURTHER:  # only where it was evaluated
        for seed in (1, 2):
            shutil.rmtree(runs / "runs" / f"{system}.{seed}")
    words = [runs / "data", runs / "runs", 2, 1, "--recipe", small, "--into", page]
    script("report").main([str(word) for word in words])
    data = json.loads((runs / "runs" / "report.json").read_text(encoding="utf-8"))
    assert data["seeds"] == [1, 2] and len(data["tests"]) == 8
    for direction in ("de-en", "en-de"):
        values = data["scores"]["test"][direction]
        assert values["dual"]["bleu"]["min"] < values["dual"]["bleu"]["mean"]
        assert values["stock"]["bleu"]["min"] == values["stock"]["bleu"]["max"]
        for metric in METRICS:
            assert values["dual"][metric]["mean"] > values["stock"][metric]["mean"]
    assert all(test["bleu"]["p"] < 0.05 for test in data["tests"])
    assert data["costs"]["stock"] == {"unique": 200, "used": 180, "seconds_per_epoch": 23.0}
    text = (runs / "runs" / "report.md").read_text(encoding="utf-8")
    assert "Higher BLEU with p < 0.05: 8 of 8." in text
    assert "50% of the parameters" in text
    assert "| both stock models | 200 | 180 | 23 |" in text
    assert "| test_a de-en, seed 2 | +" in text and "| val |" in text
    assert page.read_text(encoding="utf-8").startswith("# R\n<!-- begin small -->\n\nRecipe")
    assert page.read_text(encoding="utf-8").endswith("\n<!-- end small -->\nz\n")
    assert "old" not in page.read_text(encoding="utf-8")
    assert text.strip() in capsys.readouterr().out


def test_report_with_all_systems(script, small, runs):
    words = [str(runs / "data"), str(runs / "runs"), "1", "2", "--recipe", str(small)]
    report = script("report")
    report.main(words)
    data = json.loads((runs / "runs" / "report.json").read_text(encoding="utf-8"))
    assert {test["system"] for test in data["tests"]} == {"dual", *FURTHER}
    # two seeds, two directions; not on the validation set, by which alpha was chosen
    assert len(data["tests"]) == (1 + len(FURTHER)) * 8 - len(RANKED) * 4
    assert {test["split"] for test in data["tests"] if test["system"] in RANKED} == {"test"}
    assert data["scores"]["test"]["de-en"]["dsl"] == data["scores"]["test"]["de-en"]["dual"]
    text = (runs / "runs" / "report.md").read_text(encoding="utf-8")
    for row in ("| two stock transformers, DSL |", "| dual model, DSL |", "| dsl - stock |"):
        assert row in text
    assert "| dual model, dual inference |" in text and "| dual.inference - stock |" in text
    assert "| two stock transformers, dual inference |" in text
    for system in RANKED:
        assert f"de-en 0.8 ({system}, seed 1), en-de 0.8 ({system}, seed 1)" in text
    assert "seeds 1, 2; mean (range)" in text


def test_a_system_of_fewer_seeds(script, small, runs):
    bleu = json.loads((runs / "runs" / "dsl.1" / "scores.json").read_text(encoding="utf-8"))
    bleu = bleu["scores"]["test"]["de-en"]["bleu"]
    (runs / "runs" / "dsl.2" / "scores.json").unlink()
    words = [runs / "data", runs / "runs", 1, 2, "--recipe", small]
    script("report").main([str(word) for word in words])
    data = json.loads((runs / "runs" / "report.json").read_text(encoding="utf-8"))
    values = data["scores"]["test"]["de-en"]
    assert values["dsl"]["bleu"]["min"] == values["dsl"]["bleu"]["max"] == bleu
    assert values["dual"]["bleu"]["min"] < values["dual"]["bleu"]["max"]
    assert data["costs"]["dsl"]["seconds_per_epoch"] == 11
    assert {test["seed"] for test in data["tests"] if test["system"] == "dsl"} == {1}
    text = (runs / "runs" / "report.md").read_text(encoding="utf-8")
    assert 'seeds 1, 2 (seed 1 only: "two stock transformers, DSL"); mean (range)' in text


def test_report_says_what_is_missing(script, small, runs, write):
    report = script("report")
    words = [str(runs / "data"), str(runs / "runs"), "3", "--recipe", str(small)]
    with pytest.raises(RecipeError, match=r"dual\.3.scores\.json does not exist; run evaluate\.py"):
        report.main(words)
    text = small.read_text(encoding="utf-8")
    small.write_text(text.replace("--beam 2", "--beam 3"), encoding="utf-8")
    with pytest.raises(RecipeError, match="scores.json was made with other settings"):
        report.main([*words[:2], "1", *words[3:]])
    page = write(runs / "results.md", ["<!-- end small -->", "<!-- begin small -->"])
    with pytest.raises(RecipeError, match="results.md must contain each of these lines once"):
        insert("text", page, "small")
    with pytest.raises(RecipeError, match="nothing.md is not a file"):
        insert("text", runs / "nothing.md", "small")


def test_what_is_only_trained_or_only_evaluated(script, small, tmp_path):
    words = [str(tmp_path), str(tmp_path / "runs")]
    with pytest.raises(
        RecipeError,
        match=r"SYSTEM lm\.de is a language model and does not translate; its perplexity is",
    ):
        script("evaluate").main([*words, "lm.de", "1", "--recipe", str(small)])
    for system in RANKED:
        with pytest.raises(RecipeError, match=f"{system} is not trained: evaluate.py reranks"):
            script("train").main([*words, system, "1", "--recipe", str(small)])
    (tmp_path / "bin").mkdir()
    with pytest.raises(RecipeError, match=r"lm\.de\.1\S* does not exist; run train.py DATA"):
        script("train").main([*words, "dsl", "1", "--recipe", str(small)])


def test_evaluate_needs_a_trained_run(script, small, tmp_path):
    words = [str(tmp_path), str(tmp_path / "runs"), "dual", "1", "--recipe", str(small)]
    with pytest.raises(RecipeError, match=r"checkpoint_last\.pt does not exist; run train\.py"):
        script("evaluate").main(words)


def test_who_searches_and_who_ranks(script, small, monkeypatch):
    module, settings = script("evaluate"), read_settings(small)
    monkeypatch.setattr(module, "average", lambda settings, run: str(run / "average.pt"))
    monkeypatch.setattr(module, "check_trained", lambda *words: None)

    def found(system):
        args = Namespace(data=Path("data"), runs=Path("runs"), system=system, seed=3)
        return module.models_of(settings, args, settings.directions_of(system))

    first, second = "runs/stock.de-en.3/average.pt", "runs/stock.en-de.3/average.pt"
    assert found("stock.de-en") == {"de-en": (first, [])}
    both = "runs/dual.3/average.pt"
    assert found("dual.inference") == {"de-en": (both, []), "en-de": (both, [])}
    separate = {"de-en": (first, ["--dual-path", second])}
    separate["en-de"] = (second, ["--dual-path", first])
    assert found("separate.inference") == separate


def test_commands_of_separate_models(script, small, tmp_path, monkeypatch):
    """Alpha is tuned and the text made with the other model, and again when that changes."""
    module, made = script("evaluate"), []
    monkeypatch.setattr(module, "subword_options", lambda data: ["--bpe", "none"])
    monkeypatch.setattr(module, "make", lambda *words: made.append(words))
    monkeypatch.setattr(module, "lines_of", lambda path: ["--dual-alpha 0.7"])
    monkeypatch.setattr(module, "translate", lambda *words: made.append(words))
    args = Namespace(data=Path("data"), system="separate.inference")
    model = ("one.pt", ["--dual-path", "other.pt"])
    settings = read_settings(small)
    assert module.tuned_alpha(settings, args, model, tmp_path, "de-en") == "0.7"
    module.hypotheses(settings, args, model, tmp_path, "de-en", "test", "0.7")
    for _, command, needed, *_ in made:
        assert command[command.index("--dual-path") + 1] == "other.pt"
        assert needed[:2] == ["one.pt", "other.pt"]
    generated = made[1][1]
    assert generated[generated.index("--dual-alpha") + 1] == "0.7"
    made.clear()
    module.hypotheses(settings, args, ("one.pt", []), tmp_path, "de-en", "test", None)
    assert "--dual-alpha" not in made[0][1] and "--dual-path" not in made[0][1]
