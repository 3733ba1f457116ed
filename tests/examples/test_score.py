"""The commands of score.py that are not only a metric: curves, and the best of several runs."""

import pytest
import sacrebleu
from experiments import UsageError, parameters
from experiments.definition import FOLDER
from experiments.scores import read_scores
from script_modules import load_script


@pytest.fixture(scope="module")
def score():
    """Function (words) that runs examples/score.py."""
    module = load_script(FOLDER / "score.py")

    def run(*words):
        args = module.arguments([str(word) for word in words])
        args.function(args)

    return run


@pytest.fixture
def log(tmp_path):
    """A log of fairseq-train: epochs of 10 updates, validations at 6, 12 and 18."""
    start = "2026-01-01 00:00:00 | INFO"
    lines = []
    for number, (loss, bleu) in enumerate(((9, 1), (5, 2), (4, 3)), start=1):
        validated = f"valid on 'valid' subset | ppl {loss} | de-en_bleu {bleu}"
        lines.append(f"{start} | valid | epoch 001 | {validated} | num_updates {6 * number}")
        if number < 3:
            lines.append(
                f"{start} | train | epoch {number:03d} | loss 1 | num_updates {10 * number} "
                "| train_wall 1 | wall 9"
            )
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "train.log"


def values(folder):
    """{(metric, fields): value} of what was written."""
    return {(s.metric, *s.where.values()): s.value for s in read_scores(folder)}


def test_curves_by_updates_and_epochs(score, log, tmp_path):
    into = ("--log", log, "--where", "set=val", "--into", tmp_path / "scores")
    score("curve", "de-en_bleu=BLEU, greedy", "--by", "updates", "--per", 6, *into)
    greedy = {("BLEU, greedy", "val", str(place)): float(place) for place in (1, 2, 3)}
    assert values(tmp_path) == greedy
    score("curve", "ppl=perplexity", "--by", "epoch", *into)
    score("curve", "ppl=perplexity", *into)
    by_epoch = {
        ("perplexity", "val", "0.6"): 9.0,
        ("perplexity", "val", "1.2"): 5.0,
        ("perplexity", "val", "1.8"): 4.0,
        ("perplexity", "val"): 4.0,
    }
    assert values(tmp_path) == {**greedy, **by_epoch}


def test_a_metric_that_the_log_does_not_have(score, log, tmp_path):
    with pytest.raises(UsageError, match=r"train\.log: it has no validation with bleu"):
        score("curve", "bleu", "--log", log, "--into", tmp_path / "scores")


def test_the_best_run_is_chosen_on_other_lines(score, tmp_path, write):
    write(tmp_path / "valid", ["a", "b"])
    write(tmp_path / "test", ["a", "a", "b"])
    for name, valid, test in (("one", ["a", "a"], "aab"), ("two", ["a", "b"], "bbb")):
        write(tmp_path / name / "valid.out", valid)
        write(tmp_path / name / "test.out", list(test))
    choice = ("--by", "valid.out", tmp_path / "valid", "--take", "test.out", tmp_path / "test")
    runs = ("--of", tmp_path / "one", tmp_path / "two")
    score("best", "label", *runs, *choice, "--where", "set=test", "--into", tmp_path / "scores")
    # "two" is better on the validation lines, though worse on the others
    assert values(tmp_path) == {("accuracy", "test"): pytest.approx(100 / 3)}
    assert read_scores(tmp_path)[0].sums == [[0, 1], [0, 1], [1, 1]]


def test_a_run_that_diverged_is_not_the_best(score, tmp_path, write):
    write(tmp_path / "ref", ["", ""])
    for name, nats in (("one", "nan"), ("two", "4.0"), ("three", "5.0")):
        write(tmp_path / name / "out", [f"{nats} 2", "1.0 1"])
    choice = ("--by", "out", tmp_path / "ref", "--take", "out", tmp_path / "ref")
    runs = ("--of", *(tmp_path / name for name in ("one", "two", "three")))
    score("best", "likelihood", *runs, *choice, "--into", tmp_path / "scores")
    assert values(tmp_path) == {("log-likelihood",): -2.5}


