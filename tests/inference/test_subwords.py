"""--bpe-models: every language of fairseq-interactive with a sub-word model of its own."""

import pytest
from common import inprocess
from common.pieces import learn_pieces, pieces
from fairseq.data import encoders
from options.systems import SYSTEMS

import fairseq_ext
from fairseq_ext.streams.subwords import parse_bpe_models

PAIRS = ("xx-yy", "zz-yy")


@pytest.fixture(scope="module")
def models(toy_corpus, tmp_path_factory):
    """{language: file of its sentencepiece model}."""
    folder = tmp_path_factory.mktemp("models")
    return {
        lang: learn_pieces(toy_corpus.text / f"train.{lang}", folder / lang)
        for lang in toy_corpus.languages
    }


def cut(model, line):
    return " ".join(pieces(model, line))


@pytest.fixture(scope="module")
def data(toy_corpus, models, run, tmp_path_factory):
    """Binarised pieces of the toy corpus, each language with a dictionary of its own."""
    folder = tmp_path_factory.mktemp("pieces")
    for lang in toy_corpus.languages:
        for split in ("train", "valid"):
            lines = (toy_corpus.text / f"{split}.{lang}").read_text().splitlines()[:60]
            text = "".join(cut(models[lang], line) + "\n" for line in lines)
            (folder / f"{split}.{lang}").write_text(text)
    for pair in PAIRS:
        source, target = pair.split("-")
        more = ["--tgtdict", folder / "bin" / "dict.yy.txt"] if source == "zz" else []
        prefixes = ["--trainpref", folder / "train", "--validpref", folder / "valid"]
        run("fairseq-preprocess", "-s", source, "-t", target, *prefixes, *more, "--destdir",
            folder / "bin")  # fmt: skip
    return folder / "bin"


@pytest.fixture(scope="module")
def checkpoint(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    inprocess.train(
        *SYSTEMS["multiway_gru"].words(data, "--lang-pairs", ",".join(PAIRS)),
        *("--max-update", 4, "--batch-size", 8, "--disable-validation"),
        *("--save-dir", folder, "--no-epoch-checkpoints"),
    )
    return folder / "checkpoint_last.pt"


def typed(data, checkpoint, file, source, *more):
    words = [data, "--task", "multiway_translation", "--path", checkpoint, "--input", file]
    return inprocess.interactive(*words, "-s", source, "-t", "yy", "--max-len-b", 9, *more)


def option(models, *languages):
    return ",".join(f"{lang}={models[lang]}" for lang in languages)


@pytest.mark.parametrize("source", ["xx", "zz", "xx+zz", "zz+xx"])
def test_each_language_has_its_own_pieces(toy_corpus, models, data, checkpoint, tmp_path, source):
    """What the command makes of texts is what it makes of their pieces."""
    languages = source.split("+")
    lines = [(toy_corpus.text / f"test.{lang}").read_text().splitlines()[:4] for lang in languages]
    (tmp_path / "text").write_text("".join(" ||| ".join(row) + "\n" for row in zip(*lines)))
    rows = [[cut(models[lang], line) for line in part] for lang, part in zip(languages, lines)]
    (tmp_path / "pieces").write_text("".join(" ||| ".join(row) + "\n" for row in zip(*rows)))
    expected = typed(data, checkpoint, tmp_path / "pieces", source)
    words = ["--bpe", "sentencepiece", "--bpe-models", option(models, "xx", "yy", "zz")]
    output = typed(data, checkpoint, tmp_path / "text", source, *words)
    assert inprocess.hypotheses(output) == inprocess.hypotheses(expected)
    texts = [line.split("\t")[2] for line in output.splitlines() if line.startswith("D-")]
    hypotheses = [entries[0][1] for _, entries in sorted(inprocess.hypotheses(output).items())]
    assert texts == [text.replace(" ", "").replace("\u2581", " ").strip() for text in hypotheses]
    # the model of --sentencepiece-model is that of languages that are not named
    first, *others = languages
    words[-1] = option(models, *others, "yy")
    again = typed(
        data, checkpoint, tmp_path / "text", source, *words, "--sentencepiece-model", models[first]
    )
    assert inprocess.hypotheses(again) == inprocess.hypotheses(expected)


@pytest.mark.parametrize("command", [True, False], ids=["interactive", "load"])
def test_each_source_has_its_own_words(models, data, checkpoint, tmp_path, monkeypatch, command):
    """A tokenizer cuts the words of one language."""
    heard = []

    class Moses:
        def __init__(self, cfg):
            self.source, self.target = cfg.source_lang, cfg.target_lang

        def encode(self, text):
            heard.append((self.source, self.target, text))
            return text

        def decode(self, text):
            return text

    monkeypatch.setitem(encoders.TOKENIZER_REGISTRY, "moses", Moses)
    if command:
        (tmp_path / "text").write_text("an1 ||| nn2\n")
        words = ["--bpe", "sentencepiece", "--bpe-models", option(models, "xx", "yy", "zz")]
        typed(data, checkpoint, tmp_path / "text", "xx+zz", *words, "--tokenizer", "moses")
    else:
        model = fairseq_ext.load(
            checkpoint, data, "xx+zz-yy", subwords=models, bpe="sentencepiece", tokenizer="moses"
        )
        model.translate([("an1", "nn2")], max_len_b=9)
    assert heard == [("xx", "yy", "an1"), ("zz", "yy", "nn2")]


def test_bad_values_are_named(models, data, checkpoint, tmp_path):
    (tmp_path / "text").write_text("an1\n")
    arguments = (data, checkpoint, tmp_path / "text", "xx", "--bpe-models", option(models, "xx"))
    with pytest.raises(ValueError, match="no model for yy; allowed: .* --sentencepiece-model"):
        typed(*arguments, "--bpe", "sentencepiece")
    with pytest.raises(ValueError, match="--bpe-models .* with --bpe None: allowed: --bpe sent"):
        typed(*arguments)
    with pytest.raises(ValueError, match="'xx' is not of the form LANGUAGE=FILE"):
        parse_bpe_models("xx")
    with pytest.raises(ValueError, match="'xx' is named twice"):
        parse_bpe_models(f"{option(models, 'xx')},{option(models, 'xx')}")
    with pytest.raises(FileNotFoundError, match="--bpe-models: there is no file nowhere for xx"):
        parse_bpe_models("xx=nowhere")
    words = SYSTEMS["multiway_gru"].words(data, "--lang-pairs", "xx-yy")
    words += ["--batch-size", 8, "--save-dir", tmp_path]
    with pytest.raises(ValueError, match="--bpe-models .* allowed in training: leave it out"):
        inprocess.train(*words, "--bpe-models", option(models, "xx"))
