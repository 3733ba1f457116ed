"""The files that cut texts: found beside the model, by language, or named by the caller."""

import pytest
import sentencepiece
from common.words import dictionary_with
from fairseq.data import Dictionary
from inference.test_subwords import models  # noqa: F401

from fairseq_ext.inference.subword_models import (
    DirectionCoder,
    SubwordModels,
    bpe_of,
    check_spelling,
    find_subwords,
)

FAST = "a n</w> 12\nt h 9\n"
PLAIN = "#version: 0.2\na n</w>\nt h\n"


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def test_kinds_of_files(folder, models):  # noqa: F811
    for name, text, kind in [
        ("fast.codes", FAST, "fastbpe"),
        ("plain.codes", PLAIN, "subword_nmt"),
        ("old.codes", "a n</w>\n", "subword_nmt"),
    ]:
        (folder / name).write_text(text)
        assert bpe_of(folder / name) == kind
    assert bpe_of(models["xx"]) == "sentencepiece"
    (folder / "renamed").write_bytes(models["xx"].read_bytes())
    assert bpe_of(folder / "renamed") == "sentencepiece"


def test_files_by_language_win_over_one_for_all(folder, models):  # noqa: F811
    (folder / "subwords.model").write_bytes(models["xx"].read_bytes())
    shared = find_subwords([folder], ["xx", "yy"])
    assert shared.kind == "sentencepiece" and set(shared.by_language.values()) == {
        folder / "subwords.model"
    }
    (folder / "xx.model").write_bytes(models["xx"].read_bytes())
    mixed = find_subwords([folder], ["xx", "yy"])
    assert mixed.by_language == {"xx": folder / "xx.model", "yy": folder / "subwords.model"}
    (folder / "yy.model").write_bytes(models["yy"].read_bytes())
    assert find_subwords([folder], ["xx", "yy"]).by_language["yy"] == folder / "yy.model"
    coders = shared.coders(["xx", "yy"])
    assert coders["xx"] is coders["yy"]


def test_the_first_folder_wins_and_half_a_set_is_none(folder, models):  # noqa: F811
    first, second = folder / "first", folder / "second"
    first.mkdir()
    second.mkdir()
    (first / "xx.model").write_bytes(models["xx"].read_bytes())
    (second / "spm.model").write_bytes(models["yy"].read_bytes())
    subwords = find_subwords([first, second], ["xx", "yy"])
    assert set(subwords.by_language.values()) == {second / "spm.model"}
    assert find_subwords([first], ["xx", "yy"]) == SubwordModels()


def test_what_the_training_had_is_found_where_it_was_moved(folder, models):  # noqa: F811
    stored = {"_name": "sentencepiece", "sentencepiece_model": str(models["xx"])}
    subwords = find_subwords([folder], ["xx"], {**stored, "sentencepiece_alpha": 0.1})
    assert subwords.by_language == {"xx": models["xx"]} and subwords.options == {
        "sentencepiece_alpha": 0.1
    }
    (folder / "moved.model").write_bytes(models["xx"].read_bytes())
    stored["sentencepiece_model"] = "/nowhere/moved.model"
    assert find_subwords([folder], ["xx"], stored).by_language == {"xx": folder / "moved.model"}
    assert find_subwords([folder], ["xx"], {"_name": "bytes"}).kind == "bytes"


def test_files_that_are_named_or_found_have_the_options_of_the_training(folder):
    """Another separator would make every sub-word unknown; of another kind it means nothing."""
    (folder / "bpe.codes").write_text(PLAIN)
    stored = {"_name": "subword_nmt", "bpe_codes": "/nowhere/lost.codes", "bpe_separator": "~~"}
    expected = {"bpe_separator": "~~"}
    assert find_subwords([folder], ["xx"], stored).options == expected
    named = find_subwords([], ["xx"], stored, named=folder / "bpe.codes")
    assert named == SubwordModels("subword_nmt", {"xx": folder / "bpe.codes"}, expected)
    (folder / "bpe.codes").write_text(FAST)
    assert find_subwords([folder], ["xx"], stored) == SubwordModels(
        "fastbpe", {"xx": folder / "bpe.codes"}
    )


def test_pieces_are_drawn_in_training_alone(models):  # noqa: F811
    """A checkpoint of --sentencepiece-enable-sampling reads a text as fairseq-interactive does."""
    options = {"sentencepiece_enable_sampling": True, "sentencepiece_alpha": 0.1}
    drawn = SubwordModels("sentencepiece", models, options).coder("xx")
    plain = SubwordModels("sentencepiece", models).coder("xx")
    text = "an1 av2 an3 at1"
    assert {drawn.encode(text) for _ in range(30)} == {plain.encode(text)}


