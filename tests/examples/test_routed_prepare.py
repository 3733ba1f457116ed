"""prepare.py and the scores of examples/routed on small corpora."""

import json

import pytest
from recipe_tools import RecipeError
from routed_recipe import corpora, scoring
from routed_recipe.scoring import auxiliary_scores
from routed_recipe.settings import KINDS, read_settings


@pytest.fixture
def corpus(routed_raw):
    """(settings, raw files of the auxiliary tasks)."""
    return read_settings("multi30k"), routed_raw


def test_splits_are_disjoint_and_complete(corpus):
    settings, raw = corpus
    files = corpora.auxiliary_files(settings, raw)
    trees, amr = corpora.examples("tree", files), corpora.examples("amr", files)
    assert {split: len(pairs) for split, pairs in trees.items()} == {
        "train": 17, "valid": 2, "test": 1,
    }  # fmt: skip
    assert {split: len(pairs) for split, pairs in amr.items()} == {
        "train": 14, "valid": 3, "test": 3,
    }  # fmt: skip
    for found in (trees, amr):
        assert len({pair for pairs in found.values() for pair in pairs}) == 20


def test_long_targets_leave_training_only(corpus):
    settings, _ = corpus
    long = ("a", " ".join("O" * (settings.numbers["longest"] + 1)))
    found = {"train": [("a", "O"), long], "valid": [long] * 900, "test": [long]}
    kept = corpora.select(found, settings)
    assert kept["train"] == [("a", "O")] and len(kept["valid"]) == 500 and kept["test"] == [long]


def test_missing_and_malformed_files_are_named(corpus):
    settings, raw = corpus
    path = raw / settings.text["tree"]["file"]
    path.unlink()
    with pytest.raises(RecipeError, match=r"there is no wsj_sample/treebank.zip \(\[tree\] file\)"):
        corpora.auxiliary_files(settings, raw)
    (raw / "bad").write_text("a O\nb\n", encoding="utf-8")
    with pytest.raises(RecipeError, match="bad, line 2: row 'b'"):
        corpora.linear("ner", raw / "bad")
    (raw / "bad").write_text("# ::snt It is 1 .\n(i / it :quant 1)\n", encoding="utf-8")
    with pytest.raises(RecipeError, match="bad: no line '# ::id NAME' above the graph of: It is 1"):
        corpora.identified(raw / "bad")


def test_smaller_cuts_are_parts_of_larger_ones():
    few, more = (set(corpora.cut(100, size, 1)) for size in ("10", "40"))
    assert len(few) == 10 and few < more and corpora.cut(100, "all", 1) == list(range(100))


def test_symbols_are_joined_as_sentencepiece_does(tmp_path):
    (tmp_path / "in").write_text("(S (NP NN )NP )S\n", encoding="utf-8")
    corpora.spell_symbols(tmp_path / "in", tmp_path / "out")
    pieces = (tmp_path / "out").read_text(encoding="utf-8").strip()
    assert pieces.replace(" ", "").replace("\u2581", " ").strip() == "(S (NP NN )NP )S"


def test_scores_of_translations(tmp_path, write, monkeypatch):
    wanted = write(tmp_path / "wanted", ["a b c d", "e"])
    found = write(tmp_path / "found", ["a b x d", "e"])
    rate, signature = scoring.error_rate(found, wanted)
    assert rate == pytest.approx(100 / 5) and "tok:tercom" in signature
    # probabilities 1/2, 1/4 and 1/8, 1: the geometric mean of their inverses is 2 ** (6 / 4)
    log = write(tmp_path / "log", ["P-1\t-3 0", "H-1\t-9\tx", "P-0\t-1.0 -2.0"])
    monkeypatch.setattr(scoring, "make", lambda *words: words[-1](log))
    assert scoring.perplexity(tmp_path / "out", [], [], wanted) == pytest.approx(2**1.5)


def test_scores_of_helpers(tmp_path, write):
    wanted = write(tmp_path / "wanted", ["B-A O", "O"])
    found = write(tmp_path / "found", ["B-A O", "O B-A"])
    scores = auxiliary_scores("ner", found, wanted)
    assert scores == {
        "accuracy": 75, "exact": 50, "f1": pytest.approx(200 / 3),
        "ill_formed": 0, "wrong_length": 1,
    }  # fmt: skip
    wanted = write(tmp_path / "wanted", ["(S A B )S", "(S A )S", "(S A )S"])
    found = write(tmp_path / "found", ["(S A B )S", "(S A A )S", "(S A"])
    scores = auxiliary_scores("tree", found, wanted)
    assert (scores["ill_formed"], scores["wrong_length"]) == (1, 1)
    assert set(auxiliary_scores("amr", found, wanted)) == {"accuracy", "exact"}


