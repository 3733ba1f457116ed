"""The asymmetric setting through fairseq's commands: train, resume, validate, label, write."""

import math

import pytest
import torch
from common.inprocess import generate, hypotheses, interactive, references, train, validate
from dual.reviews import KNOWN, OTHERS, SIZES, binarise
from fairseq import checkpoint_utils

from fairseq_ext import __main__ as command
from fairseq_ext.dual.reranker import Terms, dual_score

SEARCH = ("--batch-size", 10)
TASK = ("--task", "dual_translation")


def trained(data, folder, *options, sides=("-s", "text", "-t", "label"), updates=150):
    """The log's records of a training into ``folder``."""
    words = [data, *TASK, *sides, "--arch", "dual_lstm_classifier_tiny", "--optimizer", "adam"]
    words += ["--criterion", "dual_label_cross_entropy", "--lr", 0.02, "--batch-size", 20]
    words += ["--no-epoch-checkpoints", "--max-update", updates, "--save-dir", folder, "--seed", 1]
    return train(*words, *options)


@pytest.fixture(scope="module")
def run_of(reviews, tmp_path_factory):
    """{"dual", "classifier", "generator": folder of the run, "log": the dual run's records}."""
    runs = {name: tmp_path_factory.mktemp(name) for name in ("dual", "classifier", "generator")}
    runs["log"] = trained(reviews / "bin", runs["dual"])
    trained(reviews / "bin", runs["classifier"], "--one-way")
    other = ("-s", "label", "-t", "text")
    trained(reviews / "bin", runs["generator"], "--one-way", sides=other, updates=40)
    return runs


@pytest.fixture(scope="module")
def search(reviews, run_of):
    """Function (system, source, target, options...) -> what fairseq-generate prints."""

    def call(system, source, target, *options):
        path = run_of[system] / "checkpoint_last.pt"
        words = [reviews / "bin", *TASK, "-s", source, "-t", target, "--path", path]
        return generate(*words, *SEARCH, *options)

    return call


def token_scores(output, last=False):
    """{number: log P of the (first or last) hypothesis, natural} of the P lines."""
    log_probs = {}
    for line in output.splitlines():
        if line.startswith("P-"):
            label, scores = line.split("\t")
            value = sum(map(float, scores.split())) * math.log(2)
            if last or int(label[2:]) not in log_probs:
                log_probs[int(label[2:])] = value
    return log_probs


def test_both_directions_are_learnt_and_logged(run_of):
    record = [entry for entry in run_of["log"] if "valid_loss" in entry][-1]
    assert record["valid_text-label_error"] <= 10
    assert 1 < record["valid_label-text_ppl"] < 20
    uniform = len(OTHERS) + 4 + 1
    assert record["valid_label-text_ppl"] < uniform


def test_directions_that_do_not_improve_leave(reviews, tmp_path):
    """The loss of this criterion is derived from other meters."""
    trained(reviews / "bin", tmp_path, "--pair-patience", 1, "--lr", 1)
    end = checkpoint_utils.torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)
    assert end["optimizer_history"][-1]["num_updates"] < 150
    left = end["extra_state"]["train_iterator"]["streams"]["left"]
    assert set(left) == {"text-label", "label-text"}


def test_validate_logs_the_direction_that_is_named(reviews, run_of):
    last = [entry for entry in run_of["log"] if "valid_loss" in entry][-1]
    path = run_of["dual"] / "checkpoint_last.pt"
    for source, target, name in (("text", "label", "error"), ("label", "text", "ppl")):
        words = [reviews / "bin", *TASK, "-s", source, "-t", target, "--path", path]
        (record,) = validate(*words, "--valid-subset", "valid", "--batch-size", 20)
        assert record[f"valid_{source}-{target}_{name}"] == last[f"valid_{source}-{target}_{name}"]


def test_all_labels_are_hypotheses(search):
    output = search("dual", "text", "label", "--nbest", 5)
    for nbest in hypotheses(output).values():
        (best, first), (worst, second) = nbest
        assert {first, second} == {"pos", "neg"} and best >= worst
        assert 2**best + 2**worst == pytest.approx(1, abs=1e-5)
    truth = references(output)
    right = sum(hypotheses(output)[n][0][1] == label for n, label in truth.items())
    assert len(truth) == 20 and right >= 18


