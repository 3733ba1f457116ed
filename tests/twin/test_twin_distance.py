"""`fairseq-ext twin-distance`: numbers by hand, and a trained checkpoint against the criterion."""

import argparse
import csv
import re

import pytest
import torch
from common import inprocess
from common.exchanged import with_two_words_exchanged
from fairseq.data import Dictionary
from twin import toy
from twin.support import SIZES
from twin.toy import END, ToyModel, batch, criterion, sentences

from fairseq_ext import __main__ as command
from fairseq_ext.twin.commands import twin_distance as tool
from fairseq_ext.twin.commands.token_distances import collect
from reference import twin as reference


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def words(count):
    dictionary = Dictionary()
    for number in range(count):
        dictionary.add_symbol(f"w{number}", n=count - number)
    return dictionary


def test_tokens_against_the_reference():
    """L_t and -log P_f of every token of a ragged batch; the end symbol is not among them."""
    model, twin_loss = ToyModel().eval(), criterion().eval()
    targets = sentences((3, 5, 0))
    sample = {**batch(targets), "id": torch.tensor([7, 2, 9])}
    tokens = collect(model, twin_loss, [sample], words(toy.WORDS - 4))
    params = toy.arrays(model, twin_loss)
    expected = []
    for number, sentence in sorted(zip((7, 2, 9), targets)):
        states = reference.network_states(sentence, END, params, "forward")
        forward = [states[t] for t in range(len(sentence))]
        targets_b = reference.matched_targets(sentence, END, params)
        g = params["map.weight"], params["map.bias"]
        for t, value in enumerate(reference.penalty(forward, targets_b, "mse", *g)):
            single = {t: states[t]}
            nll = reference.likelihood(sentence, END, single, params, "forward")[0]
            expected.append((number, t, f"w{sentence[t] - 4}", value, nll))
    assert [token[:3] for token in tokens] == [token[:3] for token in expected]
    for token, values in zip(tokens, expected):
        assert token[3:] == pytest.approx(values[3:], rel=1e-5)


@pytest.fixture(scope="module")
def checkpoint(toy_corpus, tmp_path_factory):
    """Of one epoch of a small twin_lstm."""
    folder = tmp_path_factory.mktemp("distance")
    sizes = [word for entry in SIZES["lstm"].items() for word in entry]
    inprocess.train(
        *(toy_corpus.two, "--arch", "twin_lstm", *sizes, "--criterion", "twin", "--optimizer"),
        *("adam", "--lr", 0.01, "--max-tokens", 400, "--max-epoch", 1, "--save-dir", folder),
        *("--no-epoch-checkpoints", "--disable-validation"),
    )
    return folder / "checkpoint_last.pt"


def distance(*arguments):
    return command.main([str(word) for word in ("twin-distance", *arguments)])


def test_checkpoint(checkpoint, toy_corpus, tmp_path, capsys):
    """Every token of the subset once, whatever the batches are; the files are all there."""
    tables = []
    for name, size in (("one", 4000), ("many", 40)):
        output = tmp_path / name
        options = ("--output", output, "--max-tokens", size, "--show", "0,3")
        assert distance(checkpoint, toy_corpus.two, *options) == 0
        tables.append(rows_of(f"{output}.tokens.tsv"))
        for ending in tool.ENDINGS:
            assert (tmp_path / f"{name}{ending}").stat().st_size > 0
    lines = (toy_corpus.text / "test.yy").read_text(encoding="utf-8").splitlines()
    tokens = [(str(number), word) for number, line in enumerate(lines) for word in line.split()]
    for rows in tables:
        assert [(row["sentence"], row["token"]) for row in rows] == tokens
    for once, again in zip(*tables):
        assert float(once["L_t"]) == pytest.approx(float(again["L_t"]), rel=1e-4)
        assert float(once["-log P_f"]) == pytest.approx(float(again["-log P_f"]), rel=1e-4)
    numbers = {row["quantity"]: float(row["value"]) for row in rows_of(tmp_path / "one.tsv")}
    mean = sum(float(row["L_t"]) for row in tables[0]) / len(tokens)
    assert numbers["tokens"] == len(tokens)
    assert numbers["mean L_t"] == pytest.approx(mean, rel=1e-4)
    table = rows_of(tmp_path / "one.words.tsv")
    counts = Dictionary.load(str(toy_corpus.two / "dict.yy.txt"))
    for row in table:
        assert int(row["frequency"]) == counts.count[counts.index(row["text"])]
    assert "rank correlation" in capsys.readouterr().out


