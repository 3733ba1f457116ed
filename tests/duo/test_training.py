"""Plugin runs inside the process: the classifier and the Transformer by fairseq's commands."""

import math
import random
from unittest.mock import Mock

import pytest
import torch
from common import inprocess
from common.words import dictionary_with
from fairseq import options
from fairseq_cli import preprocess

from fairseq_ext.duo.classifier.task import LabelGenerator

SIZES = {"train": 160, "valid": 24, "test": 32}
TASK = ["--task", "text_classification", "-s", "text", "-t", "label"]


def write(folder, rows):
    """rows: {split: [(text, label)]} -> folder, binarised with the dictionaries of train."""
    words = ["-s", "text", "-t", "label", "--destdir", folder / "bin"]
    for split, pairs in rows.items():
        for ending, lines in zip(("text", "label"), zip(*pairs)):
            text = "".join(line + "\n" for line in lines)
            (folder / f"{split}.{ending}").write_text(text, encoding="utf-8")
        words += [f"--{split}pref", folder / split]
    preprocess.main(options.get_preprocessing_parser().parse_args([str(word) for word in words]))
    return folder / "bin"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Texts of noise and of one word that decides; the last of the test texts is labelled wrong."""
    rng, rows = random.Random(3), {}
    for split, size in SIZES.items():
        rows[split] = []
        for number in range(size):
            label = ("bad", "fine", "good")[number % 3]
            words = [f"w{rng.randrange(12)}" for _ in range(rng.randint(1, 8))]
            words.insert(rng.randrange(len(words) + 1), f"is-{label}")
            rows[split].append((" ".join(words), label))
    rows["test"][-1] = (rows["test"][-1][0], "bad")
    return write(tmp_path_factory.mktemp("labelled"), rows)


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """(checkpoint, records of the log)."""
    folder = tmp_path_factory.mktemp("classifier")
    records = inprocess.train(
        data,
        *[*TASK, "--arch", "duo_classifier", "--duo-attention", "linear", "--dropout", 0],
        *["--embed-dim-s", 16, "--embed-dim-p", 24, "--ffn-embed-dim", 20],
        *["--criterion", "label_cross_entropy", "--optimizer", "adam", "--lr", 0.02],
        *["--batch-size", 16, "--max-epoch", 12, "--patience", 10, "--seed", 1],
        *["--save-dir", folder, "--no-epoch-checkpoints", "--no-progress-bar"],
    )
    return folder / "checkpoint_best.pt", records


def test_labels_are_learnt(trained):
    last = [record for record in trained[1] if "valid_accuracy" in record][-1]
    assert last["valid_accuracy"] >= 95 and last["valid_macro_f1"] >= 95
    assert last["valid_loss"] < math.log2(3)


def f1_by_hand(pairs):
    """Macro-F1 in percent of (found, true) pairs."""
    total, names = 0.0, sorted({name for pair in pairs for name in pair})
    for name in names:
        hits = sum(said == true == name for said, true in pairs)
        total += 2 * hits / sum((said == name) + (true == name) for said, true in pairs)
    return 100 * total / len(names)


def test_test_scores_are_those_of_the_labels_said(data, trained):
    """fairseq-validate on the test texts, against what fairseq-generate says of each."""
    records = inprocess.validate(
        data, *TASK, "--path", trained[0], "--valid-subset", "test", "--batch-size", 10
    )
    (scores,) = (record for record in records if "test_accuracy" in record)
    output = inprocess.generate(data, *TASK, "--path", trained[0], "--batch-size", 10)
    hypotheses, references = inprocess.hypotheses(output), inprocess.references(output)
    pairs = [(hypotheses[number][0][1], label) for number, label in references.items()]
    assert len(pairs) == SIZES["test"]
    right = sum(said == true for said, true in pairs)
    assert right < len(pairs)  # one label is wrong
    assert scores["test_accuracy"] == pytest.approx(100 * right / len(pairs), abs=0.01)
    assert scores["test_macro_f1"] == pytest.approx(f1_by_hand(pairs), abs=0.01)


def test_lines_are_labelled_with_probabilities(data, trained, tmp_path):
    """All labels, the best first: H- lines hold log2 P, P- lines P; unknown words are allowed."""
    file = tmp_path / "lines"
    file.write_text("w1 is-good unknown\nis-bad\n", encoding="utf-8")
    output = inprocess.interactive(
        data, *TASK, "--path", trained[0], "--input", file, "--nbest", 3, "--buffer-size", 2
    )
    labelled = inprocess.hypotheses(output)
    assert [labelled[number][0][1] for number in (0, 1)] == ["good", "bad"]
    printed = [line.split("\t") for line in output.splitlines() if line.startswith("P-")]
    for number in (0, 1):
        probabilities = [2**score for score, _ in labelled[number]]
        assert sum(probabilities) == pytest.approx(1, abs=1e-4)
        assert probabilities == sorted(probabilities, reverse=True)
        assert [float(prob) for name, prob in printed if name == f"P-{number}"] == pytest.approx(
            probabilities, abs=1e-3
        )


def test_true_labels_are_scored(data, trained, tmp_path):
    words = (data, *TASK, "--path", trained[0], "--batch-size", 10)
    scored = inprocess.hypotheses(inprocess.generate(*words, "--nbest", 3))
    output = inprocess.generate(*words, "--score-reference")
    hypotheses, truth = inprocess.hypotheses(output), inprocess.references(output)
    assert len(truth) == SIZES["test"]
    for number, label in truth.items():
        ((score, text),) = hypotheses[number]
        assert text == label
        assert score == next(other for other, name in scored[number] if name == label)
    (tmp_path / "lines").write_text("is-bad\n", encoding="utf-8")
    with pytest.raises(ValueError, match="--score-reference: the lines of fairseq-interactive"):
        inprocess.interactive(*words[:-2], "--score-reference", "--input", tmp_path / "lines")


def test_an_empty_line_has_no_label(data, trained, tmp_path):
    (tmp_path / "lines").write_text("is-bad\n\nis-good\n", encoding="utf-8")
    output = inprocess.interactive(
        data, *TASK, "--path", trained[0], "--input", tmp_path / "lines", "--buffer-size", 2
    )
    assert "lines: line 2 is not translated: an empty text" in output
    answers = inprocess.hypotheses(output)
    assert [answers[number][0][1] for number in (0, 1, 2)] == ["bad", "", "good"]


def test_several_models_give_the_mean_of_their_probabilities():
    """The list of an ensemble, and the probabilities of the true labels."""
    names = dictionary_with("x", "y", "z")
    first, second = torch.tensor([[0.7, 0.2, 0.1]]), torch.tensor([[0.01, 0.3, 0.69]])
    models = [Mock(get_normalized_probs=Mock(return_value=p.log())) for p in (first, second)]
    (nbest,) = LabelGenerator(names).generate(models, {"net_input": {}})
    means = {"z": 0.395, "x": 0.355, "y": 0.25}
    assert [names.string(entry["tokens"]) for entry in nbest] == list(means)
    assert [entry["score"].exp().item() for entry in nbest] == pytest.approx(list(means.values()))
    sample = {"net_input": {}, "target": torch.tensor([[names.index("y"), names.eos()]])}
    ((entry,),) = LabelGenerator(names, references=True).generate(models, sample)
    assert entry["score"].exp().item() == pytest.approx(means["y"])


GOOD = [("a b", "x"), ("b", "y")]


def test_binarised_texts_are_read_as_typed_ones(build, tmp_path):
    """Without their end symbol; train and train1 with ``combine``, in multiples of a length."""
    folder = write(tmp_path, {"train": GOOD, "valid": [("b a b", "y")]})
    for path in folder.glob("valid.*"):
        path.rename(folder / path.name.replace("valid", "train1"))
    words = ("-s", "text", "-t", "label", "--required-seq-len-multiple", 4)
    _, task, _ = build("duo_classifier", task="text_classification", languages=words, data=folder)
    lines = [task.texts.encode_line(line, add_if_not_exist=False) for line in ("a b", "b", "b a b")]
    typed = task.build_dataset_for_inference(lines, [len(line) for line in lines])
    for combine, count in ((False, 2), (True, 3)):
        task.load_dataset("train", combine=combine)
        parts = task.dataset("train"), typed
        assert len(parts[0]) == count
        batches = [part.collater([part[number] for number in range(count)]) for part in parts]
        padded, rows = (batch["net_input"]["src_tokens"].tolist() for batch in batches)
        assert padded == [[*row, *[task.texts.pad()] * (4 - len(row))] for row in rows]
    a, b, pad = task.texts.index("a"), task.texts.index("b"), task.texts.pad()
    assert rows == [[b, a, b], [a, b, pad], [b, pad, pad]]


@pytest.mark.parametrize(
    "valid, message",
    [
        ([("a", "x"), ("b", "other")], "valid.text-label.label: line 2: a label .* it has x, y"),
        ([("a", "x y")], "valid.text-label.label: line 1: 2 words, a label is one"),
        ([("a", "x"), ("", "y")], "valid.text-label.text: line 2: an empty text"),
    ],
    ids=["unknown-label", "two-labels", "empty-text"],
)
def test_bad_data_are_named(build, tmp_path, valid, message):
    folder = write(tmp_path, {"train": GOOD, "valid": valid})
    words = ("-s", "text", "-t", "label")
    _, task, _ = build("duo_classifier", task="text_classification", languages=words, data=folder)
    with pytest.raises(ValueError, match=message):
        task.load_dataset("valid")
    with pytest.raises(FileNotFoundError, match="nosuch.text-label.text.idx"):
        task.load_dataset("nosuch")


def test_a_file_without_lines_is_named(build, tmp_path):
    folder = write(tmp_path, {"train": GOOD})
    (folder / "valid.text-label.text").write_text("", encoding="utf-8")
    words = ("-s", "text", "-t", "label", "--dataset-impl", "raw")
    _, task, _ = build("duo_classifier", task="text_classification", languages=words, data=folder)
    with pytest.raises(ValueError, match="valid.text-label.text: holds no line"):
        task.load_dataset("valid")


def test_bad_folders_and_options_are_named(build, tmp_path):
    words = {"task": "text_classification", "languages": ("-s", "text", "-t", "label")}
    with pytest.raises(FileNotFoundError, match="dict.text.txt: no such dictionary"):
        build("duo_classifier", data=tmp_path, **words)
    (tmp_path / "dict.text.txt").write_text("a 1\n", encoding="utf-8")
    (tmp_path / "dict.label.txt").write_text("a 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="dict.label.txt is the dictionary of the texts"):
        build("duo_classifier", data=tmp_path, **words)
    (tmp_path / "dict.label.txt").write_text("x 1\nmadeupword0000 0\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"dict.label.txt: 1 labels \(\['x'\]\), at least 2"):
        build("duo_classifier", data=tmp_path, **words)
    (tmp_path / "dict.label.txt").write_text("x 1\ny 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="--embed-dim-p: --meta-embedding single has no P"):
        build("duo_classifier_single", "--embed-dim-p", 5, data=tmp_path, **words)
    with pytest.raises(ValueError, match="--duo-attention linear: --meta-embedding mean-mlp has"):
        build("duo_classifier_mean_mlp", "--duo-attention", "linear", data=tmp_path, **words)
    with pytest.raises(ValueError, match="--train-embeddings: no embedding comes from a file"):
        build("duo_classifier", "--train-embeddings", data=tmp_path, **words)
    (tmp_path / "s.txt").write_text("a 1 2\n", encoding="utf-8")
    _, _, model = build(
        "duo_classifier_mean_mlp", "--embed-path-s", tmp_path / "s.txt", data=tmp_path, **words
    )
    assert model.classifier.p is None and not model.classifier.s.weight.requires_grad


def test_transformer_trains_resumes_and_generates(data, tmp_path):
    """With vectors from a file that is gone when the model is used."""
    vectors, folder = tmp_path / "p.vec", tmp_path / "run"
    vectors.write_text("2 3\nw1 1 2 3\nis-good 3 2 1\n", encoding="utf-8")
    words = ["--task", "translation", "-s", "text", "-t", "label", "--arch", "duo_transformer_tiny"]
    words += ["--layers", 1, "--embed-path-p", vectors, "--optimizer", "adam", "--lr", 0.001]
    words += ["--criterion", "chunked_label_smoothed_cross_entropy", "--batch-size", 16]
    words += ["--save-dir", folder, "--no-progress-bar", "--no-epoch-checkpoints"]
    inprocess.train(data, *words, "--max-update", 2)
    records = inprocess.train(data, *words, "--max-update", 4)
    assert [record for record in records if "valid_loss" in record][-1]["valid_num_updates"] == 4
    vectors.unlink()
    output = inprocess.generate(
        data,
        *["--task", "translation", "-s", "text", "-t", "label", "--beam", 3, "--max-len-b", 4],
        *["--path", folder / "checkpoint_last.pt", "--batch-size", 10, "--print-alignment"],
    )
    assert len(inprocess.hypotheses(output)) == SIZES["test"]
    assert sum(line.startswith("A-") for line in output.splitlines()) == SIZES["test"]
