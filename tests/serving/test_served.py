"""What the server computes is what the model gives in Python, for each kind of model."""

import pytest

from fairseq_ext.streams.language_pair import LanguagePair
from fairseq_ext.tools.serving.answers import (
    of_classification,
    of_perplexity,
    of_score,
    of_translation,
)
from fairseq_ext.tools.serving.limits import Limits
from fairseq_ext.tools.serving.schemas import Refused
from fairseq_ext.tools.serving.served import Key, Pair, ServedModel

LINES = ["an1 av2 an3", "an4 av5 an6 at1", "", "unknown"]


def near(value):
    """The value with numbers that may differ by rounding: batches are others."""
    if isinstance(value, dict):
        return {name: near(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [near(entry) for entry in value]
    return pytest.approx(value, abs=2e-4) if isinstance(value, float) else value


@pytest.mark.parametrize(
    "name, direction, extra",
    [
        ("dual_transformer", "yy-xx", "dual"),
        ("routed_gru", "xx-zz", "router"),
        ("twin_lstm", "xx-yy", "twin_distance"),
        ("transformer", "xx-yy", None),
    ],
)
def test_translations(name, direction, extra, loaded):
    served = ServedModel("m", loaded(name), Limits())
    options = {"beam": 3, "nbest": 2, "max_len_b": 7, "attention": True, "extras": True}
    if extra == "dual":
        options["dual_alpha"] = 0.5
    key = Key("m", direction, "translate", tuple(sorted(options.items())))
    answers = served.run(key, LINES)
    expected = loaded(name).toward(direction).translate(LINES, **options)
    assert answers == [near(of_translation(result)) for result in expected]
    assert extra is None or extra in answers[0]["hypotheses"][0]["extras"]
    assert answers[0]["hypotheses"][0]["attention"]


def test_scores_and_both_terms_of_dual_inference(loaded):
    """The page shows the score of Eq. 7 by /score in both directions: the terms are those."""
    model = loaded("dual_transformer")
    served = ServedModel("m", model, Limits())
    (result,) = model.translate(LINES[:1], beam=2, nbest=2, max_len_b=7, dual_alpha=0.5)
    for hypothesis in result.hypotheses:
        dual, target = hypothesis.extras["dual"], hypothesis.text
        forward = served.run(Key("m", "xx-yy", "score", ()), [Pair(LINES[0], target)])
        backward = served.run(Key("m", "yy-xx", "score", ()), [Pair(target, LINES[0])])
        assert forward[0]["score"] * dual["target_tokens"] == pytest.approx(
            dual["target_given_source"], abs=1e-3
        )
        assert backward[0]["score"] * dual["source_tokens"] == pytest.approx(
            dual["source_given_target"], abs=1e-3
        )
        mean = (forward[0]["score"] + backward[0]["score"]) / 2
        assert hypothesis.score == pytest.approx(mean, abs=1e-3)
    expected = of_score(model.score(LINES[:1], ["un1"])[0], True)
    key = Key("m", "xx-yy", "score", (("attention", True),))
    assert served.run(key, [Pair(LINES[0], "un1")]) == [near(expected)]


def test_labels_and_perplexities(loaded):
    texts = ["good film was it", "the plot"]
    labels = ServedModel("m", loaded("duo_classifier"), Limits())
    expected = [of_classification(result) for result in loaded("duo_classifier").classify(texts)]
    assert labels.run(Key("m", "", "classify", ()), texts) == near(expected)
    assert expected[0]["attention"]
    language = ServedModel("m", loaded("gru_lm"), Limits())
    expected = [of_perplexity(result) for result in loaded("gru_lm").perplexity(LINES)]
    assert language.run(Key("m", "", "perplexity", ()), LINES) == near(expected)


def test_perplexities_of_twins_have_their_distance(loaded):
    served = ServedModel("m", loaded("twin_lstm_lm"), Limits())
    for answer in served.run(Key("m", "", "perplexity", ()), LINES):
        *distances, last = answer["extras"]["twin_distance"]
        assert len(distances) == len(answer["tokens"]) - 1 and last is None
        assert all(distance > 0 for distance in distances)


def test_kinds_without_text_are_refused(loaded):
    with pytest.raises(ValueError, match="m: the model is for speech; allowed: models that read"):
        ServedModel("m", loaded("twin_speech_lstm"), Limits())


def test_directions_and_what_they_do(loaded):
    both = ServedModel("m", loaded("dual_lstm_classifier"), Limits())
    described = {entry["direction"]: entry for entry in both.description()["directions"]}
    assert described["text-label"]["operations"] == ["classify", "translate"]
    assert described["label-text"]["kind"] == "translation"
    assert described["text-label"]["reverse"] == "label-text"
    routed = ServedModel("m", loaded("routed_gru"), Limits())
    assert routed.description()["has_router"] and not both.description()["has_router"]
    assert ServedModel("m", loaded("twin_lstm"), Limits()).description()["has_twin"]
    assert routed.summary() == "translation xx-yy, xx-zz; fairseq, cpu"


def test_languages_may_have_a_dash(loaded):
    """As those of fairseq's own tasks may: "xx-pt-BR" cannot be divided."""
    stock = loaded("stock fconv")
    model = type(stock)(stock.loaded, stock.task)
    model.pair = LanguagePair("xx", "pt-BR")
    model.direction = str(model.pair)
    (described,) = ServedModel("m", model, Limits()).description()["directions"]
    assert described["direction"] == "xx-pt-BR" and described["reverse"] is None
    assert (described["sources"], described["target"]) == (["xx"], "pt-BR")


def test_several_sources_are_a_direction(loaded):
    served = ServedModel("m", loaded("multiway_gru", "--lang-pairs", "xx-yy,zz-yy"), Limits())
    assert list(served.directions) == ["xx-yy", "zz-yy", "xx+zz-yy"]
    assert served.toward("zz+xx-yy").sources == ("zz", "xx")
    model = served.toward("xx+zz-yy")
    assert model.sources == ("xx", "zz") and served.toward("xx+zz-yy") is model
    assert served.length(model, ("a b", "c")) == 5
    for wrong in ("xx+qq-yy", "+-", "yy-xx", ""):
        with pytest.raises(Refused) as refused:
            served.toward(wrong)
        assert refused.value.status == 404
        assert {"xx-yy", "zz-yy"} <= set(refused.value.allowed)
