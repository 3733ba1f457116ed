"""Optimizer states of a checkpoint follow the names of its parameters.

tests/test_language_order.py has whole trainings of the systems.
"""

import copy

import pytest
import torch
from common import inprocess
from torch import nn

from fairseq_ext.compat.optimizers.master_parameters import KEY
from fairseq_ext.compat.optimizers.parameter_order import (
    TRAINED,
    check_trained,
    put_in_order,
    trained_names,
)

NAMES = ("aa", "bb", "cc")
SIZES = {"aa": 2, "bb": 3, "cc": 4}


class Model(nn.Module):
    """A layer for each name in the order given, a matrix that all share, a buffer and a frozen one.

    The layers have different sizes, or all that of ``width``.
    """

    def __init__(self, names, width=None):
        super().__init__()
        shared = nn.Parameter(torch.zeros(5))
        self.parts = nn.ModuleDict()
        for name in names:
            part = nn.Linear(width or SIZES[name], 2)
            part.shared = shared
            part.register_buffer("table", torch.zeros(3))
            part.frozen = nn.Parameter(torch.zeros(6), requires_grad=False)
            self.parts[name] = part


class Criterion(nn.Module):
    """A vector for each name in the order given."""

    def __init__(self, names):
        super().__init__()
        self.vectors = nn.ParameterDict({name: nn.Parameter(torch.zeros(3)) for name in names})


class Run:
    """Model, criterion and optimizer; each parameter has a gradient of its own name's value."""

    def __init__(self, names, build=torch.optim.Adam, width=None, flat=False):
        self.model, self.criterion = Model(names, width), Criterion(names)
        self.named = {
            f"{root}.{name}": parameter
            for root in ("model", "criterion")
            for name, parameter in getattr(self, root).named_parameters()
            if parameter.requires_grad
        }
        # the shared matrix has the name of the first part
        self.named = {
            "shared" if "shared" in name else name: value for name, value in self.named.items()
        }
        self.optimized = list(self.named.values())
        if flat:
            self.optimized = [
                nn.Parameter(torch.cat([p.detach().flatten() for p in self.optimized]))
            ]
        self.optimizer = build(self.optimized)

    def step(self):
        """An update whose gradients depend on the names of the parameters alone."""
        values = {
            name: torch.full_like(parameter, float(sum(map(ord, name))))
            for name, parameter in self.named.items()
        }
        if len(self.optimized) == 1:
            values = {"": torch.cat([value.flatten() for value in values.values()])}
        for parameter, gradient in zip(self.optimized, values.values()):
            parameter.grad = gradient
        self.optimizer.step()
        return self

    def checkpoint(self):
        """What of a checkpoint matters here."""
        roots = {root: getattr(self, root).state_dict() for root in ("model", "criterion")}
        return {**roots, "last_optimizer_state": copy.deepcopy(self.optimizer.state_dict())}

    def resume(self, checkpoint):
        """Restore the optimizer; {name: {name in the state: tensor}}."""
        put_in_order(checkpoint, "last.pt", self.model, self.criterion)
        self.optimizer.load_state_dict(checkpoint["last_optimizer_state"])
        states = self.optimizer.state
        if len(self.optimized) == 1:
            sizes = [parameter.numel() for parameter in self.named.values()]
            pieces = states[self.optimized[0]]["exp_avg"].split(sizes)
            return {name: {"exp_avg": piece} for name, piece in zip(self.named, pieces)}
        return {name: states[parameter] for name, parameter in self.named.items()}


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


@pytest.mark.parametrize(
    "options",
    [{}, {"build": sgd}, {"width": 3}, {"flat": True}],
    ids=["adam", "momentum", "equal sizes", "flat"],
)
def test_states_reach_the_parameters_of_their_names(options):
    old, new = Run(NAMES, **options).step(), Run(("cc", "aa", "bb"), **options)
    states = new.resume(old.checkpoint())
    kind = "momentum_buffer" if options.get("build") is sgd else "exp_avg"
    factor = 1 if kind == "momentum_buffer" else 0.1
    for name, state in states.items():
        expected = torch.full_like(state[kind], factor * sum(map(ord, name)))
        torch.testing.assert_close(state[kind], expected)


def test_a_broken_order_would_be_seen():
    """Without the change of order, states of equal sizes reach others."""
    old, new = Run(NAMES, width=3).step(), Run(("cc", "aa", "bb"), width=3)
    new.optimizer.load_state_dict(old.optimizer.state_dict())
    weights = [new.named[f"model.parts.{name}.weight"] for name in ("cc", "aa")]
    means = [new.optimizer.state[weight]["exp_avg"].mean().item() for weight in weights]
    assert means[0] == pytest.approx(0.1 * sum(map(ord, "model.parts.aa.weight")))


def test_exact_parameters_follow_as_well():
    """--bf16 and --fp16-no-flatten-grads store them beside the states."""
    old, new = Run(NAMES).step(), Run(NAMES[::-1])
    checkpoint = old.checkpoint()
    checkpoint["last_optimizer_state"][KEY] = list(old.named)
    put_in_order(checkpoint, "last.pt", new.model, new.criterion)
    assert checkpoint["last_optimizer_state"].pop(KEY) == list(new.named)


