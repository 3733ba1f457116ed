"""`fairseq-ext pack` as it is typed; sub-word models of the languages travel with the model."""

import pytest
import sentencepiece
from common import inprocess
from options.systems import SYSTEMS

import fairseq_ext
from fairseq_ext.__main__ import main


@pytest.fixture(scope="module")
def trained(toy_corpus, run, tmp_path_factory):
    """Folder with pieces of a sentencepiece model for each language, and a stock transformer."""
    folder = tmp_path_factory.mktemp("trained")
    for lang in ("xx", "yy"):
        sentencepiece.SentencePieceTrainer.train(
            input=str(toy_corpus.text / f"train.{lang}"),
            model_prefix=str(folder / lang),
            vocab_size=34,
            character_coverage=1.0,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        coder = sentencepiece.SentencePieceProcessor(str(folder / f"{lang}.model"))
        lines = (toy_corpus.text / f"train.{lang}").read_text().splitlines()
        rows = (" ".join(coder.encode(line, out_type=str)) + "\n" for line in lines)
        (folder / f"train.{lang}").write_text("".join(rows))
    run("fairseq-preprocess", "-s", "xx", "-t", "yy", "--trainpref", folder / "train",
        "--validpref", folder / "train", "--destdir", folder / "bin")  # fmt: skip
    inprocess.train(
        *SYSTEMS["transformer"].words(folder / "bin"),
        *("--max-update", 2, "--batch-size", 8, "--disable-validation"),
        *("--save-dir", folder / "run", "--no-epoch-checkpoints"),
    )
    return folder


def test_pack_finds_the_subwords_of_each_language(trained, tmp_path, capsys, toy_corpus):
    checkpoint = trained / "run" / "checkpoint_last.pt"
    scores = tmp_path / "scores.md"
    scores.write_text("| BLEU |\n| --- |\n| 12.5 |\n")
    output = tmp_path / "model"
    words = ["pack", str(checkpoint), str(trained / "bin"), "--output", str(output)]
    assert main([*words, "--scores", str(scores)]) == 0
    assert f"packed into {output}" in capsys.readouterr().out
    names = {path.name for path in output.iterdir()}
    assert {"xx.model", "yy.model", "dict.xx.txt", "dict.yy.txt"} <= names
    card = (output / "README.md").read_text()
    for part in ("# model\n", "Directions: xx-yy", "| train.xx-yy.xx | 240 |", "12.5", "2 updates"):
        assert part in card, part
    assert "fairseq-train DATA" in card and str(trained) not in card
    texts = (toy_corpus.text / "test.xx").read_text().splitlines()[:4]
    results = fairseq_ext.load(output).translate(texts, max_len_b=8)
    coder = sentencepiece.SentencePieceProcessor(str(trained / "xx.model"))
    for text, result in zip(texts, results):
        assert result.source_tokens == [*coder.encode(text, out_type=str), "</s>"]
        pieces = [piece for piece in result.hypotheses[0].tokens if piece not in ("<s>", "</s>")]
        assert result.text == "".join(pieces).replace("\u2581", " ").strip()
    (trained / "xx.model").rename(trained / "hidden")
    try:
        with pytest.raises(ValueError, match="holds sub-words .sentencepiece., and no model"):
            fairseq_ext.load(checkpoint)
        cut = [" ".join(coder.encode(text, out_type=str)) for text in texts]
        again = fairseq_ext.load(checkpoint, subwords="none").translate(cut, max_len_b=8)
        assert [r.hypotheses[0].tokens for r in again] == [r.hypotheses[0].tokens for r in results]
    finally:
        (trained / "hidden").rename(trained / "xx.model")
    assert main([*words, "--force"]) == 0
    for arguments, message in [
        (words, "exists; give another name"),
        (["pack", "no.pt", "bin", "--output", "x"], "CHECKPOINT no.pt is not a file"),
        ([*words, "--subwords", "xx="], "--subwords 'xx='"),
        ([*words, "--force", "--subwords", "no.model"], "there is no file no.model"),
        ([*words, "--scores", "no.md"], "--scores no.md is not a file"),
    ]:
        assert main(arguments) == 2
        assert message in capsys.readouterr().err