def test_interactive_labels_like_generate(reviews, run_of, search):
    words = [reviews / "bin", *TASK, "-s", "text", "-t", "label", "--input"]
    words += [reviews / "test.text", "--path", run_of["dual"] / "checkpoint_last.pt"]
    typed = hypotheses(interactive(*words, "--buffer-size", 20, "--batch-size", 7))
    generated = hypotheses(search("dual", "text", "label"))
    assert {n: text for n, [(_, text)] in typed.items()} == {
        n: h[0][1] for n, h in generated.items()
    }


@pytest.mark.parametrize("norm", ["tokens", "none"])
def test_dual_inference_is_eq_7_over_all_labels(search, norm):
    options = ("--nbest", 2, "--dual-alpha", 0.3, "--dual-length-norm", norm)
    output, plain = search("dual", "text", "label", *options), {}
    for line in search("dual", "text", "label", "--nbest", 2).splitlines():
        if line.startswith("H-"):
            number, score, label = line.split("\t")
            plain[int(number[2:]), label] = float(score) * math.log(2)
    # log P(text | true label) by fairseq's scorer, which knows nothing of this
    scored = search("dual", "label", "text", "--score-reference")
    log_x_y, truth = token_scores(scored), references(output)
    words = {n: len(text.split()) + 1 for n, text in references(scored).items()}
    ranked = hypotheses(output)
    assert len(ranked) == 20
    for number, nbest in ranked.items():
        scores = {label: score for score, label in nbest}
        label = truth[number]
        terms = Terms(plain[number, label], 2, log_x_y[number], words[number])
        expected = dual_score(terms, 0.3, norm) / math.log(2)
        assert scores[label] == pytest.approx(expected, abs=2e-3)
        assert [score for score, _ in nbest] == sorted(scores.values(), reverse=True)


def test_two_checkpoints_of_one_direction_each(run_of, search):
    other = run_of["generator"] / "checkpoint_last.pt"
    output = search("classifier", "text", "label", "--dual-alpha", 0.5, "--dual-path", other)
    assert len(hypotheses(output)) == 20
    with pytest.raises(ValueError, match="the model was trained for text-label"):
        search("classifier", "text", "label", "--dual-alpha", 0.5)


def test_several_checkpoints_give_the_mean_probability(reviews, run_of, search):
    paths = [run_of[name] / "checkpoint_last.pt" for name in ("dual", "classifier")]
    words = [reviews / "bin", *TASK, "-s", "text", "-t", "label", "--nbest", 2, *SEARCH]
    both = hypotheses(generate(*words, "--path", ":".join(map(str, paths))))
    alone = [hypotheses(search(name, "text", "label", "--nbest", 2)) for name in ("dual",
             "classifier")]  # fmt: skip
    assert len(both) == 20
    for number, nbest in both.items():
        for score, label in nbest:
            parts = [
                {text: 2**log2_p for log2_p, text in labels[number]}[label] for labels in alone
            ]
            assert 2**score == pytest.approx(sum(parts) / 2, abs=1e-5)


def test_texts_are_sampled_from_a_label(search, reviews, run_of, tmp_path):
    options = ("--sampling", "--beam", 3, "--nbest", 3, "--max-len-b", 12, "--seed", 5)
    first = hypotheses(search("dual", "label", "text", *options))
    assert first == hypotheses(search("dual", "label", "text", *options))
    texts = [text for nbest in first.values() for _, text in nbest]
    assert len(set(texts)) > 20
    begun = hypotheses(search("dual", "label", "text", *options, "--prefix-size", 1))
    truth = references(search("dual", "label", "text", *options))
    for number, nbest in begun.items():
        assert all(text.split()[0] == truth[number].split()[0] for _, text in nbest)
    (tmp_path / "labels").write_text("pos\n" * 30, encoding="utf-8")
    words = [reviews / "bin", *TASK, "-s", "label", "-t", "text", *options]
    words += ["--path", run_of["dual"] / "checkpoint_last.pt", "--input", tmp_path / "labels"]
    typed = hypotheses(interactive(*words, "--buffer-size", 30, "--batch-size", 30))
    told = [word for nbest in typed.values() for _, text in nbest for word in text.split()]
    right, wrong = (sum(told.count(word) for word in KNOWN[label]) for label in ("pos", "neg"))
    assert right > 2 * wrong