def test_words_are_counted_in_a_text(checkpoint, toy_corpus, tmp_path):
    text = toy_corpus.text / "train.yy"
    options = ("--output", tmp_path / "out", "--text", text, "--sentences", 3)
    assert distance(checkpoint, toy_corpus.two, *options) == 0
    training = text.read_text(encoding="utf-8").split()
    for row in rows_of(tmp_path / "out.words.tsv"):
        assert int(row["frequency"]) == training.count(row["text"])
    assert {row["sentence"] for row in rows_of(tmp_path / "out.tokens.tsv")} == {"0", "1", "2"}


def test_words_outside_the_dictionary(toy_corpus, run, tmp_path, capsys):
    """dict.txt has no number for <unk>; a text has one."""
    text, data = toy_corpus.text, tmp_path / "data"
    words = ["-s", "xx", "-t", "yy", "--destdir", data, "--nwordstgt", 12]
    for split in ("train", "valid", "test"):
        words += [f"--{split}pref", text / split]
    run("fairseq-preprocess", *words)
    sizes = [word for entry in SIZES["lstm"].items() for word in entry]
    inprocess.train(
        *(data, "--arch", "twin_lstm", *sizes, "--criterion", "twin", "--optimizer", "adam"),
        *("--lr", 0.01, "--max-tokens", 400, "--max-update", 1, "--save-dir", tmp_path),
        *("--no-epoch-checkpoints", "--disable-validation"),
    )
    more = [tmp_path / "checkpoint_last.pt", data, "--output", tmp_path / "out"]
    assert distance(*more) == 0
    assert "<unk> is left out of the words" in capsys.readouterr().out
    assert "<unk>" not in {row["text"] for row in rows_of(tmp_path / "out.words.tsv")}
    assert distance(*more, "--text", text / "train.yy") == 0
    (row,) = [row for row in rows_of(tmp_path / "out.words.tsv") if row["text"] == "<unk>"]
    dictionary = Dictionary.load(str(data / "dict.yy.txt"))
    words = (text / "train.yy").read_text(encoding="utf-8").split()
    assert int(row["frequency"]) == sum(word not in dictionary for word in words) > 0


def test_as_many_sentences_are_drawn_as_there_are(checkpoint, toy_corpus, tmp_path):
    assert distance(checkpoint, toy_corpus.two, "--output", tmp_path / "o", "--sentences", 2) == 0
    drawn = tool.shown(argparse.Namespace(show=None), {7: ["a"], 9: ["b"]})
    assert drawn == [["a"], ["b"]]


def test_an_average_has_its_own_backward_network(checkpoint, toy_corpus, tmp_path):
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    for tensor in state["criterion"].values():
        tensor.mul_(3)
    torch.save(state, tmp_path / "other.pt")
    words = (
        "average",
        "--inputs",
        checkpoint,
        tmp_path / "other.pt",
        "--output",
        tmp_path / "m.pt",
    )
    assert command.main([str(word) for word in words]) == 0
    mean = torch.load(tmp_path / "m.pt", map_location="cpu", weights_only=True)
    before = torch.load(checkpoint, map_location="cpu", weights_only=True)
    assert list(mean["criterion"]) == list(before["criterion"])
    for part, factor in (("model", 1), ("criterion", 2)):
        for name, tensor in before[part].items():
            torch.testing.assert_close(mean[part][name], factor * tensor)
    assert distance(tmp_path / "m.pt", toy_corpus.two, "--output", tmp_path / "out") == 0


def test_a_text_that_is_not_utf8_is_named(checkpoint, toy_corpus, tmp_path, capsys):
    text = tmp_path / "text"
    text.write_bytes("schön\n".encode("utf-8") + "schön\n".encode("latin-1"))
    options = ("--output", tmp_path / "out", "--text", text)
    assert distance(checkpoint, toy_corpus.two, *options) == 2
    assert f"--text: {text}, line 2: not UTF-8" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [text]