def test_what_the_caller_names(folder, models):  # noqa: F811
    assert find_subwords([folder], ["xx"], named="none") == SubwordModels()
    named = find_subwords([folder], ["xx", "yy"], named=models)
    assert named.by_language == models
    with pytest.raises(ValueError, match="no file for yy; allowed: a file for each of xx, yy, on"):
        find_subwords([folder], ["xx", "yy"], named={"xx": models["xx"]})
    with pytest.raises(FileNotFoundError, match="subwords: there is no file nowhere for xx"):
        find_subwords([folder], ["xx"], named="nowhere")
    (folder / "codes").write_text(PLAIN)
    with pytest.raises(ValueError, match="files of several kinds: sentencepiece, subword_nmt"):
        find_subwords([folder], ["xx", "yy"], named={"xx": models["xx"], "yy": folder / "codes"})
    with pytest.raises(ValueError, match="bpe 'words': allowed: .*sentencepiece"):
        find_subwords([folder], ["xx"], named=models["xx"], kind="words")


def test_dictionaries_of_pieces_need_what_makes_them(models):  # noqa: F811
    words, pieces, joined = (
        dictionary_with(*(form.format(number) for number in range(10)))
        for form in ("word{}", "\u2581word{}", "wo{}@@")
    )
    check_spelling(SubwordModels(), {"xx": words})
    check_spelling(SubwordModels("sentencepiece", models), {"xx": pieces})
    for dictionary, kind in ((pieces, "sentencepiece"), (joined, "subword_nmt")):
        message = rf"dict.yy.txt holds sub-words \({kind}\), and no model .* subwords='none'"
        with pytest.raises(ValueError, match=message):
            check_spelling(SubwordModels(), {"xx": words, "yy": dictionary})


@pytest.mark.parametrize(
    "entries, kind",
    [
        # without blanks between words: one piece of each sentence has the mark
        ({"\u2581ab": 2, "cd": 40, "ef": 30, "ghi": 28, "jk": 1, "l": 1}, "sentencepiece"),
        ({"\u2581": 20, "a": 40, "b": 30, "c": 10, "d": 1, "madeupword0000": 0}, "characters or"),
        # a text with such a sign, whose words are whole
        ({"\u2581\u2582\u2583": 1, "word": 99, "words": 2, "another": 1, "more": 1}, None),
        ({"a": 40, "b": 30, "c": 10}, None),  # cut into characters, with blanks between them
    ],
)
def test_marks_are_counted_in_the_text_as_well(entries, kind):
    dictionary = Dictionary()
    for word, count in entries.items():
        dictionary.add_symbol(word, count)
    if kind is None:
        check_spelling(SubwordModels(), {"xx": dictionary})
        return
    with pytest.raises(ValueError, match=rf"holds sub-words \({kind}.*bpe='characters'"):
        check_spelling(SubwordModels(), {"xx": dictionary})


@pytest.mark.parametrize("kind", ["characters", "bytes"])
def test_kinds_without_a_file_are_named(folder, kind):
    text = "\u12a0 b"
    coder = find_subwords([folder], ["xx", "yy"], kind=kind).coder("xx")
    assert "\u2581" in coder.encode(text).split()
    assert coder.decode(coder.encode(text)) == text
    with pytest.raises(ValueError, match=f"subwords 'a': bpe '{kind}' has no file"):
        find_subwords([folder], ["xx"], named="a", kind=kind)
    # another kind than that of the training: ``load`` refuses it
    stored = {"_name": "bytes" if kind == "characters" else "characters"}
    assert find_subwords([folder], ["xx"], stored, kind=kind).kind == stored["_name"]


def test_each_side_of_a_direction_has_its_coder(models):  # noqa: F811
    subwords = SubwordModels("sentencepiece", models)
    coder = DirectionCoder(subwords.coder("xx"), subwords.coder("yy"))
    text = "an1 av2"
    expected = sentencepiece.SentencePieceProcessor(str(models["xx"])).encode(text, out_type=str)
    assert coder.encode(text).split() == expected
    assert coder.decode("\u2581un 1 \u2581uv 2") == "un1 uv2"
    assert SubwordModels().coder("xx") is None


@pytest.mark.parametrize("pieces, is_refused", [(20, False), (21, True)])
def test_a_fifth_of_the_words_may_look_like_pieces(pieces, is_refused):
    forms = ["wo{}@@"] * pieces + ["word{}"] * (100 - pieces)
    dictionary = dictionary_with(*(form.format(number) for number, form in enumerate(forms)))
    if not is_refused:
        check_spelling(SubwordModels(), {"xx": dictionary})
        return
    with pytest.raises(ValueError, match="dict.xx.txt holds sub-words"):
        check_spelling(SubwordModels(), {"xx": dictionary})
