"""``score``: hypotheses, given back as targets, have the scores that the search gave them."""

from types import SimpleNamespace

import pytest
from options.systems import SYSTEMS

import fairseq_ext
from fairseq_ext.inference.scoring import Scoring

LINES = ["an1 av2 an3", "an4 av5 an6 at1", "an0", "unknown av1 an8 at2"]
NAMES = ["dual_transformer", "multiway_gru", "routed_gru", "transformer", "duo_transformer"]


@pytest.mark.parametrize("name", [*NAMES, "twin_lstm"])
def test_scores_are_those_of_the_search(name, data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of(name), data[SYSTEMS[name].data])
    results = model.translate(LINES, beam=2, max_len_b=6)
    best = [result.hypotheses[0] for result in results]
    scores = model.score(LINES, [" ".join(h.tokens[:-1]) for h in best])
    for score, hypothesis in zip(scores, best):
        assert score.tokens == hypothesis.tokens
        assert score.score == pytest.approx(hypothesis.score, abs=1e-4)
        assert score.token_scores == pytest.approx(hypothesis.token_scores, abs=1e-4)
        if hypothesis.attention is not None:
            assert score.attention == pytest.approx(hypothesis.attention, abs=1e-4)


def test_a_line_break_in_a_target_is_a_blank(data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of("transformer"), data["two"])
    scoring = Scoring(model, model.translator(1, {}))
    # cuts at blanks alone, as the sub-word models do
    coder = SimpleNamespace(encode=lambda text: " ".join(text.replace(" ", "_")))
    scoring.coders = scoring.coders._replace(bpe=coder)
    expected = scoring.encode_target("un1 un2")
    assert scoring.encode_target("un1\r\nun2\n").tolist() == expected.tolist()


def test_the_longest_target_is_that_of_the_decoder(data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of("transformer"), data["two"])
    scoring = Scoring(model, model.translator(1, {}))
    scoring.translator.max_positions = (9, 4)  # of sources and targets
    assert len(scoring.encode_target("un1 un2 un3")) == 4
    with pytest.raises(ValueError, match="5 tokens in the target, .*; allowed: 4"):
        scoring.encode_target("un1 un2 un3 un4")


def test_what_cannot_be_scored_is_named(data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of("transformer"), data["two"])
    long = "an1 " * 5_000
    first, second, third = model.score([long, "an1", "an1"], ["un1", long, "un1"])
    assert "more than the model takes" in first.error
    assert "in the target, more than the model takes" in second.error
    assert third.error is None and third.score < 0


@pytest.mark.parametrize("wrong", ["an1", b"an1", None, 5])
def test_one_text_is_no_list_of_texts(data, checkpoint_of, wrong):
    model = fairseq_ext.load(checkpoint_of("transformer"), data["two"])
    allowed = f"a {type(wrong).__name__}; allowed: a list or an iterator"
    with pytest.raises(TypeError, match=f"sources: {allowed}"):
        model.score(wrong, ["un1", "un2", "un3"])
    with pytest.raises(TypeError, match=f"targets: {allowed}"):
        model.score(["an1", "an2", "an3"], wrong)
