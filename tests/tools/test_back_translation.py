"""`fairseq-ext back-translate`: what it writes, that it goes on, what it leaves out or refuses."""

import csv
from argparse import ArgumentParser

import pytest
from common import inprocess

import fairseq_ext
from fairseq_ext.tools import UsageError
from fairseq_ext.tools.back_translation import command

DUAL = ["--task", "dual_translation", "--arch", "dual_transformer_tiny", "--lang-pairs"]
DUAL += ["xx-yy,xx-zz", "--lr", 0.01, "--max-update", 12, "--batch-size", 40]
DUAL += ["--criterion", "cross_entropy", "--disable-validation", "--no-epoch-checkpoints"]


@pytest.fixture(scope="module")
def checkpoint(toy_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    inprocess.train(toy_corpus.three, *DUAL, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


@pytest.fixture
def lines(toy_corpus, tmp_path):
    """yy lines, the third of them empty."""
    texts = toy_corpus.lines["yy"][:14]
    texts[2] = ""
    path = tmp_path / "mono.yy"
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return path


def run(checkpoint, data, lines, output, *more):
    parser = ArgumentParser()
    command.add_arguments(parser)
    words = [checkpoint, data, "-s", "xx", "-t", "yy", "--monolingual", lines]
    arguments = parser.parse_args([str(word) for word in (*words, "--output", output, *more)])
    return command.back_translate(arguments)


def read(path):
    return path.read_text(encoding="utf-8").splitlines()


def table(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_pairs_are_those_that_the_model_translates(checkpoint, toy_corpus, lines, tmp_path):
    assert run(checkpoint, toy_corpus.three, lines, tmp_path / "bt", "--round-trip") == 0
    texts = [text for text in read(lines) if text]
    model = fairseq_ext.load(checkpoint, toy_corpus.three, "yy-xx", subwords="none")
    expected = model.translate(texts)
    assert read(tmp_path / "bt.xx") == [result.text for result in expected]
    assert read(tmp_path / "bt.yy") == texts
    rows = table(tmp_path / "bt.tsv")
    assert [row["left_out"] for row in rows] == ["", "", "empty", *[""] * 11]
    remaining = [row for row in rows if not row["left_out"]]
    scores = [float(row["score"]) for row in remaining]
    assert scores == pytest.approx([r.hypotheses[0].score for r in expected], abs=1e-4)
    back = model.toward("xx-yy").score(read(tmp_path / "bt.xx"), texts)
    assert [float(row["round_trip"]) for row in remaining] == pytest.approx(
        [score.score for score in back], abs=1e-4
    )
    assert not (tmp_path / "bt.partial").exists()


def test_an_ensemble_translates(checkpoint, toy_corpus, lines, tmp_path):
    earlier = tmp_path / "earlier"
    inprocess.train(toy_corpus.three, *DUAL, "--seed", 2, "--save-dir", earlier)
    paths = [checkpoint, earlier / "checkpoint_last.pt"]
    names = ":".join(map(str, paths))
    assert run(names, toy_corpus.three, lines, tmp_path / "bt", "--round-trip") == 0
    model = fairseq_ext.load(paths, toy_corpus.three, "yy-xx", subwords="none")
    expected = model.translate([text for text in read(lines) if text])
    assert read(tmp_path / "bt.xx") == [result.text for result in expected]
    remaining = [row for row in table(tmp_path / "bt.tsv") if not row["left_out"]]
    scores = [float(row["score"]) for row in remaining]
    assert scores == pytest.approx([r.hypotheses[0].score for r in expected], abs=1e-4)
    with pytest.raises(UsageError, match=r"CHECKPOINT .*nowhere\.pt: there is no such"):
        run(f"{names}:nowhere.pt", toy_corpus.three, lines, tmp_path / "bt", "--force")


def test_lines_that_are_not_cut_as_the_text_are_named(
    checkpoint, toy_corpus, lines, tmp_path, capsys
):
    """A model of sub-words reads whole words as unknown ones, and translates nothing."""
    run(checkpoint, toy_corpus.three, lines, tmp_path / "bt", "--beam", 1)
    assert not capsys.readouterr().err
    text = lines.read_text(encoding="utf-8").split("\n")
    lines.write_text("\n".join(line.replace(" ", "") for line in text), encoding="utf-8")
    run(checkpoint, toy_corpus.three, lines, tmp_path / "whole", "--beam", 1)
    error = capsys.readouterr().err
    assert f"warning: {lines}: 13 of 13 words are not in dict.yy.txt; lines must be cut" in error


@pytest.mark.parametrize("more", [["--beam", 2], ["--sampling"]], ids=["beam", "sampling"])
def test_an_interrupted_command_goes_on(more, checkpoint, toy_corpus, lines, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "BLOCK", 4)
    run(checkpoint, toy_corpus.three, lines, tmp_path / "whole", *more)
    make, blocks = command.make, []

    def stopping(args, model, part, block):
        blocks.append(block)
        if block == 2 and blocks.count(2) == 1:
            raise KeyboardInterrupt
        return make(args, model, part, block)

    monkeypatch.setattr(command, "make", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(checkpoint, toy_corpus.three, lines, tmp_path / "bt", *more)
    assert not (tmp_path / "bt.xx").exists() and not (tmp_path / "bt.tsv").exists()
    # a block that was being written when the machine stopped
    with (tmp_path / "bt.partial").open("a", encoding="utf-8") as file:
        file.write('[["half a')
    with pytest.raises(UsageError, match="begun with other search; allowed: the same, or --force"):
        run(checkpoint, toy_corpus.three, lines, tmp_path / "bt", "--beam", 3)
    run(checkpoint, toy_corpus.three, lines, tmp_path / "bt", *more)
    assert blocks == [0, 1, 2, 2, 3]
    for end in ("xx", "yy", "tsv"):
        assert read(tmp_path / f"bt.{end}") == read(tmp_path / f"whole.{end}")


def test_pairs_by_a_third_language(checkpoint, toy_corpus, tmp_path):
    """yy-zz has no data: lines of xx are translated into yy, beside their zz lines."""
    for lang in ("xx", "zz"):
        text = "".join(line + "\n" for line in toy_corpus.lines[lang][:5])
        (tmp_path / f"text.{lang}").write_text(text, encoding="utf-8")
    pivot = ["-s", "yy", "-t", "zz", "--pivot", f"xx={tmp_path / 'text.xx'}", "--round-trip"]
    run(checkpoint, toy_corpus.three, tmp_path / "text.zz", tmp_path / "bt", *pivot)
    model = fairseq_ext.load(checkpoint, toy_corpus.three, "xx-yy", subwords="none")
    expected = model.translate(toy_corpus.lines["xx"][:5])
    assert read(tmp_path / "bt.yy") == [result.text for result in expected]
    assert read(tmp_path / "bt.zz") == toy_corpus.lines["zz"][:5]


@pytest.mark.parametrize(
    "more, message",
    [
        (["--beam", 0], "--beam 0: must be at least 1"),
        (["--beam", 2, "--sampling"], "--beam 2: --sampling draws one translation"),
        (["--seed", 2], "--seed 2: without --sampling nothing is drawn"),
        (["--sampling", "--seed", 2**64], "--seed 18446744073709551616: must be at least 0 and"),
        (["--max-ratio", 0.5], "--max-ratio 0.5: must be at least 1"),
        (["--max-ratio", "nan"], "--max-ratio nan: must be at least 1"),
        (["--min-round-trip", -2], "--min-round-trip -2.0: needs --round-trip"),
        (["--round-trip", "--min-round-trip", "nan"], "--min-round-trip nan: must be a number"),
        (["-s", "yy"], "-s yy -t yy: two different languages"),
        (["-s", "qq"], "CHECKPOINT .*qq"),
        (["--pivot", "zz"], "--pivot 'zz': must be LANG=FILE"),
        (["--pivot", "yy=x"], "must be LANG=FILE with another language than xx and yy"),
        (["--pivot", "zz=missing"], "--pivot: cannot read missing"),
        (["--monolingual", "missing"], "--monolingual: cannot read missing"),
        (["--output", "no/folder/bt"], "no/folder is not a folder"),
    ],
)
def test_what_cannot_work_is_refused(more, message, checkpoint, toy_corpus, lines, tmp_path):
    with pytest.raises(UsageError, match=message):
        run(checkpoint, toy_corpus.three, lines, tmp_path / "bt", *more)


def test_an_unreadable_checkpoint_is_named_once(toy_corpus, lines, tmp_path):
    (tmp_path / "damaged.pt").write_bytes(b"no")
    with pytest.raises(UsageError) as refusal:
        run(tmp_path / "damaged.pt", toy_corpus.three, lines, tmp_path / "bt")
    assert str(refusal.value).startswith(f"CHECKPOINT {tmp_path}/damaged.pt: cannot be read as a")


def test_files_without_lines_and_unequal_ones_are_refused(checkpoint, toy_corpus, lines, tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "short").write_text("an1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="--monolingual .*empty: holds no line"):
        run(checkpoint, toy_corpus.three, tmp_path / "empty", tmp_path / "bt")
    pivot = ["-s", "zz", "--pivot", f"xx={tmp_path / 'short'}"]
    with pytest.raises(UsageError, match="has 1 lines, --monolingual .* has 14"):
        run(checkpoint, toy_corpus.three, lines, tmp_path / "bt", *pivot)


@pytest.mark.parametrize("end", ["xx", "yy", "tsv"])
def test_files_that_are_there_are_not_replaced(end, checkpoint, toy_corpus, lines, tmp_path):
    path = tmp_path / f"done.{end}"
    path.write_text("real\n", encoding="utf-8")
    with pytest.raises(UsageError, match=f"done.{end} exists; allowed: --force"):
        run(checkpoint, toy_corpus.three, lines, tmp_path / "done")
    assert read(path) == ["real"] and not (tmp_path / "done.partial").exists()
    run(checkpoint, toy_corpus.three, lines, tmp_path / "done", "--force")
    assert read(path) != ["real"]


def test_the_lines_themselves_are_never_replaced(checkpoint, toy_corpus, lines, tmp_path):
    """--output mono would write mono.yy, which holds the lines, without those left out."""
    before = lines.read_bytes()
    with pytest.raises(UsageError, match="mono.yy is the file of --monolingual; allowed: a pref"):
        run(checkpoint, toy_corpus.three, lines, tmp_path / "mono", "--force")
    pivot = tmp_path / "text.xx"
    pivot.write_bytes(before)
    more = ["-s", "xx", "--pivot", f"zz={pivot}", "--force"]
    with pytest.raises(UsageError, match="text.xx is the file of --pivot"):
        run(checkpoint, toy_corpus.three, lines, tmp_path / "text", *more)
    assert lines.read_bytes() == before and pivot.read_bytes() == before


def test_samples_of_other_batches_begin_anew(checkpoint, toy_corpus, lines, tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "make", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(checkpoint, toy_corpus.three, lines, tmp_path / "bt", "--sampling")
    with pytest.raises(UsageError, match="begun with other search; allowed"):
        run(checkpoint, toy_corpus.three, lines, tmp_path / "bt", "--sampling", "--batch", 3)


def test_a_carriage_return_within_a_line_is_refused(tmp_path):
    (tmp_path / "mono").write_bytes(b"a\r\nb\rc\n")
    with pytest.raises(UsageError, match="mono, line 2: a carriage return within the line"):
        command.read_lines("--monolingual", str(tmp_path / "mono"))
    (tmp_path / "mono").write_bytes(b"a\r\nb\xe2\x80\xa8c")
    assert command.read_lines("--monolingual", str(tmp_path / "mono")) == ["a", "b\u2028c"]


def test_a_byte_order_mark_is_no_text(tmp_path):
    (tmp_path / "lines").write_bytes(b"\xef\xbb\xbfa\n")
    assert command.read_lines("--monolingual", str(tmp_path / "lines")) == ["a"]
