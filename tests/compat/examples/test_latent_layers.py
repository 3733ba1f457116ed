"""latent_depth (fairseq_ext/compat/examples/latent_layers.py)."""

import math
import sys
from types import SimpleNamespace

import pytest
import torch

from fairseq_ext.compat.examples.latent_layers import check_latent_layers
from fairseq_ext.compat.examples.latent_losses import check_options
from fairseq_ext.compat.module_overlay import ModuleOverlay
from fairseq_ext.compat.user_errors import OptionError

FOLDER = "latent_depth/latent_depth_src"


def test_logits_do_not_come_from_memory(example, monkeypatch):
    layers = example(FOLDER, "modules.latent_layers")
    # what new memory may hold
    memory = ModuleOverlay(torch, Tensor=lambda *shape: torch.full(shape, float("nan")))
    monkeypatch.setattr(layers, "torch", memory)
    selection = layers.LayerSelect(num_layers=3, num_logits=2)
    assert selection.layer_logits.tolist() == [[0.0] * 3] * 2


def test_architecture_has_latent_layers():
    task = SimpleNamespace(encoder_latent_layer=False, decoder_latent_layer=True)
    latent = SimpleNamespace(encoder=object(), decoder=SimpleNamespace(layer_select=1))
    plain = SimpleNamespace(encoder=object(), decoder=object())
    check_latent_layers(task, SimpleNamespace(models={"xx-yy": latent}), "latent")
    with pytest.raises(OptionError, match="--decoder-latent-layer is not allowed with --arch some"):
        check_latent_layers(task, SimpleNamespace(models={"xx-yy": plain}), "some")


@pytest.fixture
def select(example):
    """Function: a selection of three layers for two languages, with given logits and options."""

    def select(**options):
        module = example(FOLDER, "modules.latent_layers")
        selection = module.LayerSelect(num_layers=3, num_logits=2, **options)
        selection.layer_logits.data = torch.tensor([[0.2, -0.1, 3.0], [-1.0, 1.0, -2.0]])
        return selection

    return select


def test_evaluation_selects_probable_layers(select):
    selection = select(sampling_tau=5.0).eval()
    for language, layers in ((0, [1, 0, 1]), (1, [0, 1, 0]), (0, [1, 0, 1])):
        selection.sample(language)
        assert [float(selection(layer)) for layer in range(3)] == layers
    soft = select(soft_select=True, sampling_tau=5.0).eval()
    soft.sample(0)
    torch.testing.assert_close(soft(2), torch.tensor(1 / (1 + math.exp(-3 / 5))))


def test_training_draws_layers(select):
    torch.manual_seed(1)
    selection = select().train()
    drawn = []
    for _ in range(4000):
        selection.sample(0)
        drawn.append(selection.samples.detach())
    means = torch.stack(drawn).mean(dim=0)  # the probability of a layer is sigmoid(logit)
    torch.testing.assert_close(means, selection.layer_logits[0].sigmoid(), atol=0.03, rtol=0)
    assert torch.equal(selection.redraw()[0], drawn[-1]) and len(selection.redraw()) == 1
    selection.redraw()[0].sum().backward()
    assert selection.layer_logits.grad[0].abs().min() > 0
    soft = select(soft_select=True).train()
    soft.hard_select = True  # what the task sets after --soft-update
    soft.sample(0)
    assert 0 < float(soft(0).detach()) < 1


def options(**changes):
    """Options of the losses of the layers."""
    values = {
        "prior": "uniform",
        "sparsity_weight": 0.3,
        "share_weight": 0.2,
        "target_layers": 2,
        "soft_update": 4,
        "anneal_updates": 10,
    }
    return SimpleNamespace(**{**values, **changes})


