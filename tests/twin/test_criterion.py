"""The objective against loops over single numbers, where its gradients go, and bad input."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq import metrics
from omegaconf import OmegaConf
from twin.toy import END, PAD, SimpleDecoder, ToyModel, arrays, batch, criterion, sentences

from fairseq_ext.twin import criterion as module
from fairseq_ext.twin.config import TwinConfig, check
from fairseq_ext.twin.criterion import TwinCriterion
from properties import check_gradient_everywhere, check_no_gradient
from reference import twin as reference
from reference.gradient import central_difference, random_entries

BATCHES = [(4, 2, 6, 1), (3,), (1, 0), (0,)]


def expected(targets, params, twin_loss, learnt, frozen=None):
    """The sum of reference.objective over the sentences; frozen: h^b of each sentence."""
    frozen = frozen or [None] * len(targets)
    options = (twin_loss.weight, twin_loss.penalty.kind, learnt, twin_loss.epsilon)
    return sum(
        reference.objective(sentence, END, params, *options, targets=states)
        for sentence, states in zip(targets, frozen)
    )


@pytest.mark.parametrize("lengths", BATCHES)
@pytest.mark.parametrize("kind, learnt", [("mse", True), ("euclidean", True), ("mse", False)])
def test_objective(lengths, kind, learnt):
    """sum_t [-log P_f - log P_b + alpha L_t] of a padded batch, with label smoothing."""
    model, twin_loss = ToyModel(), criterion(kind=kind, learnt=learnt, label_smoothing=0.1)
    targets = sentences(lengths)
    loss, size, _ = twin_loss(model, batch(targets, extra=2))
    assert loss.item() == pytest.approx(
        expected(targets, arrays(model, twin_loss), twin_loss, learnt), rel=1e-11
    )
    assert size == sum(lengths) + len(lengths)


def test_gradient_of_the_objective():
    """Numerical derivatives with h^b of the penalty held: only the likelihood moves it."""
    model, twin_loss = ToyModel(), criterion(kind="euclidean", label_smoothing=0.1)
    targets, rng = sentences((3, 1, 4)), np.random.default_rng(0)
    params = arrays(model, twin_loss)
    frozen = [np.copy(reference.matched_targets(sentence, END, params)) for sentence in targets]
    twin_loss(model, batch(targets))[0].backward()
    gradients = arrays(model, twin_loss, of=lambda parameter: parameter.grad.numpy())
    for name, array in params.items():
        for index in random_entries(array, 3, rng):
            derivative = central_difference(
                lambda: expected(targets, params, twin_loss, True, frozen), array, index
            )
            assert gradients[name][index] == pytest.approx(derivative, rel=1e-6, abs=1e-7), name


@pytest.mark.parametrize(
    "name, broken",
    [
        ("align", lambda states, padding: states.flip(1)),
        ("align", lambda states, padding: states),
        ("matched", lambda padding: ~padding),
        ("matched", lambda padding: torch.ones_like(padding)),
        ("backward_tokens", lambda prev, target, padding: (target.flip(1), prev.flip(1))),
    ],
)
def test_objective_of_a_wrong_matching_differs(monkeypatch, name, broken):
    """Broken twins of the test above: flipped, off, with the end symbol, unmasked."""
    model, twin_loss = ToyModel(), criterion()
    targets = sentences(BATCHES[0])
    monkeypatch.setattr(module, name, broken)
    loss, _, _ = twin_loss(model, batch(targets, extra=2))
    right_value = expected(targets, arrays(model, twin_loss), twin_loss, True)
    assert abs(loss.item() / right_value - 1) > 1e-6  # the right one is equal to 1e-11


class Leaking(torch.nn.Module):
    """A penalty without the stop-gradient."""

    has_backward_states = True

    def forward(self, states, matched, aligned):
        return (states - aligned).square().mean(dim=2) * matched


def terms(model, twin_loss, data):
    """The penalty and the backward likelihood by themselves."""
    call, predicted = twin_loss.call(data)
    _, twin = model(**data["net_input"], twin=call)
    penalty, _ = twin_loss.distance(twin, data["target"].eq(PAD))
    return penalty.sum(), twin_loss._likelihoods(twin.backward_logits, predicted)[0].sum()


def test_gradients_go_where_the_paper_says():
    """L_t into the forward network and the encoder alone; -log P_b not into the forward one."""
    model, twin_loss = ToyModel(), criterion()
    data = batch(sentences((4, 2)), sentences((3, 3), seed=1))
    penalty, backward = terms(model, twin_loss, data)
    forward = [(name, p) for name, p in model.decoder.named_parameters() if "output" not in name]
    check_no_gradient(penalty, twin_loss.network.named_parameters())
    check_gradient_everywhere(penalty, [*forward, ("encoder", model.encoder)])
    check_gradient_everywhere(penalty, twin_loss.penalty.named_parameters())
    check_gradient_everywhere(
        backward, [*twin_loss.network.named_parameters(), ("e", model.encoder)]
    )
    check_no_gradient(backward, model.decoder.named_parameters())


def test_a_leak_into_the_backward_network_would_be_found(monkeypatch):
    model, twin_loss = ToyModel(), criterion()
    twin_loss.penalty = Leaking()
    monkeypatch.setattr(torch.Tensor, "detach", lambda tensor: tensor)
    penalty, _ = terms(model, twin_loss, batch(sentences((4, 2))))
    with pytest.raises(AssertionError, match="moves"):
        check_no_gradient(penalty, twin_loss.network.named_parameters())


def by_sentence(twin_loss, targets, sources, mate=None):
    """The terms of sentence 0 in a batch."""
    data = batch(targets, sources)
    call, predicted = twin_loss.call(data)
    (logits, _), twin = ToyModel()(**data["net_input"], twin=call)
    padding = data["target"].eq(PAD)
    rows = [twin_loss.distance(twin, padding)[0]]
    for scores, target in ((logits, data["target"]), (twin.backward_logits, predicted)):
        picked = scores.log_softmax(dim=2).gather(2, target.unsqueeze(2)).squeeze(2)
        rows.append(picked.masked_fill(padding, 0.0))
    return torch.stack([row[0].sum() for row in rows])


def test_batch_mates_and_padding_do_not_count():
    """All terms of a sentence are the same alone, beside a longer one, and beside other words."""
    twin_loss = criterion(learnt=True)
    first, source = sentences((3,)), sentences((4,), seed=1)
    alone = by_sentence(twin_loss, first, source)
    for seed in (2, 3):
        mates = sentences((7, 1), seed=seed)
        together = by_sentence(twin_loss, first + mates, source + mates)
        torch.testing.assert_close(together, alone, rtol=1e-12, atol=0)


def test_evaluation_is_that_of_the_forward_network():
    """Neither the backward network nor g is run."""
    model, twin_loss = ToyModel(), criterion().eval()
    targets = sentences((4, 2))
    twin_loss.network.forward = twin_loss.penalty.forward = None
    loss, _, log = twin_loss(model, batch(targets))
    params = {f"forward.{name}": p.detach().numpy() for name, p in model.decoder.named_parameters()}
    likelihood = sum(
        reference.likelihood(
            sentence,
            END,
            reference.network_states(sentence, END, params, "forward"),
            params,
            "forward",
        )[0]
        for sentence in targets
    )
    assert loss.item() == pytest.approx(likelihood, rel=1e-12)
    assert set(log) == {"loss", "nll_loss", "ntokens", "nsentences", "sample_size"}
    losses, *_ = twin_loss(model, batch(targets), reduce=False)
    assert losses.shape == (2 * 5,) and losses.ne(0).sum() == 5 + 3
    assert losses.sum().item() == pytest.approx(likelihood, rel=1e-12)


def test_losses_of_single_tokens_are_refused_in_training():
    with pytest.raises(ValueError, match=r"^criterion twin: reduce=False in training"):
        criterion()(ToyModel(), batch(sentences((4, 2))), reduce=False)


@pytest.mark.parametrize("options", [{"target": "zeros"}, {"target": "noise"}, {"stabilise": True}])
def test_rows_without_a_backward_network(options):
    """Table 1: the loss is -log P_f + alpha L_t, and the criterion has no parameters."""
    model, twin_loss = ToyModel(), criterion(weight=2.0, **options)
    assert not list(twin_loss.parameters())
    data = batch(sentences((4, 2)))
    torch.manual_seed(1)
    loss, _, log = twin_loss(model, data)
    assert loss.item() == pytest.approx((log["nll_loss"] + 2.0 * log["L_t"]).item(), rel=1e-12)
    assert "backward_nll_loss" not in log
    assert log["L_t"] > 0


def test_weight_zero_leaves_both_likelihoods():
    model, twin_loss = ToyModel(), criterion(weight=0.0)
    loss, _, log = twin_loss(model, batch(sentences((4, 2))))
    assert loss.item() == pytest.approx((log["nll_loss"] + log["backward_nll_loss"]).item())


def test_terms_are_logged_by_name():
    """Likelihoods in bits per token, L_t per matched token; sums over workers."""
    model, twin_loss = ToyModel(), criterion()
    parts = [batch(sentences(lengths, seed=seed)) for seed, lengths in enumerate([(4, 2), (0,)])]
    logs = [twin_loss(model, part)[2] for part in parts]
    with metrics.aggregate(new_root=True) as meters:
        TwinCriterion.reduce_metrics(logs)
    nats = sum(float(log["nll_loss"]) for log in logs)
    assert meters["nll_loss"].avg == pytest.approx(nats / 9 / np.log(2))
    assert meters["L_t"].avg == pytest.approx(float(logs[0]["L_t"]) / 6)
    assert meters["ppl"].fn(meters) == pytest.approx(np.exp(nats / 9), abs=0.01)
    assert {"loss", "backward_nll_loss", "backward_ppl"} <= set(meters)


def test_perplexity_does_not_hide_an_empty_batch():
    """Sentences without words have no L_t: the mean over none is zero, not NaN."""
    with metrics.aggregate(new_root=True) as meters:
        TwinCriterion.reduce_metrics([criterion()(ToyModel(), batch([[]]))[2]])
    assert meters["L_t"].sum == 0


def test_per_sentence_average():
    """The loss is of sentences, likelihoods are of tokens, as those of fairseq's criteria."""
    _, size, log = criterion(sentence_avg=True)(ToyModel(), batch(sentences((4, 2))))
    assert size == 2
    with metrics.aggregate(new_root=True) as meters:
        TwinCriterion.reduce_metrics([log])
    for name, count in {"loss": 2, "nll_loss": 8, "backward_nll_loss": 8}.items():
        bits = float(log[name]) / np.log(2)
        assert (meters[name].avg, meters[name].count) == (pytest.approx(bits / count), count)