def test_a_resumed_run_is_the_whole_run(reviews, tmp_path):
    options = ("--dropout", 0, "--disable-validation")
    trained(reviews / "bin", tmp_path / "whole", *options, updates=9)
    trained(reviews / "bin", tmp_path / "parts", *options, updates=4)
    trained(reviews / "bin", tmp_path / "parts", *options, updates=9)
    load = checkpoint_utils.torch.load
    whole, parts = (
        load(tmp_path / name / "checkpoint_last.pt", weights_only=True)["model"]
        for name in ("whole", "parts")
    )
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_tune_alpha_by_accuracy(search, reviews, run_of, tmp_path, capsys):
    output = tmp_path / "alpha.png"
    words = ["tune-alpha", "--ref", reviews / "test.label", "--output", output]
    words += ["--metric", "accuracy", "--alpha", 0, 0.5, 1, "--", reviews / "bin", "-s", "text"]
    words += ["-t", "label", "--gen-subset", "test", "--cpu", "--num-workers", 0, *SEARCH]
    words += ["--path", run_of["dual"] / "checkpoint_last.pt"]
    assert command.main([str(word) for word in words]) == 0
    capsys.readouterr()
    rows = [line.split("\t") for line in output.with_suffix(".tsv").read_text().splitlines()[1:]]
    assert [float(alpha) for alpha, *_ in rows] == [0, 0.5, 1]
    for alpha, accuracy, _ in rows:
        ranked = search("dual", "text", "label", "--dual-alpha", alpha)
        truth = references(ranked)
        right = sum(hypotheses(ranked)[n][0][1] == label for n, label in truth.items())
        assert float(accuracy) == pytest.approx(100 * right / 20)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "lines, message",
    [
        (("good film", "", "bad"), r"test.text: line 2: an empty text \(1 of them\)"),
        (("pos", "fine", "neg"), "test.label: line 2: a label that dict.label.txt does not have; "),
        (("pos", "pos neg", "neg"), "test.label: line 2: 2 words, a label is one"),
    ],
)
def test_bad_lines_are_named(run_of, reviews, tmp_path, lines, message):
    texts, labels = ("the film", "a plot", "so good"), ("pos", "neg", "pos")
    if "text:" in message:
        texts = lines
    else:
        labels = lines
    for side, side_lines in (("text", texts), ("label", labels)):
        (tmp_path / f"test.{side}").write_text("\n".join(side_lines) + "\n", encoding="utf-8")
    data = reviews / "bin"
    options = ["--srcdict", data / "dict.text.txt", "--tgtdict", data / "dict.label.txt"]
    bad = binarise(tmp_path, *options, splits=("test",))
    path = run_of["dual"] / "checkpoint_last.pt"
    for source, target in (("text", "label"), ("label", "text")):
        with pytest.raises(ValueError, match=message):
            generate(bad, *TASK, "-s", source, "-t", target, "--path", path)


@pytest.mark.parametrize(
    "source, target, text, number, message",
    [
        ("text", "label", "\ngood film", 1, "an empty text"),
        ("text", "label", "good film\n\ngood film", 2, "an empty text"),
        ("label", "text", "pos\ngreat", 2, "a label that dict.label.txt does not have"),
        ("label", "text", "pos neg\npos", 1, "2 words, a label is one"),
    ],
)
def test_bad_typed_lines_are_named(
    run_of, reviews, tmp_path, source, target, text, number, message
):
    """They have an empty answer, the others theirs; each in its place."""
    typed = tmp_path / "typed"
    typed.write_text(text + "\n", encoding="utf-8")
    words = [reviews / "bin", *TASK, "-s", source, "-t", target, "--input", typed]
    output = interactive(*words, "--path", run_of["dual"] / "checkpoint_last.pt")
    assert f"{typed}: line {number} is not translated: {message}" in output
    answers = [line for line in output.splitlines() if line.startswith("H-")]
    assert len(answers) == len(typed.read_text().splitlines())
    assert answers[number - 1] == f"H-{number - 1}\t-inf\t"
    assert sum("-inf" in answer for answer in answers) == 1


def test_sides_that_are_exchanged_are_noticed(reviews, tmp_path):
    """The file of labels holds the texts."""
    for split in SIZES:
        for side, other in (("text", "label"), ("label", "text")):
            text = (reviews / f"{split}.{side}").read_text(encoding="utf-8")
            (tmp_path / f"{split}.{other}").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"valid.label: line \d+: \d words, a label is one"):
        trained(binarise(tmp_path), tmp_path / "run")
