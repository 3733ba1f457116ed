"""Models with fewer layers are loaded from a checkpoint with all."""

from argparse import Namespace

import pytest
import torch
from common import inprocess
from fairseq import checkpoint_utils, options, tasks


def layers(*sides):
    """{name: number of the layer}, and one parameter that is in no layer."""
    names = {f"{side}.layers.{n}.fc1.weight": n for side in sides for n in range(3)}
    return {**names, "encoder.embed_tokens.weight": 7}


@pytest.mark.parametrize(
    "encoder, decoder, kept",
    [
        ("0,2", None, {"encoder": [0, 2], "decoder": [0, 1, 2]}),
        (None, "1", {"encoder": [0, 1, 2], "decoder": [1]}),
        ("1,2", "0", {"encoder": [1, 2], "decoder": [0]}),
        (None, None, {"encoder": [0, 1, 2], "decoder": [0, 1, 2]}),
    ],
)
def test_layers_that_remain(encoder, decoder, kept):
    options = Namespace(
        arch="transformer", encoder_layers_to_keep=encoder, decoder_layers_to_keep=decoder
    )
    pruned = checkpoint_utils.prune_state_dict(layers("encoder", "decoder"), options)
    assert pruned.pop("encoder.embed_tokens.weight") == 7
    assert pruned == {
        f"{side}.layers.{place}.fc1.weight": number
        for side, numbers in kept.items()
        for place, number in enumerate(numbers)
    }
    # they were pruned once: fairseq asks again when it loads the next checkpoint
    assert not options.encoder_layers_to_keep and not options.decoder_layers_to_keep


@pytest.mark.parametrize("encoder, decoder", [("0,2", None), ("1,2", "0"), (None, "0,1,2")])
def test_a_resumed_training_does_not_prune_again(encoder, decoder):
    """Its command names the layers of the larger model that it began from."""

    def named():
        return Namespace(
            arch="transformer", encoder_layers_to_keep=encoder, decoder_layers_to_keep=decoder
        )

    once = checkpoint_utils.prune_state_dict(layers("encoder", "decoder"), named())
    assert checkpoint_utils.prune_state_dict(dict(once), named()) == once


def test_without_a_model_nothing_is_pruned():
    names = layers("encoder", "decoder")
    assert checkpoint_utils.prune_state_dict(names, None) == names


@pytest.mark.parametrize("side, other", [("encoder", "decoder"), ("decoder", "encoder")])
def test_a_pruned_model_is_loaded(side, other, tiny_training):
    parser = options.get_training_parser()
    words = [*tiny_training, "--encoder-layers", 3, "--decoder-layers", 3]
    cfg = inprocess.configuration(parser, words)
    task = tasks.setup_task(cfg.task)
    whole = task.build_model(cfg.model).state_dict()
    setattr(cfg.model, f"{side}_layers_to_keep", "0,2")  # as --model-overrides does
    model = task.build_model(cfg.model)
    model.load_state_dict(dict(whole), strict=True, model_cfg=cfg.model)
    loaded = model.state_dict()
    for place, number in enumerate((0, 2)):
        name = f"{side}.layers.{{}}.fc1.weight"
        assert torch.equal(loaded[name.format(place)], whole[name.format(number)])
    for number in range(3):
        name = f"{other}.layers.{number}.fc1.weight"
        assert torch.equal(loaded[name], whole[name])


def test_layers_are_named_on_the_command_line(tiny_training):
    sizes = ("--encoder-layers", 3, "--decoder-layers", 3)
    words = [*tiny_training, *sizes, "--encoder-layers-to-keep", "0,2"]
    cfg = inprocess.configuration(options.get_training_parser(), words)
    model = tasks.setup_task(cfg.task).build_model(cfg.model)
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (2, 3)