def evaluated(folder, write, sentences, faults):
    """What evaluate.py leaves of seed 1. faults: {system: lines that are wrong}; returns words."""
    settings = read_settings("multi30k")
    write(folder / "data" / "raw" / "main" / "test.de", sentences)
    helper = {"accuracy": 1.0, "exact": 2.0, "f1": 3.0, "ill_formed": 4, "wrong_length": 5}
    for system, wrong in faults.items():
        run = folder / "runs" / f"{system}.1"
        write(run / "test.en-de.hyp", ["nothing at all"] * wrong + sentences[wrong:])
        scores = {pair: helper for pair in settings.system(system).pairs[1:]}
        scores["en-de"] = {"bleu": 40.0 - wrong, "ter": 50.0 + wrong, "ppl": 9.0}
        result = {
            "settings": settings.relevant(system.split(".")[0]), "scores": scores,
            "parameters": {"translation": 9000, "all": 12000}, "seconds_per_update": 0.2,
            "updates": 3000, "signatures": {"bleu": "x"},
        }  # fmt: skip
        write(run / "scores.json", [json.dumps(result)])
    return [str(folder / "data"), str(folder / "runs"), "1"]


def test_report(tmp_path, script, write, sentences, capsys):
    faults = {f"{kind}.5000": wrong for wrong, kind in zip((30, 25, 15, 5, 10), KINDS)}
    script("report", "routed").main(evaluated(tmp_path, write, sentences, faults))
    text = capsys.readouterr().out
    assert "| routed.5000 | 35.00 | 55.00 | 9.00 |" in text
    assert (
        "| full.5000 | 3.00 | 1.00 | 2.00 | 4 | 5 |" in text
        and "| single.5000 | 3.00 |" not in text
    )
    (line,) = [line for line in text.splitlines() if line.startswith("| routed.5000 - partial")]
    assert float(line.split("|")[2]) > 0
    assert "| routed.5000 | 9,000 | 12,000 | 3,000 | 200 |" in text
    assert "routed.10000.1" in text.split("not evaluated: ")[1]


def test_every_size_has_its_place_on_a_page(tmp_path, script, write, sentences, capsys):
    faults = {"single.5000": 9, "full.5000": 7, "single.all": 5, "full.all": 3}
    words = evaluated(tmp_path, write, sentences, faults)
    marks = [f"<!-- {{}} routed multi30k {size} -->" for size in ("5000", "10000", "all")]
    lines = [mark.format(side) for mark in marks for side in ("begin", "end")]
    page = write(tmp_path / "page.md", lines)
    script("report", "routed").main([*words, "--into", str(page)])
    first, second, third = page.read_text().split("<!-- end routed multi30k ")[:3]
    assert "| full.5000 - single.5000 |" in first and "full.all" not in first
    assert second == f"5000 -->\n{lines[2]}\n"  # no results, no change
    assert "| full.all - single.all |" in third and "5000" not in third.split("\n", 1)[1]
    text = (tmp_path / "runs" / "report.md").read_text()
    assert "full.5000" in text and "full.all" in text


def test_curves(tmp_path, script, write):
    settings = read_settings("multi30k")
    for system in ("routed.5000", "routed_long.5000", "single.all"):
        valid = "epoch 001 | valid on 'valid' subset | loss 3 | en-de_ppl {} | num_updates {}"
        write(tmp_path / f"{system}.1.log", [valid.format(9, 10), valid.format(7, 20)])
    module = script("curves", "routed")
    figure = module.draw(module.curves_of(settings, tmp_path, [1, 2]))
    short, long = figure.axes[0].lines
    assert (short.get_linestyle(), long.get_linestyle()) == ("-", "--")
    assert short.get_color() == long.get_color() != figure.axes[1].lines[0].get_color()
    assert list(long.get_ydata()) == [9, 7] and len(figure.axes) == 2
    module.main([str(tmp_path), "1", "--output", str(tmp_path / "curves.png")])
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(RecipeError, match="has no log for these seeds"):
        module.curves_of(settings, tmp_path, [3])