def test_a_score_tells_its_references(score, tmp_path, write):
    hypotheses = write(tmp_path / "hyp", ["a", "b"])
    for name, lines in (("first", ["a", "b"]), ("copy", ["a", "b"]), ("other", ["a", "c"])):
        options = ("--hyp", hypotheses, "--ref", write(tmp_path / name / "ref", lines))
        score("text", "chrf", *options, "--into", tmp_path / name / "scores")
    first, copy, other = (read_scores(tmp_path / name)[0] for name in ("first", "copy", "other"))
    assert first.references and first.references == copy.references != other.references


def test_bleu_of_a_language_without_blanks_is_that_of_its_tokeniser(score, tmp_path, write, capsys):
    hypotheses = ["\u732b\u5728\u684c\u5b50\u4e0a"]
    references = ["\u732b\u5750\u5728\u684c\u5b50\u4e0a"]
    hyp = write(tmp_path / "test.hyp", hypotheses)
    for language in ("zh", "en"):
        ref = write(tmp_path / f"test.{language}", references)
        text = ("text", "bleu", "chrf", "--hyp", hyp, "--ref", ref, "--into", tmp_path / "scores")
        score(*text, "--tokenize", "zh=zh", "ja=char", "--where", f"to={language}")
    said = capsys.readouterr().out.splitlines()
    (warning,) = (line for line in said if line.startswith("warning"))  # for en
    assert f"{ref}: no blanks between words" in warning and "en=zh" in warning
    lao = write(tmp_path / "test.lo", ["\u0eaa\u0eb0\u0e9a\u0eb2\u0e8d\u0e94\u0eb5"])
    score("text", "bleu", "--hyp", hyp, "--ref", lao, "--into", tmp_path / "other",
          "--tokenize", "lo=zh")  # fmt: skip
    assert (
        "--tokenize lo=char or lo=flores200 cuts the texts (the variable METRICS)"
        in capsys.readouterr().out
    )
    bleu = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="zh")
    scores = values(tmp_path)
    assert scores["BLEU", "zh"] == pytest.approx(bleu.score) and bleu.score > 50
    assert scores["BLEU", "en"] < 1 and scores["chrF", "zh"] == scores["chrF", "en"]
    with pytest.raises(UsageError, match="--tokenize zh: allowed: LANGUAGE=TOKENISER"):
        score(*text, "--tokenize", "zh")
    with pytest.raises(UsageError, match="--tokenize none_such: sacrebleu has "):
        score(*text, "--tokenize", "en=none_such")


@pytest.mark.parametrize(
    "words", ["text bleu", "text label", "likelihood perplexity", "best label"]
)
def test_references_without_a_line_are_named(score, tmp_path, write, words):
    for name in ("hyp", "ref"):
        write(tmp_path / name, [])
    option, options = "--ref", ["--hyp", tmp_path / "hyp", "--ref", tmp_path / "ref"]
    if words.startswith("best"):
        option, options = "--by", ["--of", tmp_path]
        options += [word for name in ("--by", "--take") for word in (name, "hyp", tmp_path / "ref")]
    with pytest.raises(UsageError, match=rf"^{option} \S*ref holds no line"):
        score(*words.split(), *options, "--into", tmp_path / "scores")


def test_a_file_in_the_place_of_the_folder_is_named(score, tmp_path):
    (tmp_path / "file").write_text("a b c d\n", encoding="utf-8")
    words = ["text", "bleu", "--hyp", tmp_path / "file", "--ref", tmp_path / "file"]
    with pytest.raises(UsageError, match=r"^cannot write to \S*file: \S*file: File exists"):
        score(*words, "--into", tmp_path / "file")


