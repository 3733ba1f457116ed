"""`fairseq-ext translate` as it is typed: line N of the output translates line N of the input."""

import gzip
import inspect
import io
import os
import sys
import threading

import pytest
from options.systems import SYSTEMS

import fairseq_ext
from fairseq_ext.__main__ import main
from fairseq_ext.inference.model import Model
from fairseq_ext.tools.translation.command import NAMED

LINES = ["an1 av2 an3", "", "an4 av5 an6 at1", "an1", "  "]


@pytest.fixture
def typed(data, checkpoint_of):
    """Function (more words, name of the system) -> the exit status of the command."""

    def translate(*more, name="dual_transformer"):
        words = [checkpoint_of(name), "--data", data["two"], "--search", "max_len_b=5", *more]
        return main(["translate", *map(str, words)])

    return translate


@pytest.fixture
def expected(data, checkpoint_of):
    """Function (direction, lines) -> their translations in Python."""

    def texts(direction="xx-yy", lines=LINES, **options):
        model = fairseq_ext.load(checkpoint_of("dual_transformer"), data["two"], direction)
        options = {"max_len_b": 5, **options}
        return [result.text for result in model.translate(lines, **options)]

    return texts


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source"
    path.write_bytes("".join(line + "\r\n" for line in LINES).encode())
    return path


def test_a_file_becomes_a_file(typed, expected, source, tmp_path, capsys):
    output = tmp_path / "output"
    assert typed("--input", source, "--output", output) == 0
    assert output.read_text().split("\n") == [*expected(), ""]
    assert capsys.readouterr().out == ""
    assert typed("--input", source, "--output", output, "--direction", "yy-xx") == 2
    assert "exists; give another name, or --force" in capsys.readouterr().err
    assert typed("--input", source, "--output", output, "--direction", "yy-xx", "--force") == 0
    assert output.read_text().split("\n") == [*expected("yy-xx"), ""]


def test_options_of_the_search(typed, expected, source, capsys):
    assert typed("--input", source, "--search", "lenpen=0.5", "sampling=False", "--beam", 2) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines == [*expected(lenpen=0.5, beam=2), ""]


