"""`fairseq-ext evaluate`: reading, scores and p-values (sacrebleu's own as reference), errors."""

import gzip
import json
import random
import sys
import types

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from fairseq_ext import __main__ as command
from fairseq_ext.tools import UsageError, evaluate_input, evaluate_report
from fairseq_ext.tools.evaluate_scores import METRICS, Metric, Scored, paired_test, resample

SACREBLEU = {"bleu": "BLEU", "chrf": "CHRF", "ter": "TER"}
WORDS = [f"w{number}" for number in range(60)]


def sentences(count, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(count)]


def damaged(lines, share, seed):
    """The lines with this share of their words replaced."""
    rng = random.Random(seed)
    return [
        " ".join(rng.choice(WORDS) if rng.random() < share else word for word in line.split())
        for line in lines
    ]


def scored(name, runs, references, samples=1000):
    metric = Metric(name)
    statistics = [metric.statistics(run, references) for run in runs]
    return metric, Scored(metric, statistics, resample(len(references), samples))


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def evaluate(capsys, *words):
    assert command.main(["evaluate", *map(str, words)]) == 0
    return capsys.readouterr()


def fails(capsys, *words):
    assert command.main(["evaluate", *map(str, words)]) == 2
    return capsys.readouterr().err


# ---------------------------------------------------------------- scores and tests


@pytest.mark.parametrize("name", SACREBLEU)
def test_scores_intervals_and_p_values_are_those_of_sacrebleu(name):
    references = sentences(40)
    baseline, system = damaged(references, 0.5, 1), damaged(references, 0.45, 2)
    metric, before = scored(name, [baseline], references)
    _, after = scored(name, [system], references)
    own = getattr(sacrebleu.metrics, SACREBLEU[name])()
    whole = own.corpus_score(system, [references], n_bootstrap=1000)
    assert after.mean == pytest.approx(whole.score)
    assert after.interval() == pytest.approx(whole._ci, abs=1e-3)
    named = [("baseline", baseline), ("system", system)]
    for test, kind, number in (("bootstrap", "bs", 1000), ("randomisation", "ar", 500)):
        _, table = PairedTest(named, {name: own}, [references], kind, number)()
        (paired,) = (values for key, values in table.items() if key != "System")
        (found,) = paired_test(metric, before, after, test, number)
        assert found["difference"] == pytest.approx(paired[1].score - paired[0].score)
        # sacrebleu adds in float32: a resample may fall on the other side of the limit
        assert found["p"] == pytest.approx(paired[1].p_value, abs=2.5 / number)
        assert 0.001 < found["p"] < 0.9


@pytest.mark.parametrize("name", METRICS)
def test_a_resample_is_the_corpus_of_its_sentences(name):
    references = sentences(9)
    run = damaged(references, 0.4, 3)
    metric, found = scored(name, [run], references, samples=5)
    for counts, score in zip(resample(9, 5), found.samples[0]):
        assert counts.sum() == 9
        drawn = [place for place, often in enumerate(counts) for _ in range(often)]
        lines = [run[place] for place in drawn], [[references[place] for place in drawn]]
        assert score == pytest.approx(metric.metric.corpus_score(*lines).score)


def mean_of_scores(own, runs, references, places):
    """The mean over the runs of the score of the sentences at these places."""
    scores = [
        own.corpus_score([run[place] for place in places], [[references[p] for p in places]]).score
        for run in runs
    ]
    return sum(scores) / len(scores)


def by_resampling(own, references, baseline, system, drawn):
    """What chance makes of the difference of the means, as loops over resamples and runs."""
    apart = []
    for places in drawn:
        before = mean_of_scores(own, baseline, references, places)
        apart.append(abs(mean_of_scores(own, system, references, places) - before))
    return [each - sum(apart) / len(apart) for each in apart]


def by_exchanging(own, references, baseline, system, drawn):
    """The same after each exchange of translations, as loops over runs and lines."""
    found, places = [], range(len(references))
    for exchange in drawn:
        apart = []
        for before, after in zip(baseline, system):
            first = [b if swap else a for swap, b, a in zip(exchange, before, after)]
            second = [a if swap else b for swap, b, a in zip(exchange, before, after)]
            scores = [mean_of_scores(own, [run], references, places) for run in (first, second)]
            apart.append(scores[0] - scores[1])
        found.append(abs(sum(apart) / len(apart)))
    return found


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_several_runs_are_tested_by_their_mean(test):
    references = sentences(12)
    baseline = [damaged(references, 0.5, seed) for seed in (1, 2)]
    system = [damaged(references, 0.4, seed) for seed in (3, 4)]
    number = 40
    metric, before = scored("chrf", baseline, references, number)
    _, after = scored("chrf", system, references, number)
    own, rng = sacrebleu.metrics.CHRF(), np.random.default_rng(12345)
    if test == "bootstrap":
        drawn = rng.choice(12, size=(number, 12))
        chance = by_resampling(own, references, baseline, system, drawn)
    else:
        drawn = rng.integers(2, size=(number, 12), dtype=bool)
        chance = by_exchanging(own, references, baseline, system, drawn)
    difference = after.mean - before.mean
    expected = (sum(each > abs(difference) for each in chance) + 1) / (number + 1)
    found = paired_test(metric, before, after, test, number)
    assert found[0] == {"difference": pytest.approx(difference), "p": pytest.approx(expected)}
    assert len(found) == 3 and len({each["p"] for each in found}) > 1
    for place in (0, 1):
        apart = after.values[place] - before.values[place]
        assert found[1 + place]["difference"] == pytest.approx(apart)