# ---------------------------------------------------------------- bad input


def options(**values):
    return OmegaConf.merge(OmegaConf.structured(TwinConfig), {"sentence_avg": False, **values})


@pytest.mark.parametrize(
    "values, message",
    [
        ({"twin_weight": -0.5}, r"--twin-weight -0.5: must be at least 0"),
        ({"twin_weight": float("nan")}, r"--twin-weight nan"),
        ({"label_smoothing": 1.0}, r"--label-smoothing 1.0"),
        (
            {"twin_stabilise": True, "twin_target": "zeros"},
            r"stabilise.*--twin-target zeros",
        ),
        ({"twin_stabilise": True, "twin_map": "affine"}, r"stabilise.*--twin-map affine"),
        (
            {"twin_stabilise": True, "twin_distance": "euclidean"},
            r"stabilise.*leave out --twin-distance euclidean",
        ),
        ({"twin_weight": float("inf")}, r"--twin-weight inf: must be at least 0 and finite"),
        ({"twin_map": "affine", "twin_target": "zeros"}, r"--twin-map affine.*allowed: identity"),
        ({"twin_map": "affine", "twin_target": "noise"}, r"--twin-map affine.*allowed: identity"),
    ],
)
def test_bad_options_name_themselves(values, message):
    with pytest.raises(ValueError, match=message):
        check(options(**values))