def test_the_standard_input_becomes_the_standard_output(typed, expected, monkeypatch, capsys):
    stream = io.TextIOWrapper(io.BytesIO("\n".join(LINES).encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert typed() == 0
    assert capsys.readouterr().out.split("\n") == [*expected(), ""]


def test_a_gz_file_in_blocks(typed, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("fairseq_ext.tools.translation.command.BLOCK", 2)
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress("\n".join(LINES).encode()))
    assert typed("--input", path) == 0
    assert capsys.readouterr().out.split("\n") == [*expected(), ""]


def test_a_pipe_becomes_a_gz_file(typed, expected, tmp_path, capsys):
    """What a name promises is what the file holds; the same text makes the same bytes."""
    texts = []
    for name in ("first.gz", "second.gz"):
        pipe, output = tmp_path / f"{name}.pipe", tmp_path / name
        os.mkfifo(pipe)
        content = "\n".join(LINES).encode()
        writer = threading.Thread(target=pipe.write_bytes, args=(content,))
        writer.start()
        assert typed("--input", pipe, "--output", output) == 0
        writer.join()
        texts.append(output.read_bytes())
    assert gzip.decompress(texts[0]).decode().split("\n") == [*expected(), ""]
    assert texts[0] == texts[1]


def test_a_dash_is_the_standard_output(typed, expected, source, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert typed("--input", source, "--output", "-") == 0
    assert capsys.readouterr().out.split("\n") == [*expected(), ""]
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_several_sources(data, checkpoint_of, tmp_path, capsys):
    checkpoint = checkpoint_of("multiway_gru", "--lang-pairs", "xx-yy,zz-yy")
    first, second = tmp_path / "xx", tmp_path / "zz"
    first.write_text("an1 av2\n\nan3\n")
    second.write_text("in1 iv2\n\n\n")
    words = ["translate", str(checkpoint), "--data", str(data["three"]), "--direction", "xx+zz-yy"]
    assert main([*words, "--input", str(first), str(second)]) == 0
    model = fairseq_ext.load(checkpoint, data["three"], "xx+zz-yy")
    results = model.translate([("an1 av2", "in1 iv2"), ("", ""), ("an3", "")])
    assert capsys.readouterr().out.split("\n") == [*(result.text for result in results), ""]
    second.write_text("in1\n")
    assert main([*words, "--input", str(first), str(second)]) == 2
    assert f"{second}: ends before line 2" in capsys.readouterr().err
    assert main([*words, "--input", str(first)]) == 2
    assert "another number of files; allowed: 2 (xx, zz)" in capsys.readouterr().err


def test_lines_that_cannot_be_translated_are_named(typed, source, capsys):
    source.write_text("an1\n" + "an1 " * 3000 + "\n\n")
    assert typed("--input", source) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 3 and out.endswith("\n\n\n")
    (line,) = [line for line in err.splitlines() if "not translated" in line]
    assert line.startswith(f"{source}, line 2: ") and "more than the model takes" in line


def test_every_argument_of_translate_has_its_place():
    arguments = set(inspect.signature(Model.translate).parameters)
    assert arguments - {"self", "search"} == set(NAMED)


@pytest.mark.parametrize(
    "words, message",
    [
        (["--input", "nowhere"], "--input nowhere: there is no such file"),
        (["--input", "."], "--input .: there is no such file"),
        (["--input", "-", "-"], "the standard input twice"),
        (["--search", "beam=3"], "--search beam=3: allowed: --beam"),
        (["--search", "batch=3"], "--search batch=3: allowed: --batch"),
        (["--search", "attention=True"], "no option of the search"),
        (["--search", "max_len_a=[1]"], "max_len_a: "),
        (["--search", "nbest=3"], "one translation is written for each line"),
        (["--search", "lenpen"], "--search 'lenpen'; allowed: NAME=VALUE"),
        (["--search", "max_len_b=3"], "each name once"),
        (["--search", "lenpn=1"], "did you mean lenpen"),
        (["--beam", "0"], "beam 0: allowed: a whole number, at least 1"),
        (["--direction", "xx-qq"], "'xx-qq'"),
        (["--device", "gpu"], "gpu"),
        (["--output", ""], "--output ''"),
    ],
)
def test_errors_are_one_line(typed, source, monkeypatch, capsys, words, message):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"an1\n")))
    assert typed(*words) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_errors_leave_the_output_as_it_was(typed, source, tmp_path, capsys):
    output = tmp_path / "output"
    output.write_text("before\n")
    source.write_bytes(b"an1\n\xff\n")
    assert typed("--input", source, "--output", output, "--force") == 2
    assert "line 2: not UTF-8" in capsys.readouterr().err
    assert output.read_text() == "before\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output", "source"]
    assert typed("--input", source, "--output", source, "--force") == 2
    assert "is read as well and would be lost" in capsys.readouterr().err


def test_a_model_that_is_not_there(capsys):
    assert main(["translate", "nowhere"]) == 2
    assert "MODEL nowhere: there is no such folder or file" in capsys.readouterr().err


def test_language_models_do_not_translate(data, checkpoint_of, source, capsys):
    words = [str(checkpoint_of("gru_lm")), "--input", str(source)]
    assert main(["translate", *words]) == 2
    assert "allowed: perplexity" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["duo_classifier", "dual_lstm_classifier", "twin_speech_lstm"])
def test_labels_and_transcriptions(name, data, checkpoint_of, tmp_path):
    """Lines are texts to classify, or names of recordings."""
    folder, source = data[SYSTEMS[name].data], tmp_path / "source"
    output = tmp_path / "output"
    if name == "twin_speech_lstm":
        lines = [str(path) for path in sorted(folder.rglob("*.npy"))[:3]]
    else:
        lines = ["good film was it", "the plot of it and bad"]
    source.write_text("".join(f"{line}\n" for line in lines))
    words = ["--data", str(folder), "--input", str(source), "--output", str(output)]
    assert main(["translate", str(checkpoint_of(name)), *words]) == 0
    expected = fairseq_ext.load(checkpoint_of(name), folder).translate(lines)
    assert output.read_text().split("\n") == [*(result.text for result in expected), ""]
