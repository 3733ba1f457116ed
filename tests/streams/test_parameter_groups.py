"""Training a part of a model: what is named moves, the rest keeps its values."""

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from torch import nn

from fairseq_ext.dual.transformer.model import DualTransformerModel
from fairseq_ext.streams.parameter_groups import parameters_by_name, train_only


class Model(nn.Module):
    """Two languages around a shared layer; the softmax of yy is its embedding."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(2, 2)
        self.encoder = nn.ModuleDict({"xx": nn.Linear(2, 2), "yy": nn.Linear(2, 2)})
        self.embedding, self.output = nn.Linear(2, 2), nn.Linear(2, 2)
        self.output.weight = self.embedding.weight

    def parameter_groups(self):
        names = list(parameters_by_name(self))
        return {
            group: [name for name in names if name.startswith(group)]
            for group in ("shared", "output", "encoder.xx", "encoder.yy", "nothing")
        }


def test_tied_parameters_have_all_their_names():
    """Also where two attributes of one module are one parameter, and where a layer has no bias."""
    model = Model()
    model.scale = model.offset = nn.Parameter(torch.ones(2))
    model.unbiased = nn.Linear(2, 2, bias=False)
    named = parameters_by_name(model)
    assert named["output.weight"] is named["embedding.weight"]
    assert named["scale"] is named["offset"] and "unbiased.bias" not in named
    assert set(map(id, named.values())) == set(map(id, model.parameters()))


def trained(model):
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}


def test_only_the_named_groups_are_trained():
    model = Model()
    names = train_only(model, "shared, encoder.xx")
    expected = ["shared.weight", "shared.bias", "encoder.xx.weight", "encoder.xx.bias"]
    assert names == expected and trained(model) == set(expected)


def test_a_tied_parameter_is_trained_under_either_name():
    model = Model()
    assert train_only(model, "output") == ["embedding.weight", "output.bias"]


def test_what_was_frozen_stays_frozen():
    model = Model()
    model.shared.bias.requires_grad_(False)
    assert train_only(model, "shared") == ["shared.weight"]


@pytest.mark.parametrize(
    "model, text, message",
    [
        (Model(), "shared,sharde", "'sharde' is none of shared, output, encoder.xx, encoder.yy"),
        (Model(), "nothing", "names no parameter; the groups are shared"),
        (Model(), " ,", "names no parameter"),
        (nn.Linear(2, 2), "shared", "Linear does not divide its parameters into groups"),
    ],
)
def test_impossible_groups_are_refused(model, text, message):
    with pytest.raises(ValueError) as error:
        train_only(model, text)
    assert "--train-only " in str(error.value) and message in str(error.value)


class GroupedModel(DualTransformerModel):
    """The dual model with a group for each language."""

    def parameter_groups(self):
        return {
            lang: [f"components.{lang}.{name}" for name, _ in component.named_parameters()]
            for lang, component in self.components.items()
        }


@pytest.fixture
def grouped(monkeypatch):
    """Trainings build a ``GroupedModel``."""
    monkeypatch.setitem(MODEL_REGISTRY, "dual_transformer", GroupedModel)
    monkeypatch.setitem(ARCH_MODEL_REGISTRY, "dual_transformer_tiny", GroupedModel)


def test_a_run_moves_only_the_named_groups(toy_corpus, train_small, tmp_path, grouped):
    """Also with updates whose pair trains nothing; the rest is in neither optimiser nor update."""
    flags = ["--lang-pairs", "xx-yy,yy-zz", "--schedule", "cycle", "--batch-size", 32]
    train_small(toy_corpus.three, tmp_path / "whole", 4, *flags)
    start = tmp_path / "whole" / "checkpoint_last.pt"
    flags += ["--finetune-from-model", start, "--train-only", "xx"]
    train_small(toy_corpus.three, tmp_path / "tuned", 4, *flags)
    before, after = (
        checkpoint_utils.torch.load(path, weights_only=True)
        for path in (start, tmp_path / "tuned" / "checkpoint_last.pt")
    )
    moved = {
        name.split(".")[1]
        for name, value in before["model"].items()
        if not torch.equal(value, after["model"][name])
    }
    assert moved == {"xx"}
    components = {name.split(".")[1] for name in before["model"]}
    states = [len(end["last_optimizer_state"]["state"]) for end in (before, after)]
    assert components == {"xx", "yy", "zz"} and 3 * states[1] == states[0]


def test_a_model_without_groups_is_refused(toy_corpus, train_small, tmp_path):
    with pytest.raises(ValueError, match="--train-only shared: DualTransformerModel does not"):
        train_small(
            toy_corpus.two,
            tmp_path,
            1,
            *["-s", "xx", "-t", "yy", "--batch-size", 64, "--train-only", "shared"],
        )