def test_good_options():
    check(options())
    check(options(twin_weight=0.0, twin_target="noise", twin_map="identity"))
    check(options(twin_stabilise=True))


@pytest.mark.parametrize("target", ["backward", "zeros"])
@pytest.mark.parametrize("arch", ["lstm", "transformer", "dual_transformer", "deep_fusion_gru"])
def test_model_without_the_contract(arch, target):
    run = OmegaConf.create({"model": {"_name": arch}, "criterion": options(twin_target=target)})
    with pytest.raises(ValueError, match=f"--arch {arch} has no.*allowed: .*twin_lstm") as error:
        TwinCriterion.build_criterion(run.criterion, SimpleNamespace())
    assert "multiway_gru" in str(error.value)


@pytest.mark.parametrize("holder", ["cfg", "args"])
@pytest.mark.parametrize("option", ["left_pad_target", "add_bos_token"])
def test_targets_that_are_not_the_inputs_that_follow(holder, option):
    """fairseq's older tasks, such as language_modeling, keep their options in ``args``."""
    task = SimpleNamespace(**{"cfg": None, holder: SimpleNamespace(**{option: True})})
    name = f"--{option.replace('_', '-')}"
    with pytest.raises(ValueError, match=f"{name}: the criterion twin .*; leave it out"):
        TwinCriterion.build_criterion(options(twin_target="zeros"), task)


