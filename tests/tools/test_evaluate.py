"""`fairseq-ext evaluate`: reading, scores and p-values (sacrebleu's own as reference), errors."""

import json
import sys
import types
import unicodedata

import pytest
from tools.translations import damaged, generated, sentences, write

from fairseq_ext import __main__ as command


def evaluate(capsys, *words):
    assert command.main(["evaluate", *map(str, words)]) == 0
    return capsys.readouterr()


def fails(capsys, *words):
    assert command.main(["evaluate", *map(str, words)]) == 2
    return capsys.readouterr().err


# ---------------------------------------------------------------- the command


@pytest.fixture
def files(tmp_path):
    """ref, and two runs each of a baseline and of a better system."""
    references = sentences(30)
    texts = {"ref": references}
    for name, share in (("base", 0.6), ("good", 0.2)):
        for seed in (1, 2):
            texts[f"{name}{seed}"] = damaged(references, share, seed)
    return {name: write(tmp_path / name, lines) for name, lines in texts.items()}


def test_tables(files, tmp_path, capsys):
    outputs = [tmp_path / f"found{ending}" for ending in (".md", ".tsv", ".json")]
    words = ["--hyp", files["good1"], files["good2"], "--hyp", files["base1"], "--ref"]
    words += [files["ref"], "--baseline", files["base1"], files["base2"]]
    words += ["--label", "good", "same", "--samples", 200, "--output", *outputs]
    printed = evaluate(capsys, *words).out
    assert printed == outputs[0].read_text(encoding="utf-8")
    result = json.loads(outputs[2].read_text(encoding="utf-8"))
    good = result["scores"]["good"]["bleu"]
    assert good["mean"] == pytest.approx(sum(good["runs"]) / 2) and good["min"] < good["max"]
    row = f"{good['mean']:.2f} ({good['min']:.2f}-{good['max']:.2f}) ± {good['interval']:.2f}"
    assert f"| good | 2 | {row} |" in printed
    assert list(result["tests"]) == ["good", "same"]  # the baseline is not compared with itself
    tests = result["tests"]["good"]["bleu"]
    assert all(test["difference"] > 20 and test["p"] < 0.01 for test in tests) and len(tests) == 3
    assert result["tests"]["good"]["ter"][0]["difference"] < 0
    assert "| good, mean | +" in printed and "| good, run 2 | +" in printed
    low, high = (tests[0][end] for end in ("low", "high"))
    assert low < tests[0]["difference"] < high and "low" not in tests[1]
    row = f"| good, mean | {tests[0]['difference']:+.2f} | {low:+.2f} to {high:+.2f} | "
    assert row in printed and "a difference over the sentences and the runs." in printed
    # one run against the mean of two
    assert len(result["tests"]["same"]["bleu"]) == 1 and "| same | " in printed
    assert "bs:200|seed:12345" in result["signatures"]["BLEU"]
    cells = [line.split("\t") for line in outputs[1].read_text(encoding="utf-8").splitlines()]
    assert ["good", "bleu", "2", "score", str(good["runs"][1])] in cells
    assert ["good", "bleu", "mean", "p", str(tests[0]["p"])] in cells
    assert ["good", "bleu", "mean", "low", str(low)] in cells


def test_a_single_sentence_has_no_interval(tmp_path, capsys):
    files = [write(tmp_path / name, [f"the man is {name} now"]) for name in ("here", "there")]
    outputs = [tmp_path / f"found{ending}" for ending in (".tsv", ".json")]
    printed = evaluate(capsys, "--hyp", files[0], "--ref", files[1], "--output", *outputs).out
    assert "±" not in printed and printed.startswith("1 sentence of ")
    result = json.loads(outputs[1].read_text(encoding="utf-8"))
    ((label, scores),) = result["scores"].items()
    assert f"| {label} | 1 | {scores['bleu']['runs'][0]:.2f} |" in printed
    assert "interval" not in outputs[0].read_text(encoding="utf-8") + str(result["scores"])


def test_intervals_have_resamples_of_their_own_beside_exchanges(files, tmp_path, capsys):
    """--samples is of the test; intervals are those of sacrebleu's 1,000 resamples."""
    words = ["--hyp", files["good1"], "--baseline", files["base1"], "--ref", files["ref"]]
    results = []
    for more in ([], ["--test", "randomisation", "--samples", 20]):
        evaluate(capsys, *words, *more, "--output", tmp_path / "found.json", "--metric", "bleu")
        results.append(json.loads((tmp_path / "found.json").read_text(encoding="utf-8")))
    resampled, exchanged = results
    assert exchanged["scores"] == resampled["scores"]
    assert (exchanged["samples"], resampled["samples"]) == (20, 1000)


def test_the_interval_of_single_runs_is_about_sentences(files, capsys):
    words = ["--hyp", files["good1"], "--baseline", files["base1"], "--ref", files["ref"]]
    assert "over the sentences, not over other trainings." in evaluate(capsys, *words).out


