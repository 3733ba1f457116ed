"""What systems add to hypotheses equals what their own modules and commands say."""

import math

import numpy as np
import pytest
import torch
from options.systems import SYSTEMS

import fairseq_ext

SEARCH = {"beam": 3, "nbest": 2, "max_len_b": 7}
LINES = ["an1 av2 an3", "an4 av5 an6 at1", "an0", "unknown av1 an8 at2"]


def loaded(name, data, checkpoint_of, *more, **options):
    return fairseq_ext.load(checkpoint_of(name, *more), data[SYSTEMS[name].data], **options)


def hypotheses(results):
    return [hypothesis for result in results for hypothesis in result.hypotheses]


def test_router_weights_are_those_of_the_model(data, checkpoint_of):
    model = loaded("routed_gru", data, checkpoint_of).toward("xx-zz")
    (network,), words = model.loaded.models, model.task.dictionaries["zz"]
    for result in model.translate(LINES, **SEARCH):
        source = torch.tensor(
            [model.task.dictionaries["xx"].index(w) for w in result.source_tokens]
        )
        for hypothesis in result.hypotheses:
            target = [words.index(word) for word in hypothesis.tokens]
            previous = torch.tensor([[words.eos(), *target[:-1]]])
            with torch.no_grad():
                expected = network.router_weights(source[None], previous, "xx-zz")
            assert set(hypothesis.extras) == {"router"}
            assert hypothesis.extras["router"].keys() == expected.keys()
            for layer, tau in expected.items():
                weights = hypothesis.extras["router"][layer]
                size = len(source if layer.startswith("encoder") else target)
                assert len(weights) == size
                assert np.allclose(weights, tau[0].numpy(), atol=1e-5)
                assert np.allclose(weights.sum(axis=1), 1, atol=1e-5)


def test_models_without_routers_have_no_weights(data, checkpoint_of):
    results = loaded("mtl_partial_gru", data, checkpoint_of).translate(LINES, **SEARCH)
    assert all(hypothesis.extras == {} for hypothesis in hypotheses(results))


@pytest.mark.parametrize("name", ["twin_lstm", "twin_transformer"])
def test_twin_distance_is_that_of_the_criterion(name, data, checkpoint_of):
    model = loaded(name, data, checkpoint_of)
    criterion, (network,) = model.loaded.twin, model.loaded.models
    source_words, words = model.task.source_dictionary, model.task.target_dictionary
    for result in model.translate(LINES, **SEARCH):
        for hypothesis in result.hypotheses:
            target = torch.tensor([[words.index(word) for word in hypothesis.tokens]])
            source = torch.tensor([[source_words.index(word) for word in result.source_tokens]])
            previous = torch.cat([target[:, -1:], target[:, :-1]], dim=1)
            inputs = {
                "src_tokens": source,
                "src_lengths": torch.tensor([source.size(1)]),
                "prev_output_tokens": previous,
            }
            call, _ = criterion.call({"net_input": inputs, "target": target})
            with torch.no_grad():
                _, twin = network(**inputs, twin=call)
                expected, _ = criterion.distance(twin, target.eq(words.pad()))
            distances = hypothesis.extras["twin_distance"]
            assert len(distances) == len(hypothesis.tokens) and math.isnan(distances[-1])
            assert distances[:-1] == pytest.approx(expected[0, :-1].numpy(), rel=1e-3, abs=1e-5)
            assert (distances[:-1] > 0).all()


def test_terms_of_dual_inference(data, checkpoint_of):
    model = loaded("dual_transformer", data, checkpoint_of)
    plain = model.translate(LINES, **SEARCH)
    assert all("dual" not in hypothesis.extras for hypothesis in hypotheses(plain))
    ranked = model.translate(LINES, beam=3, nbest=3, max_len_b=7, dual_alpha=0.4)
    back = model.toward("yy-xx")
    for result in ranked:
        assert sorted(h.extras["dual"]["rank"] for h in result.hypotheses) == [0, 1, 2]
        for hypothesis in result.hypotheses:
            terms = hypothesis.extras["dual"]
            assert terms["target_given_source"] == pytest.approx(
                sum(hypothesis.token_scores), abs=1e-3
            )
            (reverse,) = back.score([hypothesis.text], [result.source])
            if not reverse.error:
                assert terms["source_given_target"] == pytest.approx(
                    sum(reverse.token_scores), abs=1e-3
                )
            score = 0.4 * terms["target_given_source"] / terms["target_tokens"]
            score += 0.6 * terms["source_given_target"] / terms["source_tokens"]
            assert hypothesis.score == pytest.approx(score, abs=1e-4)


def test_a_source_that_the_other_direction_does_not_write(data, checkpoint_of, monkeypatch):
    model = loaded("dual_transformer", data, checkpoint_of)
    monkeypatch.setattr(model.loaded.models[0], "_max_positions", (9, 5))
    lines = ["an1 av2 an3 at1", "an1 av2 an3 at1 an2"]
    shorter, longer = model.translate(lines, beam=2, dual_alpha=0.4)
    assert shorter.error is None and longer.error.endswith("allowed: (5, 5)")
    assert all(result.error is None for result in model.translate(lines, beam=2))


def test_extras_may_be_left_out(data, checkpoint_of):
    for name in ("routed_gru", "twin_lstm"):
        model = loaded(name, data, checkpoint_of)
        results = model.translate(LINES, **SEARCH, extras=False, attention=False)
        assert all(h.extras == {} and h.attention is None for h in hypotheses(results))
        full = model.translate(LINES, **SEARCH)
        assert [h.text for h in hypotheses(full)] == [h.text for h in hypotheses(results)]
        assert all(h.attention is not None for h in hypotheses(full))