@pytest.mark.parametrize("holder", ["cfg", "args"])
def test_a_smaller_output_dictionary_is_refused(holder):
    """The backward network would predict words that the forward network does not."""
    task = SimpleNamespace(**{"cfg": None, holder: SimpleNamespace(output_dictionary_size=12)})
    with pytest.raises(ValueError, match="--output-dictionary-size 12: .*; leave it out"):
        TwinCriterion.build_criterion(options(twin_target="zeros"), task)


@pytest.fixture
def build(monkeypatch):
    """Function (values of options) -> (the criterion of a run, its options after that)."""

    class Model:
        @staticmethod
        def build_backward(model_cfg, task):
            return criterion().network

    monkeypatch.setattr(module, "_model_of_the_run", lambda cfg: (Model, None))
    task = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD, eos=lambda: END))

    def build_with(**values):
        run = OmegaConf.create({"criterion": options(**values)})
        return TwinCriterion.build_criterion(run.criterion, task), run.criterion

    return build_with


@pytest.mark.parametrize(
    "values, built",
    [
        ({}, True),
        ({"twin_stabilise": True}, False),
        ({"twin_target": "zeros"}, False),
        ({"twin_target": "noise"}, False),
    ],
)
def test_only_twinnet_has_a_backward_network(values, built, build):
    """AR, noise and the stabilising norm are without one: it would cost its training."""
    twin_loss, cfg = build(**values)
    assert (twin_loss.network is not None) == built
    assert cfg.twin_stored


def test_options_reach_the_criterion(build):
    distance = {"twin_map": "identity", "twin_distance": "euclidean"}
    twin_loss, _ = build(twin_weight=0.7, label_smoothing=0.1, sentence_avg=True, **distance)
    assert (twin_loss.weight, twin_loss.epsilon, twin_loss.sentence_avg) == (0.7, 0.1, True)
    assert twin_loss.penalty.kind == "euclidean" and not list(twin_loss.penalty.parameters())
    plain, _ = build()
    assert (plain.weight, plain.epsilon, plain.sentence_avg) == (1.5, 0.0, False)
    assert plain.penalty.kind == "mse" and len(list(plain.penalty.parameters())) == 2
    noisy, _ = build(twin_target="noise")
    assert noisy.penalty.target == "noise" and not noisy.penalty.stabilise
    assert build(twin_stabilise=True)[0].penalty.stabilise


def test_criterion_outside_of_a_run():
    with pytest.raises(ValueError, match="configuration of a whole run"):
        TwinCriterion.build_criterion(options(), SimpleNamespace())
    without_model = OmegaConf.create({"model": None, "criterion": options()})
    with pytest.raises(ValueError, match="configuration of a whole run"):
        TwinCriterion.build_criterion(without_model.criterion, SimpleNamespace())


@pytest.mark.parametrize("target", [None, torch.empty(2, 0, dtype=torch.long)])
def test_batch_without_targets(target):
    data = {**batch(sentences((2,))), "target": target}
    with pytest.raises(ValueError, match="no target tokens"):
        criterion()(ToyModel(), data)


def test_training_without_the_backward_network():
    twin_loss = criterion()
    twin_loss.network = None
    with pytest.raises(ValueError, match="--twin-stored"):
        twin_loss(ToyModel(), batch(sentences((2,))))


def test_checkpoint_of_a_plain_run_leaves_the_network_as_it_is():
    twin_loss = criterion()
    before = {name: value.clone() for name, value in twin_loss.state_dict().items()}
    twin_loss.load_state_dict(None, strict=True)
    assert all(torch.equal(before[name], value) for name, value in twin_loss.state_dict().items())
    twin_loss.load_state_dict({name: value + 1 for name, value in before.items()})
    assert torch.equal(twin_loss.network.decoder.bias, before["network.decoder.bias"] + 1)
    assert isinstance(twin_loss.network.decoder, SimpleDecoder)