def test_a_baseline_that_is_a_system_as_well_counts_once(files, tmp_path, capsys):
    base, good = (["--hyp", files[f"{name}1"], files[f"{name}2"]] for name in ("base", "good"))
    rest = ["--baseline", *base[1:], "--ref", files["ref"], "--metric", "chrf", "--samples", 50]
    intervals = []
    for number, others in enumerate(([], base, [base[0], *base[:0:-1]])):
        output = tmp_path / f"{number}.json"
        evaluate(capsys, *good, *others, *rest, "--output", output)
        tests = json.loads(output.read_text(encoding="utf-8"))["tests"]
        mean = tests[str(files["good1"])]["chrf"][0]
        intervals.append((mean["low"], mean["high"]))
    assert intervals[1:] == [pytest.approx(intervals[0])] * 2


def test_without_a_baseline(files, capsys):
    printed = evaluate(capsys, "--hyp", files["good1"], "--ref", files["ref"], "--metric", "chrf")
    assert "chrF" in printed.out and "BLEU" not in printed.out and "| p |" not in printed.out


def test_texts_without_blanks_need_a_tokeniser(tmp_path, capsys):
    path = tmp_path / "text.zh"
    path.write_text("一个男人在街上走路。\n", encoding="utf-8")
    words = ["--hyp", str(path), "--ref", str(path), "--metric", "bleu"]
    command.main(["evaluate", *words])
    assert "text.zh: no blanks between words, which BLEU counts" in capsys.readouterr().err
    command.main(["evaluate", *words, "--tokenize", "zh"])
    assert capsys.readouterr().err == ""


def test_a_tokeniser_that_leaves_lines_whole_is_named(tmp_path, capsys):
    """zh cuts Chinese alone: BLEU of Khmer stays 0."""
    path = tmp_path / "text.km"
    path.write_text("ដើមឈើព្រះអាទិត្យភ្នែក។\n", encoding="utf-8")
    words = ["evaluate", "--hyp", str(path), "--ref", str(path), "--metric", "bleu"]
    for more in ([], ["--tokenize", "zh"]):
        command.main([*words, *more])
        assert "which BLEU counts; --tokenize char or flores200 cuts" in capsys.readouterr().err
    command.main([*words, "--tokenize", "char"])
    assert capsys.readouterr().err == ""
    command.main([*words, "--tokenize", "char", "--metric", "bleu", "chrf", "ter"])
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.endswith("no blanks between words, which TER counts; chrF counts characters")


def test_references_that_sub_words_cannot_write_are_named(tmp_path, capsys):
    """Sara am of Thai is two code points in NFKC; a no-break space is a blank to the metrics."""
    references = ["\u0e19\u0e49\u0e33 \u0e14\u0e33", "a\u00a0b", "c d"]
    normalised = [unicodedata.normalize("NFKC", line) for line in references]
    ref = write(tmp_path / "ref", references)
    hypotheses = write(tmp_path / "hyp", normalised)
    command.main(["evaluate", "--hyp", str(hypotheses), "--ref", str(ref), "--metric", "chrf"])
    assert f"{hypotheses}: 1 lines of {ref} hold characters that Un" in capsys.readouterr().err
    command.main(["evaluate", "--hyp", str(ref), "--ref", str(ref), "--metric", "chrf"])
    assert capsys.readouterr().err == ""


def test_output_of_fairseq_generate_scores_like_its_text(files, tmp_path, capsys):
    lines = files["good1"].read_text(encoding="utf-8").splitlines()
    split = [" ".join("▁" + word[0] + " " + word[1:] for word in line.split()) for line in lines]
    texts = {"D": lines, "H": split}
    logs = [write(tmp_path / mark, generated(text, mark)) for mark, text in texts.items()]
    plain = evaluate(capsys, "--hyp", files["good1"], "--ref", files["ref"]).out
    for log, more in zip(logs, ([], ["--bpe", "sentencepiece"])):
        printed = evaluate(capsys, "--hyp", log, "--ref", files["ref"], *more)
        assert printed.out == plain.replace(str(files["good1"]), str(log)) and not printed.err
    warned = evaluate(capsys, "--hyp", logs[1], "--ref", files["ref"]).err
    assert f"{logs[1]}: 30 lines hold subwords; --bpe joins them" in warned


def test_lines_without_subwords_keep_their_blanks(files, tmp_path, capsys):
    """--bpe is for all systems, of which one may have been joined: a line would become a word."""
    split = ["▁" + line.replace(" ", " ▁") for line in files["good2"].read_text().splitlines()]
    log = write(tmp_path / "log", generated(split, "H"))
    words = ["--ref", files["ref"], "--baseline", files["base1"], "--label", "one", "two"]
    plain = evaluate(capsys, *words, "--hyp", files["good1"], "--hyp", files["good2"])
    words += ["--hyp", files["good1"], "--hyp", log, "--bpe", "sentencepiece"]
    joined = evaluate(capsys, *words)
    assert joined.out == plain.out and not plain.err
    warnings = joined.err.splitlines()
    assert all("lines hold blanks and no sub-words of --bpe sentencepiece" in w for w in warnings)
    assert [w.split(": ")[1] for w in warnings] == [str(files["base1"]), str(files["good1"])]


