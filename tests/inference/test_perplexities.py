"""``perplexity`` of language models, against fairseq's own data sets and scorer."""

import math

import pytest
from fairseq.data import encoders
from fairseq.sequence_scorer import SequenceScorer

import fairseq_ext
from fairseq_ext.inference.perplexities import perplexity_of


@pytest.mark.parametrize(
    "name, more",
    [
        ("gru_lm", ()),
        ("twin_lstm_lm", ()),
        ("gru_lm", ("--output-dictionary-size", "16")),
        ("gru_lm", ("--add-bos-token",)),
    ],
)
def test_perplexities_are_those_of_the_data_set(name, more, data, checkpoint_of, toy_corpus):
    model = fairseq_ext.load(checkpoint_of(name, *more), data["language"])
    assert model.kind == "language_model" and model.directions == ()
    texts = (toy_corpus.text / "valid.yy").read_text().splitlines()[:6]
    model.task.load_dataset("valid")
    dataset = model.task.dataset("valid")
    batch = dataset.collater([dataset[number] for number in range(6)])
    lists = SequenceScorer(model.task.target_dictionary).generate(model.loaded.models, batch)
    first = more.count("--add-bos-token")  # fairseq-eval-lm leaves this symbol out, too
    expected = {
        number: hypotheses[0]["positional_scores"][first:].sum().item() / math.log(2)
        for number, hypotheses in zip(batch["id"].tolist(), lists)
    }
    for number, result in enumerate(model.perplexity(texts, batch=4)):
        # what the model does not write is unknown
        written = model.task.target_dictionary
        words = [
            word if written.index(word) < len(written) else "<unk>"
            for word in texts[number].split()
        ]
        assert result.tokens == [*words, "</s>"]
        assert sum(result.token_scores) == pytest.approx(expected[number], abs=1e-3)
        assert result.perplexity == pytest.approx(2**-result.score)
    empty, long = model.perplexity(["", "un1 " * 10_000])
    assert empty.tokens == ["</s>"] and (long.error is None or "allowed" in long.error)
    with pytest.raises(ValueError, match="allowed: perplexity"):
        model.translate(["un1"])


@pytest.mark.parametrize("more, words", [((), 3), (("--add-bos-token",), 2)])
def test_the_longest_text_has_as_many_tokens_as_all_members_take(
    more, words, data, checkpoint_of, monkeypatch
):
    path = checkpoint_of("gru_lm", *more)
    model = fairseq_ext.load([path, path], data["language"])
    for member, limit in zip(model.loaded.models, (9, 4)):
        monkeypatch.setattr(member, "max_positions", lambda limit=limit: limit)
    longest, longer = model.perplexity(["un1 " * words, "un1 " * (words + 1)])
    assert longest.error is None and len(longest.tokens) == words + 1
    assert longer.error == f"{words + 2} tokens, more than the model takes; allowed: {words + 1}"


def test_a_model_that_diverged_has_no_finite_perplexity():
    assert [perplexity_of(score) for score in (-3.0, -1100.0, -math.inf)] == [8, math.inf, math.inf]
    assert math.isnan(perplexity_of(math.nan))


def test_language_models_have_the_distance_of_their_twin(data, checkpoint_of):
    """L_t of every word, whatever it is in a batch with; none for models without a twin."""
    model = fairseq_ext.load(checkpoint_of("twin_lstm_lm"), data["language"])
    texts = ["un1 un2 uv3", "un4", ""]
    together = model.perplexity(texts)
    for text, result in zip(texts, together):
        (alone,) = model.perplexity([text])
        distance = result.extras["twin_distance"]
        assert distance == pytest.approx(alone.extras["twin_distance"], abs=1e-5, nan_ok=True)
        assert len(distance) == len(result.tokens) and math.isnan(distance[-1])
        assert (distance[:-1] > 0).all()
        assert result.token_scores == pytest.approx(alone.token_scores, abs=1e-4)
    plain = fairseq_ext.load(checkpoint_of("gru_lm"), data["language"])
    assert plain.perplexity(texts)[0].extras == {}
    both = fairseq_ext.load([checkpoint_of("twin_lstm_lm")] * 2, data["language"])
    assert both.perplexity(texts)[0].extras == {}


def test_texts_are_cut_into_words_as_in_the_training(data, checkpoint_of, monkeypatch):
    class Moses:
        def __init__(self, cfg):
            assert cfg.source_lang == "de"

        def encode(self, text):
            return text.replace("-", " ")

    path = checkpoint_of("gru_lm", "--tokenizer", "moses", "--source-lang", "de")
    monkeypatch.setitem(encoders.TOKENIZER_REGISTRY, "moses", Moses)
    (result,) = fairseq_ext.load(path, data["language"]).perplexity(["un1-uv2"])
    assert result.tokens == ["un1", "uv2", "</s>"]