@pytest.mark.parametrize("update, share", [(1, 0), (4, 0), (9, 0.5), (14, 1), (50, 1)])
def test_prior_has_no_negative_weight(example, update, share):
    loss = example(FOLDER, "loss.latent_depth").LatentLayersKLLoss(options())
    sample = torch.tensor([0.5, 0.25])
    kl = 0.25 * math.log(0.25 / 0.5) / 2  # the first layer has the probability of the prior
    answer = loss([None, sample, None], 1, update, 7)
    assert float(answer) == pytest.approx(0.3 * share * kl * 7, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize(
    "changes", [{}, {"share_weight": 0.0}, {"target_layers": -1}, {"sparsity_weight": 0.0}]
)
def test_loss_of_the_number_of_layers(example, changes):
    args = options(**changes)
    loss = example(FOLDER, "loss.latent_depth").LatentLayersSparsityLoss(args)
    assert not loss.is_valid(14) and loss.is_valid(15)
    samples = [torch.tensor([1.0, 0.5, 0.0]), torch.tensor([0.5, 0.5, 0.0])]
    for sample in samples:
        sample.requires_grad_()
    value, slopes = 0.0, [0.0, 0.0]
    for layer, use in enumerate((0.75, 0.5)):
        value -= args.share_weight * use * math.log(use)
        slopes[layer] -= args.share_weight * (math.log(use) + 1)
        if args.target_layers > 0:
            slopes[layer] += args.sparsity_weight * 2 * (1.25 - 2)
    if args.target_layers > 0:
        value += args.sparsity_weight * (1.25 - 2) ** 2
    for update, share in ((15, 0.1), (24, 1), (90, 1)):
        answer = loss(samples, update, 7)
        assert float(answer.detach()) == pytest.approx(7 * share * value, rel=1e-5, abs=1e-7)
    (gradient,) = torch.autograd.grad(answer, samples[0])
    expected = torch.tensor([7 * slope / 2 for slope in slopes])
    torch.testing.assert_close(gradient[:2], expected)
    assert gradient.isfinite().all()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"anneal_updates": 0}, "--anneal-updates 0 is not allowed"),
        ({"prior": "uniforn"}, "--prior uniforn is not allowed"),
        ({"prior": "agged_posterior"}, "xx-yy,zz-yy, in which a language has this side"),
    ],
)
def test_options_of_the_losses(changes, message):
    args = options(lang_pairs=["xx-yy", "zz-yy"], **changes)
    task = SimpleNamespace(
        encoder_latent_layer=True,
        decoder_latent_layer=True,
        src_langs=("xx", "zz"),
        tgt_langs=("yy", "yy"),
    )
    with pytest.raises(OptionError, match=message):
        check_options(task, args)


def test_languages_have_the_numbers_of_training(example, monkeypatch):
    from fairseq import models

    def build(*arguments):
        model = models.FairseqMultiModel.__new__(models.FairseqMultiModel)
        torch.nn.Module.__init__(model)
        model.models = torch.nn.ModuleDict()
        return model

    monkeypatch.setattr(models, "build_model", build)
    module = example(FOLDER, "multilingual_translation_latent_depth")
    task = module.MultilingualTranslationTaskLatentDepth.__new__(
        module.MultilingualTranslationTaskLatentDepth
    )
    languages = {"encoder_langtok": None, "decoder_langtok": True, "arch": "latent"}
    task.args = SimpleNamespace(lang_pairs=["yy-xx", "xx-zz"], **languages)
    task.src_langs, task.tgt_langs = ("yy", "xx"), ("xx", "zz")
    task.update_args = lambda args: None
    task.build_model(SimpleNamespace(lang_pairs=["xx-zz", "yy-xx"], **languages))
    assert task.tgt_lang_idx_dict == {"zz": 0, "xx": 1}
    assert task.src_lang_idx_dict == {"xx": 0, "yy": 1}


def test_gradients_of_the_number_of_layers_pass_the_optimizer(example, monkeypatch):
    module = example(FOLDER, "multilingual_translation_latent_depth")
    select = sys.modules["latent_depth_src.modules.latent_layers"].LayerSelect(3, 2).train()
    decoder = SimpleNamespace(layer_select=select, set_lang_idx=select.sample)
    parts = {pair: SimpleNamespace(decoder=decoder) for pair in ("xx-yy", "yy-xx")}
    model = SimpleNamespace(models=parts, train=lambda: None)

    def set_up(self, args, dicts, training):
        vars(self).update(args=args, training=training, model_lang_pairs=args.lang_pairs)

    monkeypatch.setattr(module.MultilingualTranslationTask, "__init__", set_up)
    args = options(decoder_latent_layer=True, distributed_world_size=1)
    args.lang_pairs, args.share_decoders = list(parts), True
    task = module.MultilingualTranslationTaskLatentDepth(args, {}, True)
    losses = []

    def backward(loss):
        losses.append(float(loss.detach()))
        loss.backward()

    def step(ignore_grad):
        select.zero_grad()
        task.train_step(
            dict.fromkeys(parts, "batch"),
            model,
            lambda part, batch: (select(0) + 0.0, 5, {}),
            SimpleNamespace(backward=backward),
            50,
            ignore_grad,
        )

    step(ignore_grad=False)
    assert len(losses) == 3  # of two pairs, and of the number of layers
    assert select.layer_logits.grad.isfinite().all() and select.layer_logits.grad.any()
    step(ignore_grad=True)
    assert losses[3:] == [0, 0, 0] and not select.layer_logits.grad.any()