def test_numbers_of_runs_may_differ():
    references = sentences(12)
    run = damaged(references, 0.5, 3)
    (metric, once), (_, twice), (_, base) = (
        scored("chrf", runs, references, 40) for runs in ([run], [run] * 2, [references])
    )
    assert paired_test(metric, base, twice) == paired_test(metric, base, once)


def test_equal_translations_do_not_differ():
    references = sentences(12)
    metric, one = scored("bleu", [damaged(references, 0.5, 1)], references)
    for test in ("bootstrap", "randomisation"):
        assert paired_test(metric, one, one, test, 50) == [{"difference": 0.0, "p": 1.0}]


# ---------------------------------------------------------------- reading


def generated(lines, mark="D"):
    """What fairseq-generate prints for these translations: out of order, two of each sentence."""
    printed = ["2030-01-02 03:04:05 | INFO | fairseq_cli.generate | noise"]
    for number in sorted(range(len(lines)), key=lambda number: -number % 7):
        printed += [f"S-{number}\tsource", f"T-{number}\ttarget"]
        for score, text in ((-0.25, lines[number]), (-1.5, "worse")):
            printed.append(f"H-{number}\t{score}\t{text if mark == 'H' else '▁raw'}")
            if mark == "D":
                printed.append(f"D-{number}\t{score}\t{text}")
            printed.append(f"P-{number}\t-0.5 -0.25")
    return [*printed, "Generate test with beam=2: BLEU4 = 1.00"]


@pytest.mark.parametrize("mark", ["D", "H"])
def test_what_fairseq_generate_printed_is_read(tmp_path, mark):
    lines = [*sentences(12), ""]
    path = write(tmp_path / "log", generated(lines, mark))
    assert evaluate_input.read_hypotheses(path, lines, "ref") == lines
    assert evaluate_input.sentence_lines(path, "P", 13) == ["-0.5 -0.25"] * 13
    with pytest.raises(UsageError, match="log: 13 translations of 15 sentences; without one: 14"):
        evaluate_input.read_hypotheses(path, [*lines, "", ""], "ref")


def test_plain_files_are_read(tmp_path):
    # a form feed or U+2028 inside a sentence does not end it
    lines = ["a\x0cb", "", "c\u2028d"]
    plain = write(tmp_path / "plain", lines)
    assert evaluate_input.read_lines(plain) == lines
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert evaluate_input.read_lines(packed) == lines
    plain.write_bytes(b"good\nbad \xff\n")
    with pytest.raises(UsageError, match=r"plain, line 2: not UTF-8"):
        evaluate_input.read_lines(plain)
    packed.write_bytes(packed.read_bytes()[:12] + b"damaged")
    with pytest.raises(UsageError, match="cannot read .*packed.gz"):
        evaluate_input.read_lines(packed)
    with pytest.raises(UsageError, match="log: .* has no number after D-"):
        evaluate_input.marked_lines(["D-x\t1"], "D", 1, "log")
    with pytest.raises(UsageError, match="cannot read .*none"):
        evaluate_input.read_lines(tmp_path / "none")


def test_subwords_are_joined():
    join = evaluate_input.join_subwords
    assert join("▁A ▁sm all ▁house .", "sentencepiece") == "A small house."
    for name in ("subword_nmt", "fastbpe"):
        assert join("a sm@@ all hou@@ se cut@@", name) == "a small house cut"
    assert join("a@@ b", None) == "a@@ b"
    assert evaluate_input.subwords_left(["▁a", "sm@@ all", "end@@", "me@@you", "plain"]) == 3


def test_moses_tokens_are_joined():
    pytest.importorskip("sacremoses")
    assert evaluate_input.moses_detokenizer("en")("It 's good , she said .") == (
        "It's good, she said."
    )


# ---------------------------------------------------------------- the command


