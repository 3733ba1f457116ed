"""fairseq-score with each of its scorers."""

import io
import re

import pytest
import sacrebleu
from common import inprocess

from fairseq_ext.compat.user_errors import OptionError

SYSTEM = ["the cat sat on the mat", "A dog barks at night", "nothing in common here"]
REFERENCE = ["the cat sat on the mat", "a dog barks in the night", "words that do not match it"]


@pytest.fixture
def files(tmp_path):
    """Function: the options that name two files with these lines."""

    def files(system=SYSTEM, reference=REFERENCE):
        for name, lines in (("sys", system), ("ref", reference)):
            text = "".join(line + "\n" for line in lines)
            (tmp_path / name).write_text(text, encoding="utf-8")
        return ["--sys", tmp_path / "sys", "--ref", tmp_path / "ref"]

    return files


@pytest.fixture
def score(call):
    """Function: what fairseq-score prints."""
    import fairseq_cli.score

    return lambda *words: call(fairseq_cli.score, *words)


def test_sacrebleu(files, score):
    expected = sacrebleu.corpus_bleu(SYSTEM, [REFERENCE]).format()
    output = score(*files(), "--sacrebleu")
    assert expected in output and "nrefs:1|case:mixed" in output


def test_sacrebleu_ignores_case_when_told(files, score):
    expected = sacrebleu.corpus_bleu(SYSTEM, [REFERENCE], lowercase=True).format()
    assert expected in score(*files(), "--sacrebleu", "--ignore-case")


def test_sacrebleu_order(files, score):
    output = score(*files(), "--sacrebleu", "--order", 2)
    assert re.search(r"BLEU = [\d.]+ [\d.]+/[\d.]+ \(", output)


@pytest.mark.parametrize("line, warns", [("一个男人在街上走路。", True), ("ein Mann", False)])
def test_texts_without_blanks_are_named(files, monkeypatch, capsys, line, warns):
    from fairseq_cli.score import cli_main

    words = [*files(reference=[line] * len(SYSTEM)), "--sacrebleu"]
    monkeypatch.setattr("sys.argv", ["fairseq-score", *map(str, words)])
    cli_main()
    assert ("no blanks between words, which BLEU counts" in capsys.readouterr().err) == warns


def test_sacrebleu_reads_standard_input(files, score, monkeypatch):
    words = files()
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(SYSTEM) + "\n"))
    expected = sacrebleu.corpus_bleu(SYSTEM, [REFERENCE]).format()
    assert expected in score("--ref", words[3], "--sacrebleu")


def test_sentence_bleu(files, score):
    lines = score(*files(), "--sentence-bleu").splitlines()
    assert [line.split()[0] for line in lines] == ["0", "1", "2"]
    values = [float(re.search(r"BLEU4 = ([\d.]+)", line).group(1)) for line in lines]
    assert values[0] == 100.0 and 100 > values[1] > values[2]


@pytest.mark.parametrize("option", ["--sacrebleu", "--sentence-bleu"])
def test_files_of_different_length(files, score, capsys, option):
    with pytest.raises(SystemExit):
        score(*files(reference=REFERENCE[:2]), option)
    assert re.search(r"sys has 3 lines and --ref .*ref has 2", capsys.readouterr().err)


def test_standard_input_of_different_length(files, score, monkeypatch, capsys):
    """fairseq would score the lines that both have."""
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(SYSTEM[:2]) + "\n"))
    with pytest.raises(SystemExit):
        score("--ref", files()[3])
    assert re.search(r"--sys - has 2 lines and --ref .*ref has 3", capsys.readouterr().err)


def test_standard_input_is_scored_as_a_file(files, score, monkeypatch):
    words = files()
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(SYSTEM) + "\n"))
    *_, expected = score(*words).splitlines()
    assert score("--ref", words[3]).splitlines()[-1] == expected


def test_without_options_it_prints_what_the_stock_command_does(files, score):
    options, result = score(*files()).splitlines()
    assert options.startswith("Namespace(") and result == (
        "BLEU4 = 41.60, 60.0/50.0/44.4/50.0 (BP=0.819, ratio=0.833, syslen=15, reflen=18)"
    )


@pytest.mark.parametrize("option", [(), ("--sacrebleu",), ("--sentence-bleu",)])
def test_a_byte_order_mark_is_no_part_of_the_first_word(files, score, option):
    def values(*words):
        return [line for line in score(*words, *option).splitlines() if "BLEU" in line]

    expected = values(*files())
    assert values(*files(reference=["\ufeff" + REFERENCE[0], *REFERENCE[1:]])) == expected
    assert values(*files(system=["\ufeff" + SYSTEM[0], *SYSTEM[1:]])) == expected


@pytest.fixture
def generated(tiny_training, toy_corpus, tmp_path):
    """Function (options...): what fairseq-generate prints for an untrained model."""
    inprocess.train(*tiny_training, "--max-update", 1, "--save-dir", tmp_path)
    words = (toy_corpus.two, "-s", "xx", "-t", "yy", "--path", tmp_path / "checkpoint_last.pt")
    words += ("--gen-subset", "valid", "--beam", 1, "--max-len-b", 5)
    return lambda *flags: inprocess.generate(*words, *flags)


def test_generate_with_sacrebleu(generated):
    """The value is that of the detokenised lines it prints, not of fairseq's own scorer."""
    output = generated("--sacrebleu")
    systems, references = (
        [line.split("\t")[-1] for line in output.splitlines() if line.startswith(letter)]
        for letter in ("D-", "T-")
    )
    expected = sacrebleu.corpus_bleu(systems, [references], tokenize="none")
    assert len(systems) > 5 and str(expected) in output and "BLEU4" not in output
    results = [
        re.search(r"^Generate valid .*", text, re.MULTILINE)[0]
        for text in (output, generated("--scoring", "sacrebleu"))
    ]
    assert results[0] == results[1]
    assert "BLEU4" in generated()
    with pytest.raises(OptionError, match="--sacrebleu contradicts --scoring wer"):
        generated("--sacrebleu", "--scoring", "wer")


@pytest.mark.parametrize("option", ["--sys", "--ref"])
def test_a_line_that_is_not_utf8_is_named(option, files, score, tmp_path, capsys):
    words = files()
    (tmp_path / option[2:]).write_bytes(b"a\nb\ncaf\xe9 c\n")
    with pytest.raises(SystemExit):
        score(*words)
    place = f"{tmp_path / option[2:]}, line 3: not UTF-8 (invalid continuation byte)"
    assert place in capsys.readouterr().err.splitlines()[-1]


def test_a_line_of_the_standard_input_that_is_not_utf8_is_named(files, score, monkeypatch, capsys):
    content = io.TextIOWrapper(io.BytesIO(b"a\n\xff\nb\n"), encoding="utf-8")
    monkeypatch.setattr("sys.stdin", content)
    with pytest.raises(SystemExit):
        score("--sys", "-", *files()[2:])
    assert "the standard input, line 2: not UTF-8" in capsys.readouterr().err.splitlines()[-1]