@pytest.mark.parametrize(
    "words, message",
    [
        (["cost"], "allowed: --checkpoint, --log, or both"),
        (["cost", "--checkpoint", "x"], "--checkpoint and --data: allowed: both"),
        (["cost", "--log", "x", "--pairs", "de-en"], "--pairs de-en: does nothing"),
        (["cost", "--log", "x", "--used", "all"], "--used all: does nothing without --pairs"),
        (["curve", "ppl", "--log", "x", "--per", "2"], "--per 2: allowed: 1 or more, with --by"),
        (["curve", "ppl", "--log", "x", "--by", "updates", "--per", "0"], "--per 0: allowed"),
        (["curve", "ppl=x", "loss=x", "--log", "x"], "ppl=x loss=x: two are called x"),
        (["cost", "--log", "x", "--log", "./x"], "--log x: listed twice"),
        (["cost", "--checkpoint", "x", "x", "--data", "d"], "--checkpoint x: listed twice"),
    ],
)
def test_options_that_would_do_nothing_are_refused(score, tmp_path, words, message):
    with pytest.raises(UsageError, match=message):
        score(*words, "--into", tmp_path)


def test_the_best_run_is_not_that_with_the_highest_error(score, tmp_path, capsys):
    choice = ["--of", "a", "--by", "h", "r", "--take", "h", "r", "--into", tmp_path]
    for metric in ("error", "ter", "perplexity", "ner_ill_formed"):
        with pytest.raises(SystemExit):
            score("best", metric, *choice)
        assert f"invalid choice: '{metric}'" in capsys.readouterr().err


def test_points_that_are_close_to_each_other_keep_their_values(score, log, tmp_path):
    """Such as an epoch's validation, and one a few updates later where the training ended."""
    score(
        "curve", "ppl", "--log", log, "--by", "updates", "--per", 10, "--into", tmp_path / "scores"
    )
    assert values(tmp_path) == {("ppl", "1"): 9.0, ("ppl", "1.2"): 5.0, ("ppl", "2"): 4.0}


@pytest.mark.parametrize("repeated", [["set=val", "set=test"], ["set=val", "--where", "set=test"]])
def test_a_field_has_one_value(score, log, tmp_path, repeated):
    with pytest.raises(UsageError, match="--where set=test: set is val already"):
        score("curve", "ppl", "--log", log, "--into", tmp_path, "--where", *repeated)


def test_options_that_are_repeated_add_up(score, log, tmp_path):
    where = ("--where", "set=val", "--where", "direction=de-en")
    score("curve", "ppl", "--log", log, *where, "--into", tmp_path / "scores")
    assert values(tmp_path) == {("ppl", "val", "de-en"): 4.0}


def test_the_place_of_a_point_is_not_named_twice(score, log, tmp_path):
    words = ("--by", "epoch", "--where", "epoch=3", "--into", tmp_path)
    with pytest.raises(UsageError, match="--where epoch=3: it is what --by epoch tells"):
        score("curve", "ppl", "--log", log, *words)


def test_what_a_cost_cannot_be_counted_of_is_named(score, tmp_path, write):
    damaged = write(tmp_path / "model.pt", ["no checkpoint"])
    words = ("--data", tmp_path, "--into", tmp_path, "--checkpoint")
    with pytest.raises(UsageError, match=r"--checkpoint \S*none\.pt: .*no such checkpoint"):
        score("cost", *words, tmp_path / "none.pt")
    with pytest.raises(UsageError, match=r"--checkpoint \S*model\.pt: .*cannot be read"):
        score("cost", *words, damaged)


def test_pairs_without_dictionaries_are_named(tmp_path):
    with pytest.raises(UsageError, match="--pairs zh-Hans-en: allowed: SOURCE-TARGET"):
        parameters.direction("zh-Hans-en", tmp_path)
    with pytest.raises(UsageError, match=r"--data \S+: there is no \S+dict\.de\.txt, for --pairs"):
        parameters.direction("de-en", tmp_path)