@pytest.fixture
def files(tmp_path):
    """ref, and two runs each of a baseline and of a better system."""
    references = sentences(30)
    made = {"ref": references}
    for name, share in (("base", 0.6), ("good", 0.2)):
        for seed in (1, 2):
            made[f"{name}{seed}"] = damaged(references, share, seed)
    return {name: write(tmp_path / name, lines) for name, lines in made.items()}


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
    tests = result["tests"]["good"]["bleu"]
    assert all(test["difference"] > 20 and test["p"] < 0.01 for test in tests) and len(tests) == 3
    assert result["tests"]["good"]["ter"][0]["difference"] < 0
    assert "| good, mean | +" in printed and "| good, run 2 | +" in printed
    # one run against the mean of two
    assert len(result["tests"]["same"]["bleu"]) == 1 and "| same | " in printed
    assert "bs:200|seed:12345" in result["signatures"]["BLEU"]
    cells = [line.split("\t") for line in outputs[1].read_text(encoding="utf-8").splitlines()]
    assert ["good", "bleu", "2", "score", str(good["runs"][1])] in cells
    assert ["good", "bleu", "mean", "p", str(tests[0]["p"])] in cells


def test_without_a_baseline(files, capsys):
    printed = evaluate(capsys, "--hyp", files["good1"], "--ref", files["ref"], "--metric", "chrf")
    assert "chrF" in printed.out and "BLEU" not in printed.out and "| p |" not in printed.out


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


def test_errors_name_what_is_wrong(files, tmp_path, capsys, monkeypatch):
    hyp, ref = ("--hyp", files["good1"]), ("--ref", files["ref"])
    short = write(tmp_path / "short", ["one", "two"])
    message = fails(capsys, "--hyp", short, *ref)
    assert f"{short} has 2 lines and {files['ref']} 30" in message
    message = fails(capsys, *hyp, *ref, "--baseline", short)
    assert f"{short} has 2 lines and {files['ref']} 30" in message
    assert "holds no line" in fails(capsys, *hyp, "--ref", write(tmp_path / "empty", []))
    assert "--label: 2 names for 1 --hyp" in fails(capsys, *hyp, *ref, "--label", "a", "b")
    assert "two systems" in fails(capsys, *hyp, *hyp, *ref)
    assert "--samples 0: allowed" in fails(capsys, *hyp, *ref, "--samples", 0)
    assert ".md, .tsv, .json" in fails(capsys, *hyp, *ref, "--output", "x.txt")
    assert "sacrebleu has 13a" in fails(capsys, *hyp, *ref, "--tokenize", "none-such")
    uneven = ["--baseline", files["base1"], files["base2"], "--test", "randomisation"]
    assert "1 runs in --hyp" in fails(capsys, *hyp, *ref, *uneven)
    assert "needs --source" in fails(capsys, *hyp, *ref, "--comet", "m")
    assert "needs --target-lang" in fails(capsys, *hyp, *ref, "--tokenizer", "moses")
    for name in ("sacremoses", "comet"):
        monkeypatch.setitem(sys.modules, name, None)
    moses = ("--tokenizer", "moses", "--target-lang", "en")
    assert "pip install sacremoses" in fails(capsys, *hyp, *ref, *moses)
    comet = ("--comet", "m", "--source", files["ref"])
    assert "pip install unbabel-comet" in fails(capsys, *hyp, *ref, *comet)


def test_comet_where_it_is_installed(files, tmp_path, capsys, monkeypatch):
    """Against a stand-in with the interface of unbabel-comet 2."""

    class Model:
        @staticmethod
        def predict(data, batch_size, gpus):
            return {"scores": [0.9 if one["mt"] == one["ref"] else 0.5 for one in data]}

    package = types.ModuleType("comet")
    package.__version__ = "2.2"
    package.download_model = lambda name: f"{name}.ckpt"
    package.load_from_checkpoint = lambda path: Model
    monkeypatch.setitem(sys.modules, "comet", package)
    words = ["--ref", files["ref"], "--metric", "bleu", "--comet", "some/model"]
    output = tmp_path / "found.json"
    words += ["--hyp", files["ref"], "--baseline", files["base1"], "--output", output]
    printed = evaluate(capsys, *words, "--source", files["ref"]).out
    assert "model:some/model|version:2.2" in printed
    result = json.loads(output.read_text(encoding="utf-8"))
    assert result["scores"][str(files["ref"])]["comet"]["mean"] == pytest.approx(90)
    test = result["tests"][str(files["ref"])]["comet"][0]
    assert test["difference"] > 20 and test["p"] < 0.01
    short = write(tmp_path / "short", ["one"])
    assert f"--source {short} has 1 lines" in fails(capsys, *words, "--source", short)


@pytest.mark.parametrize(
    "values, text",
    [
        ([1.5], "1.50"),
        ([1.0, 2.0], "1.50 (1.00-2.00)"),
        ([-3.0, -1.0], "-2.00 (-3.00 to -1.00)"),
        ([-0.34, 0.339], "0.00 (-0.34 to 0.34)"),
    ],
)
def test_a_range_below_zero_has_no_two_dashes(values, text):
    assert evaluate_report.cell(evaluate_report.spread(values)) == text
