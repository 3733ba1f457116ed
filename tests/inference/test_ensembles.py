"""An ensemble of fairseq is the mean of its members' probabilities, and of what they look at."""

import functools

import numpy as np
import pytest
import torch
from inference.stock import ALL

import fairseq_ext

LINES = ["an1 av2 an3", "an4 av5 an6 at1", "an0"]
TEXTS = ["un1 un2 uv3", "un4", "", "ut1 un4 un6 uv5"]
SEARCH = {"beam": 2, "max_len_a": 1, "max_len_b": 1}  # lengths differ within a batch


@pytest.fixture(scope="module")
def members_of(data, checkpoint_of, sharp):
    """Function (name of a system, more options) -> two models, and their ensemble."""

    @functools.lru_cache(maxsize=None)
    def members(name, *more):
        paths = [checkpoint_of(name, *more), sharp(name, *more)]
        folder = data[ALL[name].data]
        return [fairseq_ext.load(path, folder) for path in (*paths, paths)]

    return members


def check_mean(first, second, mean):
    """Both arrays differ, and the third is their mean."""
    assert abs(first - second).max() > 1e-3
    assert mean == pytest.approx((first + second) / 2, abs=1e-5)


@pytest.mark.parametrize("name", ["transformer", "routed_gru", "full context"])
def test_words_have_the_mean_probability_and_attention(name, members_of):
    *members, ensemble = members_of(name)
    best = [result.hypotheses[0] for result in ensemble.translate(LINES, **SEARCH)]
    targets = [" ".join(hypothesis.tokens[:-1]) for hypothesis in best]
    scores = zip(*(model.score(LINES, targets) for model in (*members, ensemble)))
    for hypothesis, (first, second, mean) in zip(best, scores):
        for result in (hypothesis, mean):
            entries = [np.exp2(entry.token_scores) for entry in (first, second, result)]
            check_mean(*entries)
            assert result.score == pytest.approx(np.log2(entries[2]).mean(), abs=1e-4)
            check_mean(first.attention, second.attention, result.attention)


def test_router_weights_are_the_mean(members_of):
    *members, ensemble = members_of("routed_gru")
    words, langs = ensemble.task.dictionaries, ensemble.direction.split("-")
    for result in ensemble.translate(LINES, **SEARCH):
        (hypothesis,) = result.hypotheses
        source, target = (
            torch.tensor([[words[lang].index(word) for word in tokens]])
            for lang, tokens in zip(langs, (result.source_tokens, hypothesis.tokens))
        )
        with torch.no_grad():
            first, second = (
                model.loaded.models[0].router_weights(source, target.roll(1), ensemble.direction)
                for model in members
            )
        assert hypothesis.extras["router"].keys() == first.keys()
        for layer, tau in hypothesis.extras["router"].items():
            check_mean(first[layer][0].numpy(), second[layer][0].numpy(), tau)


def test_labels_have_the_mean_probability_and_attention(members_of):
    texts = ["good film was it", "the plot of it and bad"]
    for results in zip(*(model.classify(texts) for model in members_of("duo_classifier"))):
        labels = sorted(results[0].probabilities)
        check_mean(*(np.array([entry.probabilities[label] for label in labels])
                     for entry in results))  # fmt: skip
        for name in ("s", "p"):
            check_mean(*(entry.attention[name] for entry in results))


def test_texts_have_the_mean_probability(members_of):
    lists = (model.perplexity(TEXTS, batch=3) for model in members_of("gru_lm"))
    for text, *results in zip(TEXTS, *lists):
        entries = [np.exp2(entry.token_scores) for entry in results]
        check_mean(*entries)
        assert results[2].tokens == [*text.split(), "</s>"]
        assert np.log2(results[2].perplexity) == pytest.approx(-np.log2(entries[2]).mean())


@pytest.mark.parametrize("recorded, fits", [("xx-yy", True), ("yy-xx", False), ("", True)])
def test_a_member_that_was_trained_without_the_names_of_its_languages(
    recorded, fits, data, checkpoint_of, tmp_path
):
    """It took them from its data folder; a checkpoint of stock fairseq does not tell them."""
    named, folder = checkpoint_of("transformer"), data[ALL["transformer"].data]
    state = torch.load(named, weights_only=True)
    state["cfg"]["task"].update(source_lang=None, target_lang=None)
    stored = state["extra_state"].pop("dictionaries")
    if recorded:
        state["extra_state"]["dictionaries"] = {lang: stored[lang] for lang in recorded.split("-")}
    torch.save(state, tmp_path / "unnamed.pt")
    expected = fairseq_ext.load(named, folder).translate(LINES)
    for paths in ([named, tmp_path / "unnamed.pt"], [tmp_path / "unnamed.pt", named]):
        if fits:
            results = fairseq_ext.load(paths, folder).translate(LINES)
            assert [entry.text for entry in results] == [entry.text for entry in expected]
        else:
            with pytest.raises(ValueError, match=f"trained for .*{recorded}.*; allowed: an ensem"):
                fairseq_ext.load(paths, folder)


def test_a_model_of_several_directions_with_one_of_a_single_direction(
    data, checkpoint_of, tmp_path
):
    """--lang-pairs, or -s and -t in either order: the direction that is asked for counts."""
    single, several = checkpoint_of("transformer"), checkpoint_of("dual_transformer")
    folder = data[ALL["dual_transformer"].data]
    state, texts = torch.load(several, weights_only=True), []
    for pairs, source, target in (("xx-yy", None, None), (None, "xx", "yy"), (None, "yy", "xx")):
        named = dict(lang_pairs=pairs, source_lang=source, target_lang=target)
        state["cfg"]["task"].update(named)
        torch.save(state, tmp_path / "several.pt")
        paths = [tmp_path / "several.pt", single]
        model = fairseq_ext.load(paths, folder, "xx-yy")
        texts.append([entry.text for entry in model.translate(LINES)])
        assert model.directions == ("xx-yy",)
        with pytest.raises(ValueError, match="direction 'yy-xx': allowed: xx-yy"):
            model.toward("yy-xx")
        with pytest.raises(ValueError, match="checkpoint translates xx-yy; -s and -t ask for yy-x"):
            fairseq_ext.load(paths, folder, "yy-xx")
    assert texts[0] == texts[1] == texts[2]
