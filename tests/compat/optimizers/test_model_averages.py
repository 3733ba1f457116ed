"""Averages of models whose weights weight_norm computes from parameters."""

import copy

import pytest
import torch
from common import inprocess
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import EMAConfig
from fairseq.models.ema import EMA
from fairseq.models.wav2vec.wav2vec2 import make_conv_pos
from fairseq.modules.ema_module import EMAModule, EMAModuleConfig

from fairseq_ext.compat.optimizers.model_averages import copy_of

FCONV = ("--arch", "fconv", "--encoder-embed-dim", 8, "--decoder-embed-dim", 8)
FCONV += ("--decoder-out-embed-dim", 8)
FCONV += ("--encoder-layers", "[(8, 3)]", "--decoder-layers", "[(8, 3)]")
AVERAGED = ("--store-ema", "--ema-decay", 0.5)


def normalised():
    """A layer of wav2vec 2.0 and data2vec, beside one without weight_norm."""
    torch.manual_seed(0)
    return torch.nn.Sequential(make_conv_pos(4, 3, 2), torch.nn.Conv1d(4, 4, 1))


def test_torch_refuses_the_copy():
    """If it no longer does, the patch can go."""
    with pytest.raises(RuntimeError, match="deepcopy protocol"):
        copy.deepcopy(normalised())


def test_copies_share_nothing():
    layers, x = normalised(), torch.randn(2, 4, 5)
    copied = copy_of(layers)
    torch.testing.assert_close(copied(x), layers(x), rtol=0, atol=0)
    expected = layers(x).detach()
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.add_(1)
    torch.testing.assert_close(layers(x), expected, rtol=0, atol=0)
    assert not torch.allclose(copied(x), expected)


def test_original_keeps_its_weight():
    """With its graph: a copy may be made between forward and backward."""
    layers = normalised()
    weight = layers[0][0].weight
    copy_of(layers)
    assert layers[0][0].weight is weight and weight.grad_fn is not None


@pytest.mark.parametrize("average", ["trainer", "module"])
def test_averages_of_two_updates(average):
    layers = normalised()
    settings = {"ema_decay": 0.75}
    if average == "trainer":
        averages = EMA(layers, EMAConfig(store_ema=True, **settings))
    else:
        averages = EMAModule(layers, EMAModuleConfig(**settings))
    before = {name: value.clone() for name, value in layers.state_dict().items()}
    with torch.no_grad():
        for parameter in layers.parameters():
            parameter.add_(1)
    averages.step(layers)
    for name, value in averages.model.state_dict().items():
        torch.testing.assert_close(value, before[name] + 0.25)
    x = torch.randn(2, 4, 5)
    expected = normalised()
    expected.load_state_dict(averages.model.state_dict())
    torch.testing.assert_close(averages.model(x), expected(x), rtol=0, atol=0)


@pytest.mark.parametrize("settings", [{}, {"ema_fp32": True}])
@pytest.mark.parametrize("half", [False, True])
def test_a_parameter_with_several_names_has_one_average(half, settings):
    """Shared embeddings are averaged as everything else is, in fp32 copies of fp16 as well."""
    torch.manual_seed(0)
    layers = torch.nn.ModuleDict({name: torch.nn.Linear(3, 3) for name in "abc"})
    layers["b"].weight = layers["c"].weight = layers["a"].weight
    layers = layers.half() if half else layers
    averages = EMA(layers, EMAConfig(store_ema=True, ema_decay=0.75, **settings))
    before = {name: value.clone() for name, value in layers.state_dict().items()}
    with torch.no_grad():
        for parameter in layers.parameters():
            parameter.add_(1)
    averages.step(layers)
    for state in (averages.model.state_dict(), averages.fp32_params):
        for name, value in state.items():
            torch.testing.assert_close(
                value.float(), before[name].float() + 0.25, rtol=2e-3, atol=2e-3 if half else 1e-6
            )


def test_parts_of_a_parameter_are_parameters_of_their_own():
    """The first row begins where the whole does; both have an average, and nothing has neither."""
    layers = torch.nn.Linear(3, 2)
    layers.register_buffer("nothing", torch.empty(0))
    layers.register_buffer("row", layers.weight.detach()[0])
    layers.register_buffer("empty", torch.empty(0))
    first = layers.weight.detach().clone()
    averages = EMA(layers, EMAConfig(store_ema=True, ema_decay=0.75))
    averages.model.row = averages.model.weight.detach()[0]
    with torch.no_grad():
        layers.weight.add_(1)
    averages.step(layers)
    expected = first + 0.25
    # stock moves what both names have once for each
    expected[0] = first[0] + 1 - 0.75**2
    torch.testing.assert_close(averages.model.weight.detach(), expected)
    assert averages.model.empty.numel() == averages.model.nothing.numel() == 0


@pytest.mark.parametrize("settings", [{}, {"ema_fp32": True}])
def test_batches_are_counted_and_not_averaged(settings):
    """BatchNorm counts them as an integer; its mean and variance are averaged."""
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    averages = EMA(layers, EMAConfig(store_ema=True, ema_decay=0.75, **settings))
    for _ in range(2):
        mean = averages.model[1].running_mean.clone()
        layers(torch.randn(4, 3))
        averages.step(layers)
        expected = 0.75 * mean + 0.25 * layers[1].running_mean
        torch.testing.assert_close(averages.model[1].running_mean, expected)
    assert averages.model[1].num_batches_tracked == 2


