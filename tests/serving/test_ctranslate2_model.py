"""CTranslate2 behind the server gives what fairseq gives."""

from types import SimpleNamespace

import pytest
import torch

import fairseq_ext
from fairseq_ext.inference.packing import pack
from fairseq_ext.streams.language_pair import LanguagePair
from fairseq_ext.tools import UsageError
from fairseq_ext.tools.serving.ctranslate2_model import CTranslate2Model, _hypotheses, stock_of
from fairseq_ext.tools.serving.limits import Limits
from fairseq_ext.tools.serving.served import Key, Pair, ServedModel

pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed")
LINES = ["an1 av2 an3", "an4 av5 an6 at1", "", "unknown av1", "an1 " * 5000]


def key(operation, direction="xx-yy", **options):
    return Key("m", direction, operation, tuple(sorted(options.items())))


@pytest.fixture(scope="module")
def engines(loaded, checkpoint_of):
    """Function (system) -> the model searched by fairseq and by CTranslate2."""
    models = {}

    def both(name):
        if name not in models:
            model, paths = loaded(name), [str(checkpoint_of(name))]
            models[name] = (
                ServedModel("m", model, Limits()),
                CTranslate2Model("m", model, Limits(), paths),
            )
        return models[name]

    return both


@pytest.mark.parametrize(
    "name, direction",
    [("dual_transformer", "xx-yy"), ("dual_transformer", "yy-xx"), ("transformer", "xx-yy"),
     ("dual_supervised_transformer", "yy-xx"), ("tagged_transformer", "yy-xx"),
     ("twin_transformer", "xx-yy")],
)  # fmt: skip
def test_translations_are_those_of_fairseq(name, direction, engines):
    stock, other = engines(name)
    # an untrained model does not end: hypotheses of the limit's length, whose end symbol fairseq
    # counts, are compared without a choice among several
    options = {"beam": 1, "max_len_b": 4, "attention": True}
    lines = LINES[:2]
    expected = stock.run(key("translate", direction, **options), lines)
    answers = other.run(key("translate", direction, **options), lines)
    assert len(answers) == len(expected) == 2
    for answer, fairseqs in zip(answers, expected):
        assert answer["source_tokens"] == fairseqs["source_tokens"]
        first, other_first = answer["hypotheses"][0], fairseqs["hypotheses"][0]
        size = min(len(first["tokens"]), len(other_first["tokens"])) - 1
        assert first["tokens"][:size] == other_first["tokens"][:size]
        assert len(first["attention"]) == len(first["tokens"])
        assert first["token_scores"] is None
        # what is cut at the limit ends there
        assert first["score"] == pytest.approx(other_first["score"], abs=1e-3)


@pytest.mark.parametrize("lenpen", [0.0, 0.5, 2.0])
def test_translations_of_the_greatest_length_have_the_score_of_their_end(lenpen, engines):
    stock, other = engines("transformer")
    options = {"beam": 4, "nbest": 4, "max_len_b": 3, "lenpen": lenpen}
    expected = stock.run(key("translate", **options), LINES[:2])
    answers = other.run(key("translate", **options), LINES[:2])
    compared = 0
    for answer, fairseqs in zip(answers, expected):
        scores = {tuple(entry["tokens"]): entry["score"] for entry in fairseqs["hypotheses"]}
        rows = answer["hypotheses"]
        assert [row["score"] for row in rows] == sorted((row["score"] for row in rows))[::-1]
        for row in rows:
            tokens = (*row["tokens"], "</s>")
            if tokens in scores:
                compared += len(row["tokens"]) == 3
                assert row["score"] == pytest.approx(scores[tokens], abs=1e-3)
    assert compared > 1


def test_the_symbol_of_the_beginning_is_in_no_text(loaded):
    """As in fairseq's texts, although a model may write it."""
    translator = loaded("transformer").translator(1, {})
    answer = SimpleNamespace(hypotheses=[["<s>", "un1", "<s>", "uv2"]])
    (hypothesis,) = _hypotheses(translator, answer, [-1.0], False)
    assert hypothesis.text == "un1 uv2" and hypothesis.tokens == answer.hypotheses[0]


def test_empty_texts_are_not_translated(engines):
    texts = ["", "an1", "  "]
    question = key("translate", beam=2, nbest=2, max_len_b=4), texts
    expected, answers = (engine.run(*question) for engine in engines("transformer"))
    assert len(answers) == len(expected) == 3
    for number in (0, 2):
        assert answers[number]["error"] == expected[number]["error"] == "an empty text"
        assert [entry["text"] for entry in answers[number]["hypotheses"]] == [""]


def test_translations_end_at_the_last_position_of_the_model(loaded, checkpoint_of):
    more = ("transformer", "--max-target-positions", 9)
    stock = ServedModel("m", loaded(*more), Limits())
    other = CTranslate2Model("m", loaded(*more), Limits(), [str(checkpoint_of(*more))])
    question = key("translate", beam=1), LINES[:1]
    (expected,), (answer,) = (model.run(*question) for model in (stock, other))
    first, other_first = (entry["hypotheses"][0]["tokens"] for entry in (expected, answer))
    assert first == [*other_first, "</s>"] and len(first) == 9
    with pytest.raises(ValueError, match="min_len 9; allowed: at most 8"):
        other.run(key("translate", min_len=9), LINES[:1])


def test_a_word_spelt_as_padding_is_unknown(engines):
    _, other = engines("transformer")
    answers = other.run(key("translate", max_len_b=4), ["<blank> an1", "nowhere an1"])
    assert answers[0]["hypotheses"] == answers[1]["hypotheses"]


