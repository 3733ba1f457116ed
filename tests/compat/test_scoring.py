"""fairseq-score with each of its scorers."""

import io
import re

import pytest
import sacrebleu

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


def test_without_options_it_is_the_stock_command(files, score):
    assert "BLEU4 = " in score(*files())