@pytest.mark.parametrize(
    "options, message",
    [
        (("--show", "0,99"), "--show 0,99: '99' is none of the 24 sentences"),
        (("--pair", "xx-yy"), "--pair xx-yy: .* is of one direction"),
        (("--features", "x"), "--features x: .* of the task translation, .*; leave it out"),
        (("--text", "nowhere"), "--text: cannot read nowhere: No such file"),
        (("--sentences", "0"), "--sentences 0"),
        (("--rare", "0"), "--rare 0 is not allowed; allowed: at least 1"),
        (("--max-tokens", "2"), "--max-tokens 2: --subset test has a sentence of [0-9]+; allowed"),
        (("--subset", "nowhere"), "DATA .*nowhere"),
    ],
)
def test_bad_options(checkpoint, toy_corpus, tmp_path, capsys, options, message):
    assert distance(checkpoint, toy_corpus.two, "--output", tmp_path / "out", *options) == 2
    assert not list(tmp_path.iterdir())
    assert re.search(message, capsys.readouterr().err)


def test_checkpoint_without_a_backward_network(checkpoint, toy_corpus, tmp_path, capsys):
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    state["criterion"] = None
    torch.save(state, tmp_path / "plain.pt")
    assert distance(tmp_path / "plain.pt", toy_corpus.two, "--output", tmp_path / "out") == 2
    assert "no backward network (criterion twin)" in capsys.readouterr().err


def test_a_training_that_has_diverged_is_named(checkpoint, toy_corpus, tmp_path, capsys):
    """It never ended: no rank is equal to that of NaN."""
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    for tensor in state["criterion"].values():
        tensor.fill_(float("nan"))
    torch.save(state, tmp_path / "nan.pt")
    assert distance(tmp_path / "nan.pt", toy_corpus.two, "--output", tmp_path / "out") == 2
    message = "nan.pt: sentence 0, position 0: L_t is nan and -log P_f [0-9.]+; allowed: finite"
    assert re.search(message, capsys.readouterr().err)


def test_a_folder_with_two_words_exchanged_is_refused(checkpoint, toy_corpus, tmp_path, capsys):
    data = with_two_words_exchanged(toy_corpus.two, tmp_path / "data", "yy")
    assert distance(checkpoint, data, "--output", tmp_path / "out") == 2
    assert "last.pt: trained with another dictionary of yy" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [data]


def test_pieces_need_their_marks(checkpoint, toy_corpus, capsys):
    """So far, each sentence counted as one word, without a message."""
    assert distance(checkpoint, toy_corpus.two, "--unit", "sentencepiece") == 2
    message = "--unit sentencepiece: the dictionary of the target has no symbol that begins with"
    assert message in capsys.readouterr().err
    tool.check_unit("letter", words(3))
    note = "--unit letter: the dictionary has no symbol | (U+007C): a sentence is one word\n"
    assert capsys.readouterr().out == note
    for unit in ("token", "subword_nmt"):
        tool.check_unit(unit, words(3))
    assert capsys.readouterr().out == ""


def test_a_dictionary_that_does_not_count_the_target(capsys):
    """One of a sub-word model's vocabulary, or of both languages."""
    args = argparse.Namespace(text=None, unit="token")
    values = {"w0": [1.0], "w2": [2.0]}
    plain, same = words(3), words(3)
    assert tool.frequencies(args, values, plain, words(4)) == tool.counted(args, plain)
    assert tool.frequencies(args, values, plain, plain) == tool.counted(args, plain)  # of a text
    assert capsys.readouterr().out == ""
    assert tool.frequencies(args, values, plain, same) == tool.counted(args, plain)
    assert capsys.readouterr().out.startswith("the dictionary counts words of source and target")
    same.count = [100] * len(same)
    assert tool.frequencies(args, values, same, None) is None
    assert capsys.readouterr().out.startswith("the dictionary has one count for all words")
    assert tool.frequencies(args, {"w0": [1.0]}, same, None) == tool.counted(args, same)


@pytest.mark.parametrize("unit, mark", [("letter", "|"), ("characters", "\u2581")])
def test_texts_need_the_marks_of_the_data(unit, mark, tmp_path):
    dictionary = words(3)
    text = tmp_path / "train.txt"
    text.write_text("o n\na t\n", encoding="utf-8")
    args = argparse.Namespace(text=str(text), unit=unit)
    assert tool.counted(args, dictionary) == {"on": 1, "at": 1}  # of recordings of single words
    dictionary.add_symbol(mark)
    message = re.escape(f"--text {text}: --unit {unit}, and the text has no symbol {mark} (U+")
    with pytest.raises(tool.UsageError, match=message):
        tool.counted(args, dictionary)
    text.write_text(f"o n {mark} a t\n", encoding="utf-8")
    assert tool.counted(args, dictionary) == {"on": 1, "at": 1}
