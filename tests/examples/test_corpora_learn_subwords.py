"""Subwords spell texts and are undone; a vocabulary that does not fit is named."""

import re
import subprocess
import sys
from argparse import ArgumentParser

import pytest
import sentencepiece
from corpora import apply_subwords, learn_subwords
from experiments.definition import FOLDER

from fairseq_ext.tools import UsageError


@pytest.mark.parametrize("lines", [[], ["--lines", "50"]])
def test_subwords_spell_and_are_undone(raw, tmp_path, lines):
    model, text = tmp_path / "model", raw / "train.de"
    for module, words in (
        (learn_subwords, [text, "--vocabulary", 60, *lines, "--model", model]),
        (apply_subwords, [text, "--model", model, "--output", tmp_path / "text"]),
    ):
        parser = ArgumentParser()
        module.add_arguments(parser)
        module.run(parser.parse_args([str(word) for word in words]))
    spelt = (tmp_path / "text" / "train.de").read_text(encoding="utf-8").splitlines()
    plain = text.read_text(encoding="utf-8").splitlines()
    assert any(len(line.split()) > len(before.split()) for line, before in zip(spelt, plain))
    assert [line.replace(" ", "").replace("▁", " ").strip() for line in spelt] == plain


@pytest.mark.parametrize(
    "words, expected", [([], "你好,世界!"), (["--normalisation", "identity"], "你好，世界！")]
)
def test_full_width_punctuation_stays_where_it_is_asked_for(tmp_path, write, words, expected):
    text = write(tmp_path / "train.zh", ["你好，世界！"] * 5)
    parser = ArgumentParser()
    learn_subwords.add_arguments(parser)
    options = ["--vocabulary", "12", *words, "--model", tmp_path / "model"]
    learn_subwords.run(parser.parse_args([str(word) for word in (text, *options)]))
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "model"))
    assert processor.decode(processor.encode("你好，世界！", out_type=str)) == expected


def test_lines_that_no_model_reads_are_named(raw, tmp_path, write, capsys):
    model, text = tmp_path / "model", write(tmp_path / "test.de", ["Mann", "Mann " * 1100] * 2)
    for module, words in (
        (learn_subwords, [raw / "train.de", "--vocabulary", 60, "--model", model]),
        (apply_subwords, [text, raw / "val.de", "--model", model, "--output", tmp_path / "text"]),
    ):
        parser = ArgumentParser()
        module.add_arguments(parser)
        module.run(parser.parse_args([str(word) for word in words]))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: {text}, line 2 and 1 more: more than 1,023 subwords; ")


@pytest.fixture
def spelt(tmp_path, write):
    """Function text in letters, name of a normalisation -> its lines in subwords, as text."""

    def spell(lines, normalisation):
        text = write(tmp_path / "train.xx", lines)
        for module, words in (
            (learn_subwords, ["--normalisation", normalisation, "--vocabulary", 28]),
            (apply_subwords, ["--output", tmp_path / "text"]),
        ):
            parser = ArgumentParser()
            module.add_arguments(parser)
            words = [text, "--model", tmp_path / "model", *words]
            module.run(parser.parse_args([str(word) for word in words]))
        rows = (tmp_path / "text" / "train.xx").read_text(encoding="utf-8").split("\n")[:-1]
        # as fairseq reads and joins them
        return ["".join(row.split()).replace("▁", " ").strip() for row in rows]

    return spell


@pytest.mark.parametrize(
    "word, points",
    [
        ("\u0e19\u0e49\u0e33", "U+0E33 as U+0E4D U+0E32"),
        ("\u09df", "U+09DF as U+09AF U+09BC"),
        ("ile\u0301", "U+0065 U+0301 as U+00E9"),
    ],
)
def test_lines_that_are_normalised_are_named(spelt, capsys, word, points):
    lines = ["abcdefg hijklmn"] * 4 + [f"ab {word} cd", f"{word} ef"]
    assert spelt(lines, "nfkc") != lines
    (warning,) = capsys.readouterr().err.splitlines()
    assert "train.xx, line 5 and 1 more: the subwords have other characters " in warning
    assert f"({points})" in warning
    assert spelt(lines, "identity") == lines
    assert not capsys.readouterr().err


def test_long_lines_are_learnt_from(tmp_path, write):
    """A model without their characters would write them as unknown words."""
    text = write(tmp_path / "train.th", ["abc abd"] * 9 + ["\u0e01\u0e02" * 1000])
    parser = ArgumentParser()
    learn_subwords.add_arguments(parser)
    words = [text, "--vocabulary", 14, "--model", tmp_path / "model"]
    learn_subwords.run(parser.parse_args([str(word) for word in words]))
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "model"))
    assert processor.unk_id() not in processor.encode("\u0e01\u0e02 a")


@pytest.mark.parametrize("normalisation", ["nfkc", "identity"])
def test_any_white_space_is_a_blank(spelt, capsys, normalisation):
    """fairseq cuts there: a piece with a no-break space would lose it."""
    lines = ["abcdef 10\u00a0000 g", "hij\u2028klm\tn", "o\u3000p\u0085q"] * 9
    plain = [" ".join(line.split()) for line in lines]
    assert spelt(lines, normalisation) == plain
    assert not capsys.readouterr().err


