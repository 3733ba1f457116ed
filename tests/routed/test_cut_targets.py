"""Sub-word models of the translations, where tags, trees and graphs were not cut by them."""

import pytest
from common.pieces import learn_pieces, pieces
from common.words import dictionary_with
from omegaconf import OmegaConf

from fairseq_ext.inference.subword_models import direction_coder
from fairseq_ext.streams.language_pair import LanguagePair
from fairseq_ext.streams.subwords import DirectionCoder

SOURCE = "an1 av2 an3"
TAGS = {"plain": ["O", "B-PER", "I-PER"], "marked": ["\u2581O", "\u2581B-PER", "\u2581I-PER"]}


@pytest.fixture(scope="module")
def model(toy_corpus, tmp_path_factory):
    """The file of a model of xx, which is that of --bpe for all languages."""
    return learn_pieces(toy_corpus.text / "train.xx", tmp_path_factory.mktemp("pieces") / "xx")


@pytest.fixture
def task_to(routed_task):
    """Function (target language, its symbols) -> a task that translates into it."""

    def build(target, symbols):
        kinds = ["--target-kinds", "zz=tags"]
        pairs = ["-s", "xx", "-t", target]
        task, _ = routed_task(*pairs, *kinds, pairs=None, main=None)
        task.dictionaries[target] = dictionary_with(*symbols)
        return task

    return build


def bpe_of(model):
    return OmegaConf.create({"_name": "sentencepiece", "sentencepiece_model": str(model)})


@pytest.mark.parametrize(
    "target, name, joined",
    [("zz", "plain", "O B-PER I-PER"), ("zz", "marked", "O B-PER I-PER"),
     ("yy", "plain", "OB-PERI-PER")],
)  # fmt: skip
def test_symbols_of_a_prediction_stay_apart(target, name, joined, task_to, model):
    """As fairseq-generate and fairseq-interactive print them; of a text the blanks are cuts."""
    coder = task_to(target, TAGS[name]).build_bpe(bpe_of(model))
    assert coder.decode(" ".join(TAGS[name])) == joined
    assert coder.encode(SOURCE).split() == pieces(model, SOURCE)


@pytest.mark.parametrize("name", TAGS)
def test_symbols_that_are_read_stay_whole(name, routed_task, model):
    """Cut into letters, all of them would be unknown."""
    flags = ["-s", "zz", "-t", "yy", "--target-kinds", "zz=tags"]
    task, _ = routed_task(*flags, pairs=None, main=None)
    task.dictionaries["zz"] = dictionary_with(*TAGS[name])
    coder, texts = task.build_bpe(bpe_of(model)), []

    def encode_fn(text, bpe=coder):
        texts.append(bpe.encode(text))
        return texts[-1]

    task.get_interactive_tokens_and_lengths(["O B-PER"], encode_fn)
    python = direction_coder(
        task, dict.fromkeys(("zz", "yy"), coder), LanguagePair("zz", "yy"), "sentencepiece"
    )
    assert texts == [python.encode("O B-PER")]
    assert texts[0] == ("O B-PER" if name == "plain" else " ".join(pieces(model, "O B-PER")))
    assert python.decode("\u2581 o k") == coder.decode("\u2581 o k") == "ok"


def test_without_a_model_nothing_is_cut(task_to):
    assert task_to("zz", TAGS["plain"]).build_bpe(OmegaConf.create({"_name": None})) is None


@pytest.mark.parametrize("name", TAGS)
def test_python_reads_and_writes_symbols_as_they_are(name, task_to, model):
    """score(..) takes lines of tags too: cut into letters, all of them would be unknown."""
    task = task_to("zz", TAGS[name])
    built = task.build_bpe(bpe_of(model))
    shared = built.source if isinstance(built, DirectionCoder) else built
    coders, pair = dict.fromkeys(("xx", "zz"), shared), LanguagePair("xx", "zz")
    coder = direction_coder(task, coders, pair, "sentencepiece")
    assert coder.decode(" ".join(TAGS[name])) == "O B-PER I-PER"
    assert coder.encode(SOURCE).split() == pieces(model, SOURCE)
    assert isinstance(coder, DirectionCoder) == (name == "plain")
    if name == "plain":
        assert coder.target.encode("O B-PER") == "O B-PER"
    # kinds of --bpe whose sub-words have no mark say nothing about what was cut
    assert direction_coder(task, coders, pair, "characters") is shared
