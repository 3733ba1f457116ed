"""`fairseq-ext pack` as it is typed; sub-word models of the languages travel with the model."""

import pytest
from common import inprocess
from common.pieces import learn_pieces, pieces
from options.systems import SYSTEMS

import fairseq_ext
from fairseq_ext.__main__ import main


@pytest.fixture(scope="module")
def trained(toy_corpus, run, tmp_path_factory):
    """Folder with pieces of a sentencepiece model for each language, and a stock transformer."""
    folder = tmp_path_factory.mktemp("trained")
    for lang in ("xx", "yy"):
        text = toy_corpus.text / f"train.{lang}"
        model = learn_pieces(text, folder / lang)
        rows = (" ".join(pieces(model, line)) + "\n" for line in text.read_text().splitlines())
        (folder / f"train.{lang}").write_text("".join(rows))
    run("fairseq-preprocess", "-s", "xx", "-t", "yy", "--trainpref", folder / "train",
        "--validpref", folder / "train", "--destdir", folder / "bin")  # fmt: skip
    inprocess.train(
        *SYSTEMS["transformer"].words(folder / "bin"),
        *("--max-update", 2, "--batch-size", 8, "--disable-validation"),
        *("--save-dir", folder / "run", "--no-epoch-checkpoints"),
    )
    return folder


def checkpoint_of(trained):
    return trained / "run" / "checkpoint_last.pt"


def typed(trained, output):
    return ["pack", str(checkpoint_of(trained)), str(trained / "bin"), "--output", str(output)]


@pytest.fixture(scope="module")
def packed(trained, tmp_path_factory):
    output = tmp_path_factory.mktemp("packed") / "model"
    assert main(typed(trained, output)) == 0
    return output


@pytest.fixture
def texts(toy_corpus):
    return (toy_corpus.text / "test.xx").read_text().splitlines()[:4]


def test_the_folder_has_subwords_dictionaries_and_a_card(trained, tmp_path, capsys):
    scores, output = tmp_path / "scores.md", tmp_path / "model"
    scores.write_text("| BLEU |\n| --- |\n| 12.5 |\n")
    assert main([*typed(trained, output), "--scores", str(scores)]) == 0
    assert f"packed into {output}" in capsys.readouterr().out
    names = {path.name for path in output.iterdir()}
    assert {"xx.model", "yy.model", "dict.xx.txt", "dict.yy.txt"} <= names
    card = (output / "README.md").read_text()
    for part in ("# model\n", "Directions: xx-yy", "| train.xx-yy.xx | 240 |", "12.5", "2 updates"):
        assert part in card, part
    assert "fairseq-train DATA" in card and str(trained) not in card


def test_each_language_has_its_own_subwords(trained, packed, texts):
    results = fairseq_ext.load(packed).translate(texts, max_len_b=8)
    for text, result in zip(texts, results):
        assert result.source_tokens == [*pieces(trained / "xx.model", text), "</s>"]
        words = [piece for piece in result.hypotheses[0].tokens if piece not in ("<s>", "</s>")]
        assert result.text == "".join(words).replace("\u2581", " ").strip()


def test_a_checkpoint_without_its_subwords_translates_pieces_alone(
    trained, packed, texts, tmp_path, capsys
):
    cut = [" ".join(pieces(trained / "xx.model", text)) for text in texts]
    (trained / "xx.model").rename(trained / "hidden")
    try:
        with pytest.raises(ValueError, match="holds sub-words .sentencepiece., and no model"):
            fairseq_ext.load(checkpoint_of(trained))
        # commands name their own options
        assert main(typed(trained, tmp_path / "model")) == 2
        assert "allowed: --subwords with its file, " in capsys.readouterr().err
        pytest.importorskip("uvicorn")
        serve = ["serve", str(checkpoint_of(trained)), "--port", "0"]
        assert main(serve) == 2
        assert "or a folder that fairseq-ext pack has written" in capsys.readouterr().err
        model = fairseq_ext.load(checkpoint_of(trained), subwords="none")
    finally:
        (trained / "hidden").rename(trained / "xx.model")
    translations = model.translate(cut, max_len_b=8)
    expected = fairseq_ext.load(packed).translate(texts, max_len_b=8)
    assert [r.hypotheses[0].tokens for r in translations] == [
        r.hypotheses[0].tokens for r in expected
    ]


def test_errors_name_the_argument(trained, packed, capsys):
    words = typed(trained, packed)
    for arguments, message in [
        (words, "exists; give another name"),
        (["pack", "no.pt", "bin", "--output", "x"], "CHECKPOINT no.pt: there is no such"),
        ([*words, "--subwords", "xx="], "--subwords 'xx='"),
        ([*words, "--force", "--subwords", "no.model"], "there is no file no.model"),
        ([*words, "--scores", "no.md"], "--scores no.md is not a file"),
    ]:
        assert main(arguments) == 2
        assert message in capsys.readouterr().err


def test_a_folder_is_replaced_where_that_is_said(trained, tmp_path):
    words = typed(trained, tmp_path / "model")
    assert main(words) == 0 and main(words) == 2 and main([*words, "--force"]) == 0
