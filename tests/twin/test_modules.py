"""The penalty against loops over single numbers: values and gradients."""

import numpy as np
import pytest
import torch

from fairseq_ext.twin.modules import DISTANCES, TwinPenalty
from reference import twin as reference
from reference.gradient import central_difference, random_entries

SHAPES = [(3, 5, 4), (1, 1, 3), (2, 1, 1), (1, 6, 2)]


def random_case(shape, seed=0):
    """Two sets of states and a mask with at least one token."""
    rng = np.random.default_rng(seed)
    states, others = rng.normal(size=(2, *shape))
    keep = rng.random(shape[:2]) < 0.7
    keep[0, 0] = True
    return states, others, keep


def reference_sum(states, others, keep, kind, penalty):
    g = ()
    if isinstance(penalty.map, torch.nn.Linear):
        g = (penalty.map.weight.detach().numpy(), penalty.map.bias.detach().numpy())
    rows = zip(states, others, keep)
    return sum(
        value
        for state, other, counted in rows
        for value, counts in zip(reference.penalty(state, other, kind, *g), counted)
        if counts
    )


def randomise(penalty, seed=3):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in penalty.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return penalty.double()


def check_gradient(loss, leaf, array, expected):
    """The gradient of ``loss`` in ``leaf`` beside differences of ``expected()``, a function of the
    array that it shares.
    """
    loss.backward()
    for index in random_entries(array, 6, np.random.default_rng(1)):
        derivative = central_difference(expected, array, index)
        assert leaf.grad[index].item() == pytest.approx(derivative, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("learnt", [False, True])
@pytest.mark.parametrize("kind", DISTANCES)
def test_distance_to_backward_states(kind, learnt, shape):
    """L_t = || g(h^f_t) - h^b_t ||, its gradient in h^f, W and b, and none in h^b."""
    states, others, keep = random_case(shape)
    penalty = randomise(TwinPenalty("backward", kind, False, shape[2] if learnt else None))
    tensors = [torch.from_numpy(array).requires_grad_() for array in (states, others)]
    distances = penalty(tensors[0], torch.from_numpy(keep), tensors[1])
    assert distances.shape == shape[:2]
    assert (distances[~torch.from_numpy(keep)] == 0).all()
    loss = distances.sum()

    def expected():
        return reference_sum(states, others, keep, kind, penalty)

    assert loss.item() == pytest.approx(expected(), rel=1e-12)
    loss.backward()
    assert tensors[1].grad is None
    leaves = [tensors[0], *penalty.parameters()]
    rng = np.random.default_rng(1)
    for leaf in leaves:
        array = leaf.detach().numpy()
        for index in random_entries(array, 6, rng):
            derivative = central_difference(expected, array, index)
            assert leaf.grad[index].item() == pytest.approx(derivative, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("kind", DISTANCES)
def test_zeros_penalise_the_norm_of_the_states(kind):
    """Table 1, AR."""
    states, others, keep = random_case((3, 4, 5))
    penalty, tensor = TwinPenalty("zeros", kind), torch.from_numpy(states).requires_grad_()
    distance = penalty(tensor, torch.from_numpy(keep)).sum()

    def expected():
        return reference_sum(states, np.zeros_like(others), keep, kind, penalty)

    assert distance.item() == pytest.approx(expected(), rel=1e-12)
    check_gradient(distance, tensor, states, expected)


@pytest.mark.parametrize("kind", DISTANCES)
def test_noise_is_gaussian_and_new_each_time(kind):
    """Table 1, Gaussian noise."""
    states, _, keep = random_case((3, 4, 5))
    penalty, tensor = TwinPenalty("noise", kind), torch.from_numpy(states).requires_grad_()
    torch.manual_seed(5)
    noise = torch.randn_like(tensor).numpy()
    torch.manual_seed(5)
    distances, again = (penalty(tensor, torch.from_numpy(keep)) for _ in range(2))

    def expected():
        return reference_sum(states, noise, keep, kind, penalty)

    assert distances.sum().item() == pytest.approx(expected(), rel=1e-12)
    assert not torch.equal(distances, again)
    check_gradient(distances.sum(), tensor, states, expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_stabilising_norm(shape):
    """(||h_t|| - ||h_{t-1}||)^2 from the second token on, with its gradient."""
    states, _, keep = random_case(shape)
    keep = np.maximum.accumulate(keep[:, ::-1], axis=1)[:, ::-1].copy()  # no holes, as in batches
    penalty = TwinPenalty(stabilise=True)
    tensor = torch.from_numpy(states).requires_grad_()
    penalties = penalty(tensor, torch.from_numpy(keep))
    penalties.sum().backward()

    def expected():
        pairs = zip(states, keep)
        return sum(sum(reference.stabilising_norm(sentence[places])) for sentence, places in pairs)

    assert penalties.sum().item() == pytest.approx(expected(), rel=1e-12, abs=1e-15)
    for index in random_entries(states, 6, np.random.default_rng(1)):
        derivative = central_difference(expected, states, index)
        assert tensor.grad[index].item() == pytest.approx(derivative, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("kind", DISTANCES)
def test_equal_states_have_no_distance_and_no_gradient(kind):
    """The Euclidean norm has no derivative at zero: it must not become NaN."""
    states = torch.ones(2, 3, 4, requires_grad=True)
    loss = TwinPenalty("backward", kind)(states, torch.ones(2, 3).bool(), states).sum()
    loss.backward()
    assert loss.item() == 0
    assert not states.grad.any()


def test_half_precision_is_computed_in_single():
    states = torch.full((1, 1, 64), 300.0, dtype=torch.half)  # squares are above 65504
    distance = TwinPenalty("zeros")(states, torch.ones(1, 1).bool())
    assert distance.dtype == torch.float32
    assert distance.item() == 90000.0


@pytest.mark.parametrize("kind, expected", [("mse", 2047.5**2), ("euclidean", 2047.5)])
def test_differences_of_half_precision_are_not_rounded(kind, expected):
    """2048 and 0.5 are numbers of half precision, 2047.5 is none."""
    mapped, target = (torch.full((1, 1, 1), x, dtype=torch.half) for x in (2048.0, 0.5))
    penalty = TwinPenalty("backward", kind)
    assert penalty(mapped, torch.ones(1, 1).bool(), target).item() == expected


def test_which_rows_need_a_backward_network():
    assert TwinPenalty("backward").has_backward_states
    for other in (TwinPenalty("zeros"), TwinPenalty("noise"), TwinPenalty(stabilise=True)):
        assert not other.has_backward_states