def test_training_with_averages_resumes(toy_corpus, tmp_path):
    """fairseq-train --store-ema with fconv: the averages of two runs are those of a single one."""
    words = [toy_corpus.two, *FCONV, *AVERAGED, "--max-tokens", 200, "--lr", 0.1, "--seed", 1]
    words += ["--disable-validation", "--no-epoch-checkpoints", "--optimizer", "nag"]
    ends = []
    for stops in ([4], [2, 4]):
        folder = tmp_path / str(len(stops))
        for stop in stops:
            inprocess.train(*words, "--save-dir", folder, "--max-update", stop)
        ends.append(checkpoint_utils.torch.load(folder / "checkpoint_last.pt", weights_only=True))
    averages, parameters = ends[0]["extra_state"]["ema"], ends[0]["model"]
    assert any(name.endswith("weight_g") for name in averages)
    assert not torch.equal(averages["decoder.fc2.weight_v"], parameters["decoder.fc2.weight_v"])
    again = ends[1]["extra_state"]["ema"]
    assert all(torch.equal(value, again[name]) for name, value in averages.items())


@pytest.mark.parametrize("precision", [(), ("--ema-fp32",)], ids=["default", "ema_fp32"])
def test_averages_begin_with_a_model_that_has_none(precision, tiny_training, tmp_path, caplog):
    """--finetune-from-model with a checkpoint without averages, and a run that goes on from one."""
    # with a layer norm at the end, which averages without a version lose
    flags = ("--max-tokens", 4000, "--lr", 0.01, "--decoder-normalize-before")
    inprocess.train(*tiny_training, *flags, "--max-epoch", 1, "--save-dir", tmp_path)
    averaged = ("--store-ema", "--ema-decay", 1, *precision)  # 1: they stay as they begin
    before = tmp_path / "checkpoint1.pt"
    tuned = ("--finetune-from-model", before, "--save-dir", tmp_path / "tuned")
    inprocess.train(*tiny_training, *flags, *averaged, *tuned, "--max-epoch", 1)
    assert "has no averages" in caplog.text
    inprocess.train(*tiny_training, *flags, *averaged, "--save-dir", tmp_path, "--max-epoch", 2)
    parameters = checkpoint_utils.load_checkpoint_to_cpu(str(before))["model"]

    def check(averages):
        assert averages.keys() == parameters.keys() >= {"decoder.layer_norm.weight"}
        for name, average in averages.items():
            if not name.endswith("_float_tensor"):  # without a value, for its type alone
                torch.testing.assert_close(average, parameters[name], rtol=0, atol=0)

    for path in (tmp_path / "tuned" / "checkpoint1.pt", tmp_path / "checkpoint2.pt"):
        state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
        check(state["extra_state"]["ema"])
        norm = "decoder.layer_norm.weight"
        assert not torch.equal(state["model"][norm], parameters[norm])
    seeded = ("--save-dir", tmp_path / "seeded", "--ema-seed-model", tmp_path / "checkpoint2.pt")
    other = ("--restore-file", tmp_path / "tuned" / "no_averages.pt")
    state["extra_state"].pop("ema")
    state["extra_state"].pop("ema_fp32_params", None)
    torch.save(state, other[1])
    inprocess.train(*tiny_training, *flags, *averaged, *seeded, *other, "--max-epoch", 3)
    state = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "seeded" / "checkpoint3.pt"))
    check(state["extra_state"]["ema"])


@pytest.mark.parametrize("precision", [(), ("--ema-fp32",)], ids=["default", "ema_fp32"])
def test_new_trainings_begin_their_averages_anew(precision, tiny_training, tmp_path):
    """--finetune-from-model with a checkpoint that has averages: they begin as its parameters."""
    flags = ("--max-tokens", 4000, "--lr", 0.01, "--store-ema", "--ema-decay", 1, *precision)
    # the first update has rate 0
    inprocess.train(*tiny_training, *flags, "--max-epoch", 2, "--save-dir", tmp_path)
    first = tmp_path / "checkpoint2.pt"
    folder = tmp_path / "tuned"
    tuned = ("--finetune-from-model", first, "--save-dir", folder)
    inprocess.train(*tiny_training, *flags, *tuned, "--max-epoch", 1)
    inprocess.train(*tiny_training, *flags, *tuned, "--max-epoch", 2)  # goes on with its own
    before = checkpoint_utils.load_checkpoint_to_cpu(str(first))
    name = "decoder.layers.0.fc1.weight"
    assert not torch.equal(before["model"][name], before["extra_state"]["ema"][name])
    for epoch in (1, 2):
        state = checkpoint_utils.load_checkpoint_to_cpu(str(folder / f"checkpoint{epoch}.pt"))
        for averages in ("ema", "ema_fp32_params")[: 1 + len(precision)]:
            assert torch.equal(state["extra_state"][averages][name], before["model"][name])


def test_averages_of_16_bits_move(tiny_training, tmp_path):
    """By 1 / 10,000 of the way, the default, which 16 bits would round away."""
    flags = ("--max-tokens", 4000, "--lr", 0.1, "--store-ema", "--disable-validation", "--bf16")
    inprocess.train(*tiny_training, *flags, "--save-dir", tmp_path, "--max-epoch", 2)
    paths = [tmp_path / f"checkpoint{epoch}.pt" for epoch in (1, 2)]  # of one update each
    states = [checkpoint_utils.torch.load(path, weights_only=True) for path in paths]
    name = "decoder.layers.0.fc1.weight"
    before, after = (state["extra_state"]["ema_fp32_params"][name] for state in states)
    step = 1e-4 * (states[1]["model"][name] - before)
    assert step.abs().max() > 1e-6
    torch.testing.assert_close(after - before, step, rtol=0, atol=1e-7)