def test_errors_name_what_is_wrong(files, tmp_path, capsys, monkeypatch):
    hyp, ref = ("--hyp", files["good1"]), ("--ref", files["ref"])
    short = write(tmp_path / "short", ["one", "two"])
    message = fails(capsys, "--hyp", short, *ref)
    assert f"{short} has 2 lines and {files['ref']} 30" in message
    message = fails(capsys, *hyp, *ref, "--baseline", short)
    assert f"{short} has 2 lines and {files['ref']} 30" in message
    assert "holds no line" in fails(capsys, *hyp, "--ref", write(tmp_path / "empty", []))
    line = write(tmp_path / "line", sentences(1))
    for words in ([], ["--test", "randomisation"]):
        message = fails(capsys, "--hyp", line, "--ref", line, "--baseline", line, *words)
        assert f"--baseline: --ref {line} has 1 line; allowed: 2 and more" in message
    assert "--label: 2 names for 1 --hyp" in fails(capsys, *hyp, *ref, "--label", "a", "b")
    assert "two systems" in fails(capsys, *hyp, *hyp, *ref)
    for samples, words in ((1, []), (0, ["--baseline", hyp[1], "--test", "randomisation"])):
        message = fails(capsys, *hyp, *ref, *words, "--samples", samples)
        assert f"--samples {samples}: allowed: {samples + 1} and more" in message
    twice = files["base1"], files["base1"]
    assert f"--hyp {twice[0]}: listed twice" in fails(capsys, "--hyp", *twice, *ref)
    assert f"--baseline {twice[0]}: listed" in fails(capsys, *hyp, *ref, "--baseline", *twice)
    text = write(tmp_path / "read.md", sentences(30))
    assert "is read as well" in fails(capsys, "--hyp", text, *ref, "--output", text)
    assert ".md, .tsv, .json" in fails(capsys, *hyp, *ref, "--output", "x.txt")
    assert "sacrebleu has 13a" in fails(capsys, *hyp, *ref, "--tokenize", "none-such")
    uneven = ["--baseline", files["base1"], files["base2"], "--test", "randomisation"]
    assert "1 runs in --hyp" in fails(capsys, *hyp, *ref, *uneven)
    assert "needs --source" in fails(capsys, *hyp, *ref, "--comet", "m")
    assert "needs --target-lang" in fails(capsys, *hyp, *ref, "--tokenizer", "moses")
    for words, needed in (
        (["--source", files["ref"]], "--comet"),
        (["--target-lang", "en"], "--tokenizer"),
        (["--test", "randomisation"], "--baseline"),
        (["--metric", "chrf", "--tokenize", "zh"], "--metric bleu"),
    ):
        assert f"does nothing without {needed}" in fails(capsys, *hyp, *ref, *words)
    for name in ("sacremoses", "comet"):
        monkeypatch.setitem(sys.modules, name, None)
    moses = ("--tokenizer", "moses", "--target-lang", "en")
    assert "pip install sacremoses" in fails(capsys, *hyp, *ref, *moses)
    comet = ("--comet", "m", "--source", files["ref"])
    assert "pip install unbabel-comet" in fails(capsys, *hyp, *ref, *comet)


def test_comet_where_it_is_installed(files, tmp_path, capsys, monkeypatch):
    """Against a stand-in with the interface of unbabel-comet 2."""
    lines = files["ref"].read_text(encoding="utf-8").splitlines()
    sources = [f"source {number}" for number in range(len(lines))]

    class Model:
        @staticmethod
        def predict(data, batch_size, gpus):
            # line N of every file is one sentence
            assert [entry["src"] for entry in data] == sources
            return {"scores": [0.9 if entry["mt"] == entry["ref"] else 0.5 for entry in data]}

    package = types.ModuleType("comet")
    package.__version__ = "2.2"
    package.download_model = lambda name: f"{name}.ckpt"
    package.load_from_checkpoint = lambda path: Model
    monkeypatch.setitem(sys.modules, "comet", package)
    words = ["--ref", files["ref"], "--metric", "bleu", "--comet", "some/model"]
    output = tmp_path / "found.json"
    words += ["--hyp", files["ref"], "--baseline", files["base1"], "--output", output]
    printed = evaluate(capsys, *words, "--source", write(tmp_path / "sources", sources)).out
    assert "model:some/model|version:2.2" in printed
    result = json.loads(output.read_text(encoding="utf-8"))
    assert result["scores"][str(files["ref"])]["comet"]["mean"] == pytest.approx(90)
    test = result["tests"][str(files["ref"])]["comet"][0]
    assert test["difference"] > 20 and test["p"] < 0.01
    short = write(tmp_path / "short", ["one"])
    assert f"--source {short} has 1 lines" in fails(capsys, *words, "--source", short)
