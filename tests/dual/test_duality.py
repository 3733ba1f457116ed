"""The duality gap, and how both directions of a batch share it."""

import math

import pytest
import torch
from fairseq.logging import metrics

from fairseq_ext.dual.supervised import duality


def test_the_gap_is_zero_where_both_factorisations_agree():
    """P(x) P(y|x) = P(x, y) = P(y) P(x|y), of a joint distribution of two words each."""
    joint = torch.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=torch.double)
    for x in range(2):
        for y in range(2):
            p_x, p_y = joint[x].sum(), joint[:, y].sum()
            terms = [p_x, joint[x, y] / p_x, p_y, joint[x, y] / p_y]
            assert duality.duality_gap(*(term.log() for term in terms)) == pytest.approx(0)
    assert duality.duality_gap(0.0, math.log(0.5), 0.0, 0.0) == pytest.approx(-math.log(2))


def terms(log_likelihood, log_marginal):
    """Of a direction with two pairs, as the criterion makes them."""
    values = torch.tensor(log_likelihood), torch.tensor(log_marginal), torch.ones(2)
    return duality.DirectionTerms(torch.tensor(0.0), *values, {})


def test_both_directions_have_half_of_the_term_each():
    gap = duality.DualityGap.__new__(duality.DualityGap)
    torch.nn.Module.__init__(gap)
    gap.weight = 0.5
    f, g = terms([-1.0, -2.0], [-5.0, -3.0]), terms([-4.0, -1.0], [-6.0, -4.0])
    l_duality, penalties = gap.penalties(f, g)
    # log P(x) + log P(y|x) - log P(y) - log P(x|y): -6 - 1 + 5 + 4 = 2 and -4 - 2 + 3 + 1 = -2
    assert l_duality.tolist() == [4.0, 4.0]
    assert [penalty.item() for penalty in penalties] == [0.5 * 8 / 2] * 2


def test_batches_without_a_language_model_count_nothing(monkeypatch):
    """Of two batches one has the marginal of a label, which is no language model's."""
    one_direction = duality.DualityGap.__mro__[1]
    monkeypatch.setattr(one_direction, "reduce_metrics", classmethod(lambda *_: None))
    learnt = {"l_duality": 6.0, "nsentences": 2, "lm_nll_loss": 4 * math.log(2), "lm_tokens": 4}
    outputs = [learnt, {"l_duality": 3.0, "nsentences": 1}]
    with metrics.aggregate(new_root=True) as meters:
        duality.DualityGap.reduce_metrics(outputs)
    assert meters.get_smoothed_values() == {"l_duality": 3.0, "lm_nll_loss": 1.0}


@pytest.mark.parametrize("weight", [-0.5, -1e-9, float("inf"), float("nan")])
def test_the_weight_is_at_least_zero_and_finite(weight):
    with pytest.raises(ValueError, match="^--dsl-weight .*: allowed: 0 or more$"):
        duality.check_weight(weight)
    duality.check_weight(0)