def test_characters_in_bytes_are_not_changed(tmp_path, write, capsys):
    text = write(tmp_path / "train.xx", ["abcdef"] * 9 + ["abc \u1200\u120b"])
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["abcdef"] * 9),
        model_prefix=str(tmp_path / "bytes"),
        model_type="bpe",
        vocab_size=270,
        byte_fallback=True,
        minloglevel=2,
    )
    parser = ArgumentParser()
    apply_subwords.add_arguments(parser)
    words = [text, "--model", tmp_path / "bytes.model", "--output", tmp_path / "pieces"]
    apply_subwords.run(parser.parse_args([str(word) for word in words]))
    assert "<0xE1>" in (tmp_path / "pieces" / "train.xx").read_text(encoding="utf-8")
    assert not capsys.readouterr().err


def test_sampled_spellings_change_with_the_seed_and_are_undone(raw, tmp_path):
    model, text = tmp_path / "model", raw / "train.de"
    plain = text.read_text(encoding="utf-8").splitlines()

    def call(module, *words):
        parser = ArgumentParser()
        module.add_arguments(parser)
        module.run(parser.parse_args([str(word) for word in words]))

    def spelt(folder, *words):
        call(apply_subwords, text, "--model", model, "--output", tmp_path / folder, *words)
        return (tmp_path / folder / "train.de").read_text(encoding="utf-8").splitlines()

    call(learn_subwords, text, "--vocabulary", 60, "--model", model)
    ordinary = spelt("ordinary")
    first, again = (spelt(name, "--dropout", 0.3, "--seed", 1) for name in ("first", "again"))
    second = spelt("second", "--dropout", 0.3, "--seed", 2)
    assert first == again and len({tuple(first), tuple(second), tuple(ordinary)}) == 3
    # fewer merges leave more pieces
    assert sum(map(len, map(str.split, first))) > sum(map(len, map(str.split, ordinary)))
    for lines in (first, second):
        assert [line.replace(" ", "").replace("▁", " ").strip() for line in lines] == plain


@pytest.mark.parametrize(
    "words, message",
    [
        (["--dropout", "1", "--seed", "1"], "--dropout 1.0: allowed: at least 0 and less than 1"),
        (["--dropout", "0.1"], "--dropout 0.1 --seed None: allowed: both, or neither"),
        (["--seed", "3"], "--dropout 0.0 --seed 3: allowed: both, or neither"),
    ],
)
def test_bad_sampling_is_named(raw, tmp_path, words, message):
    parser = ArgumentParser()
    apply_subwords.add_arguments(parser)
    words = [raw / "train.de", "--model", "none", "--output", tmp_path / "text", *words]
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        apply_subwords.run(parser.parse_args([str(word) for word in words]))


def test_sample_is_a_function_of_the_text(tmp_path, write):
    paths = [write(tmp_path / name, [f"{name}{n}" for n in range(50)]) for name in "ab"]
    assert len(list(learn_subwords.sample(paths, 0))) == 100
    drawn = list(learn_subwords.sample(paths, 20))
    assert len(set(drawn)) == 20 and {line[0] for line in drawn} == {"a", "b"}
    assert drawn == list(learn_subwords.sample(paths, 20))


def test_a_text_counts_once(raw, tmp_path):
    parser = ArgumentParser()
    learn_subwords.add_arguments(parser)
    text = str(raw / "train.de")
    words = [text, text, "--vocabulary", "60", "--model", str(tmp_path / "model")]
    with pytest.raises(UsageError, match="TEXT .*train.de: listed twice; allowed: each file once"):
        learn_subwords.run(parser.parse_args(words))


@pytest.mark.parametrize("normalisation", ["nfkc", "identity"])
def test_signs_of_a_blank_are_named(spelt, capsys, normalisation):
    """They are lost with any normalisation: to change it is no remedy."""
    lines = ["abcdefg hijklmn"] * 4 + ["ab c\u2581d"]
    assert spelt(lines, normalisation)[-1] == "ab c d"
    (warning,) = capsys.readouterr().err.splitlines()
    assert "train.xx, line 5: U+2581, " in warning and "--normalisation" not in warning


@pytest.mark.parametrize(
    "lines, size, reason",
    [
        (["abc ab"], 5, "allowed: at least 7, since each character is a subword"),
        (["abc ab"], 50, "allowed: at most [0-9]+, which is all that can be made of the text"),
        (["", ""], 50, "there is no line with text"),
    ],
)
def test_what_does_not_fit_is_in_words_of_this_command(tmp_path, write, lines, size, reason):
    """sentencepiece names an option that the command does not have."""
    parser = ArgumentParser()
    learn_subwords.add_arguments(parser)
    text = write(tmp_path / "train.xx", lines)
    words = [text, "--vocabulary", size, "--model", tmp_path / "model"]
    with pytest.raises(UsageError, match=f"^--vocabulary {size} does not fit train.xx: {reason}$"):
        learn_subwords.run(parser.parse_args([str(word) for word in words]))


@pytest.mark.parametrize("option", ["--vocabulary", "--lines"])
def test_negative_numbers_are_named(raw, tmp_path, option):
    parser = ArgumentParser()
    learn_subwords.add_arguments(parser)
    words = [raw / "train.de", "--vocabulary", 60, "--model", tmp_path / "model", option, -1]
    with pytest.raises(UsageError, match=f"^{option} -1: allowed: "):
        learn_subwords.run(parser.parse_args([str(word) for word in words]))


def test_the_command_names_what_is_wrong(raw):
    words = [sys.executable, FOLDER / "prepare.py", "learn-subwords", raw / "train.de"]
    words += ["--vocabulary", "5", "--model", raw / "model"]
    process = subprocess.run(words, stderr=subprocess.PIPE, encoding="utf-8", check=False)
    assert process.returncode == 1
    assert "prepare.py learn-subwords: --vocabulary 5 does not fit train.de" in process.stderr