def without_parameter(checkpoint):
    del checkpoint["model"]["parts.bb.weight"]


def with_other_order(checkpoint):
    """As when only parameters that are not trained have another place."""
    frozen = {name: value for name, value in checkpoint["model"].items() if "frozen" in name}
    trained = {name: value for name, value in checkpoint["model"].items() if "frozen" not in name}
    checkpoint["model"] = {**frozen, **trained}


@pytest.mark.parametrize(
    "names, change",
    [
        (NAMES, lambda checkpoint: None),
        (NAMES, with_other_order),
        (NAMES[::-1], without_parameter),
        (NAMES[::-1], lambda checkpoint: checkpoint.pop("last_optimizer_state")),
    ],
    ids=["equal", "frozen elsewhere", "lacks parameters", "no state"],
)
def test_other_states_are_left_alone(names, change):
    old, new = Run(NAMES).step(), Run(names)
    checkpoint = old.checkpoint()
    change(checkpoint)
    state = checkpoint.get("last_optimizer_state")
    put_in_order(checkpoint, "last.pt", new.model, new.criterion)
    assert checkpoint.get("last_optimizer_state") is state


def with_groups(state):
    group = state["param_groups"][0]
    numbers = group["params"]
    state["param_groups"] = [{**group, "params": part} for part in (numbers[:2], numbers[2:])]


def with_fewer(state):
    state["param_groups"][0]["params"].pop()


def with_other_flat_size(state):
    state["param_groups"][0]["params"] = [0]
    state["state"] = {0: {"step": 1, "exp_avg": torch.zeros(7)}}


@pytest.mark.parametrize(
    "change, reason",
    [
        (with_groups, "it has 2 groups of parameters"),
        (with_fewer, "it is not of the 10 parameters that are trained"),
        (with_other_flat_size, "it is not of the 10 parameters that are trained"),
        (lambda state: state.pop("param_groups"), "it has 0 groups of parameters"),
        (lambda state: state.update({KEY: []}), "it has 0 parameters in single precision, not 10"),
    ],
)
def test_states_without_an_order_are_refused(change, reason):
    old, new = Run(NAMES).step(), Run(NAMES[::-1])
    checkpoint = old.checkpoint()
    change(checkpoint["last_optimizer_state"])
    with pytest.raises(ValueError) as error:
        put_in_order(checkpoint, "last.pt", new.model, new.criterion)
    message = str(error.value)
    assert message.startswith("last.pt: ") and reason in message
    assert "parts.aa.weight in the place of parts.cc.weight" in message
    assert message.endswith("or --lang-pairs, in the order of the checkpoint; or --reset-optimizer")


def test_another_choice_of_trained_parameters_is_refused():
    """As many of the same sizes: nothing else would tell."""
    before, here = Run(NAMES, width=3), Run(NAMES, width=3)
    for run, name in ((before, "aa"), (here, "bb")):
        run.model.parts[name].weight.requires_grad_(False)
    names = trained_names(before.model, before.criterion)
    assert "model.parts.bb.weight" in names and "model.parts.aa.weight" not in names
    checkpoint = {"last_optimizer_state": {"state": {}}, "extra_state": {TRAINED: names}}
    message = r"c.pt: model.parts.aa.weight is trained there or here, and not in both \(2 such"
    with pytest.raises(ValueError, match=message):
        check_trained(checkpoint, "c.pt", here.model, here.criterion)
    check_trained(checkpoint, "c.pt", before.model, before.criterion)
    # in another order of the languages the names are the same
    reordered = Run(NAMES[::-1], width=3)
    reordered.model.parts["aa"].weight.requires_grad_(False)
    check_trained(checkpoint, "c.pt", reordered.model, reordered.criterion)
    check_trained({**checkpoint, "extra_state": {}}, "c.pt", here.model, here.criterion)
    everything = nn.Linear(2, 2)
    assert trained_names(everything, nn.Module()) is None


def test_checkpoints_of_a_part_name_what_is_trained(toy_corpus, tmp_path):
    words = [toy_corpus.two, "--task", "multiway_translation", "--lang-pairs", "xx-yy,yy-xx"]
    words += ["--arch", "multiway_gru_tiny", "--batch-size", 16, "--schedule", "joint"]
    words += ["--disable-validation", "--no-epoch-checkpoints", "--save-dir", tmp_path]
    inprocess.train(*words, "--max-update", 1, "--train-only", "encoder.xx")
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)
    names = state["extra_state"][TRAINED]
    assert names and len(names) < len(state["model"])
    with pytest.raises(ValueError, match="trained there or here, and not in both"):
        inprocess.train(*words, "--max-update", 2, "--train-only", "encoder.yy")
    inprocess.train(*words, "--max-update", 2, "--train-only", "encoder.xx")