def test_unknown_words_are_read_as_such(engines):
    """Source tokens are what the model reads, as with fairseq's search."""
    question = key("translate", beam=1, max_len_b=4), ["nowhere an1", "<s> \U0001f600"]
    expected, answers = (model.run(*question) for model in engines("transformer"))
    assert [answer["source_tokens"] for answer in answers] == [
        answer["source_tokens"] for answer in expected
    ]
    assert answers[0]["source_tokens"] == ["<unk>", "an1", "</s>"]


def test_padding_is_never_written(loaded, checkpoint_of, tmp_path):
    """fairseq's search rules it out, also for a model that finds it the most probable."""
    state = torch.load(checkpoint_of("transformer"), weights_only=True)
    norm = state["model"]["decoder.layers.1.final_layer_norm.bias"]
    norm.fill_(1.0)
    state["model"]["decoder.output_projection.weight"][1] = 3.0
    torch.save(state, tmp_path / "padding.pt")
    folder = loaded("transformer").loaded.folder
    model = fairseq_ext.load(tmp_path / "padding.pt", folder)
    stock = ServedModel("m", model, Limits())
    other = CTranslate2Model("m", model, Limits(), [str(tmp_path / "padding.pt")])
    question = key("translate", beam=2, max_len_b=4), LINES[:2]
    expected, answers = (served.run(*question) for served in (stock, other))
    for answer, fairseqs in zip(answers, expected):
        (first,), (other_first,) = answer["hypotheses"], fairseqs["hypotheses"]
        assert first["tokens"] == other_first["tokens"][:-1] and "<blank>" not in first["text"]


def test_options_of_the_search(engines):
    _, other = engines("dual_transformer")
    options = {"beam": 4, "nbest": 3, "lenpen": 0.5, "no_repeat_ngram_size": 1, "max_len_b": 5}
    (answer,) = other.run(key("translate", min_len=3, **options), LINES[:1])
    rows = [hypothesis["tokens"] for hypothesis in answer["hypotheses"]]
    assert len(rows) == 3 and all(3 <= len(row) == len(set(row)) <= 5 for row in rows)


def test_lines_that_cannot_be_translated(engines):
    _, other = engines("dual_transformer")
    answers = other.run(key("translate", max_len_b=4), LINES)
    assert "more than the model takes" in answers[4]["error"]
    assert [bool(answer["error"]) for answer in answers] == [False, False, True, False, True]
    assert other.run(key("translate"), LINES[4:])[0]["hypotheses"][0]["score"] is None


def test_scores_are_those_of_fairseq(engines):
    stock, other = engines("dual_transformer")
    pairs = [Pair("an1 av2 an3", "un1 un3 uv2"), Pair("", ""), Pair("an1", "un1 " * 5000)]
    pairs += [Pair("an1 " * 5000, "un1")]
    expected, answers = stock.run(key("score"), pairs), other.run(key("score"), pairs)
    assert len(answers) == len(expected) == 4
    for answer, fairseqs in zip(answers, expected):
        assert answer["tokens"] == fairseqs["tokens"] and answer["error"] == fairseqs["error"]
        assert answer["score"] == pytest.approx(fairseqs["score"], abs=1e-3)
        assert answer["token_scores"] == pytest.approx(fairseqs["token_scores"], abs=1e-3)


def test_what_it_does_not_have_is_refused(engines):
    _, other = engines("dual_transformer")
    with pytest.raises(ValueError, match="dual_alpha: the engine ctranslate2 has it not; allowed"):
        other.run(key("translate", dual_alpha=0.5), LINES[:1])
    assert other.description()["engine"] == "ctranslate2"


@pytest.mark.parametrize("name", ["routed_gru", "twin_lstm"])
def test_other_models_are_refused(name, loaded, checkpoint_of):
    with pytest.raises(UsageError, match=r"--engine ctranslate2|holds a model of the architecture"):
        CTranslate2Model("m", loaded(name), Limits(), [str(checkpoint_of(name))])


def test_ensembles_are_refused(loaded, checkpoint_of):
    paths = [str(checkpoint_of("transformer"))] * 2
    with pytest.raises(UsageError, match="m is an ensemble; allowed: single models"):
        CTranslate2Model("m", loaded("transformer"), Limits(), paths)


@pytest.mark.parametrize("name", ["dual_transformer", "transformer"])
def test_packed_folders(name, checkpoint_of, data, tmp_path):
    folder = pack([checkpoint_of(name)], data["two"], tmp_path / "packed")
    served = CTranslate2Model("m", fairseq_ext.load(folder), Limits(), [str(folder)])
    (answer,) = served.run(key("translate", max_len_b=4), LINES[:1])
    assert answer["error"] is None and answer["hypotheses"][0]["tokens"]


def test_models_that_read_a_tag_of_the_language_are_refused():
    """Their task puts it beside the words, which CTranslate2 would translate alone."""
    task = {"_name": "translation_multi_simple_epoch"}
    state = {"cfg": {"task": task, "model": {"_name": "transformer"}}, "model": {}}
    with pytest.raises(UsageError, match="m is of the task translation_multi_simple_epoch; allowe"):
        stock_of(state, LanguagePair("xx", "yy"), "m")
    task["_name"] = "translation"
    assert stock_of(state, LanguagePair("xx", "yy"), "m") is state


def test_checkpoints_from_before_fairseq_0_10(loaded, checkpoint_of, engines, tmp_path):
    """They have one Namespace of all options."""
    state = torch.load(checkpoint_of("transformer"), weights_only=True)
    state["args"], state["cfg"] = state["cfg"]["model"], None
    torch.save(state, tmp_path / "old.pt")
    model = CTranslate2Model("m", loaded("transformer"), Limits(), [str(tmp_path / "old.pt")])
    question = key("translate", max_len_b=4), LINES[:2]
    assert model.run(*question) == engines("transformer")[1].run(*question)
