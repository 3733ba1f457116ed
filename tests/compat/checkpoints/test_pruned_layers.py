"""Models with fewer layers are loaded from a checkpoint with all."""

import copy
from argparse import Namespace

import pytest
import torch
from common import inprocess
from fairseq import checkpoint_utils, options, tasks
from omegaconf import OmegaConf
from twin.support import TRANSFORMER

from fairseq_ext.compat.checkpoints import pruned_layers
from fairseq_ext.compat.user_errors import OptionError


def layers(*sides):
    """{name: number of the layer}, and one parameter that is in no layer."""
    names = {f"{side}.layers.{n}.fc1.weight": n for side in sides for n in range(3)}
    return {**names, "encoder.embed_tokens.weight": 7}


@pytest.mark.parametrize(
    "encoder, decoder, remaining",
    [
        ("0,2", None, {"encoder": [0, 2], "decoder": [0, 1, 2]}),
        (None, "1", {"encoder": [0, 1, 2], "decoder": [1]}),
        ("1,2", "0", {"encoder": [1, 2], "decoder": [0]}),
        (None, None, {"encoder": [0, 1, 2], "decoder": [0, 1, 2]}),
    ],
)
@pytest.mark.parametrize("models", [("",), ("models.xx-yy.", "models.yy-xx."), ("transformer.",)])
def test_layers_that_remain(encoder, decoder, remaining, models):
    """Of fairseq's own models, and of those of several directions."""
    options = Namespace(
        arch="transformer", encoder_layers_to_keep=encoder, decoder_layers_to_keep=decoder
    )
    parts = [f"{model}{side}" for model in models for side in ("encoder", "decoder")]
    pruned = checkpoint_utils.prune_state_dict(layers(*parts), options)
    assert pruned.pop("encoder.embed_tokens.weight") == 7
    assert pruned == {
        f"{model}{side}.layers.{place}.fc1.weight": number
        for model in models
        for side, numbers in remaining.items()
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


@pytest.mark.parametrize(
    "numbers, allowed",
    [("1,3", "from 0 to 2"), ("0,2,3", "from 0 to 2"), ("1,1", "different"), ("0,b", "0,2")],
)
def test_layers_that_are_not_there(numbers, allowed):
    """As many numbers as layers: a training resumes with them, but cannot begin with them."""
    names = layers("encoder", "decoder")
    cfg = Namespace(arch="transformer", encoder_layers_to_keep=numbers)
    reads_first = pruned_layers._reads_first_model.set(True)
    try:
        with pytest.raises(OptionError, match=f"--encoder-layers-to-keep {numbers} .*{allowed}"):
            checkpoint_utils.prune_state_dict(names, cfg)
    finally:
        pruned_layers._reads_first_model.reset(reads_first)


def test_overrides_name_layers_of_the_checkpoint():
    def cfg(to_keep=None):
        model = Namespace(encoder_layers=2, decoder_layers=3, decoder_layers_to_keep=to_keep)
        return OmegaConf.create({"model": model}, flags={"allow_objects": True})

    for overrides in ({"encoder_layers_to_keep": "1,2"}, {"decoder_layers_to_keep": "0,2,4"}):
        with pytest.raises(OptionError, match="the layers of the checkpoint"):
            checkpoint_utils.overwrite_args_by_name(cfg(), overrides)
    # the option of a training that began with the checkpoint of a larger model
    checkpoint_utils.overwrite_args_by_name(cfg("0,2,4"), {"decoder_layers_to_keep": "0,2,4"})
    checkpoint_utils.overwrite_args_by_name(cfg(), {"decoder_layers_to_keep": "0,2"})


def test_a_training_begins_with_layers_that_are_there(tiny_training, tmp_path):
    sizes = "--encoder-layers", 2, "--decoder-layers", 1, "--max-update", 1
    inprocess.train(*tiny_training, *sizes, "--save-dir", tmp_path / "whole")
    pruned = [*tiny_training, *sizes, "--save-dir", tmp_path / "kept", "--finetune-from-model"]
    pruned += [tmp_path / "whole" / "checkpoint_last.pt", "--lr", 0, "--encoder-layers-to-keep"]
    with pytest.raises(OptionError, match="--encoder-layers-to-keep 0,2 .*from 0 to 1"):
        inprocess.train(*pruned, "0,2")
    inprocess.train(*pruned, "1")
    ends = (tmp_path / name / "checkpoint_last.pt" for name in ("whole", "kept"))
    whole, single = map(inprocess.parameters, ends)
    assert torch.equal(single["encoder.layers.0.fc1.weight"], whole["encoder.layers.1.fc1.weight"])
    # resumed: it was pruned
    inprocess.train(*pruned, "1", "--max-update", 2)


def test_models_that_name_their_layers_otherwise_are_as_they_were_built():
    names, cfg = {"blocks.0.fc1": 1}, Namespace(arch="other", encoder_layers_to_keep="0,2")
    assert checkpoint_utils.prune_state_dict(names, cfg) == names


@pytest.mark.parametrize("arch", ["tagged_transformer", "dual_supervised_transformer"])
def test_a_model_of_both_directions_with_fewer_layers(arch, toy_corpus, tmp_path):
    """It could neither be resumed nor translate; of a whole one, the layers that are named."""
    task = ["--task", "dual_translation", "-s", "xx", "-t", "yy"]
    sizes = [word for entry in TRANSFORMER.items() for word in entry]
    words = [toy_corpus.two, *task, "--arch", arch, *sizes, "--decoder-layers", 2]
    words += ["--criterion", "cross_entropy", "--batch-size", 40, "--disable-validation"]
    words += ["--no-epoch-checkpoints", "--lr", 0, "--max-update"]
    inprocess.train(*words, 1, "--save-dir", tmp_path / "whole")
    to_keep = ["--decoder-layers-to-keep", "1", "--save-dir", tmp_path / "fewer"]
    first = ["--finetune-from-model", tmp_path / "whole" / "checkpoint_last.pt"]
    for updates in (1, 2):
        inprocess.train(*words, updates, *to_keep, *first)
    search = [toy_corpus.two, *task, "--beam", 2, "--max-len-b", 6, "--path"]
    fewer = inprocess.generate(*search, tmp_path / "fewer" / "checkpoint_last.pt")
    overrides = ["--model-overrides", "{'decoder_layers_to_keep': '1'}"]
    pruned = inprocess.generate(*search, tmp_path / "whole" / "checkpoint_last.pt", *overrides)
    assert inprocess.hypotheses(fewer) == inprocess.hypotheses(pruned)


def test_a_model_and_its_twin_with_fewer_layers(toy_corpus, tmp_path):
    """Of both decoders the layers that are named; the parameters of the twin were refused."""
    words = [toy_corpus.two, "-s", "xx", "-t", "yy", "--arch", "twin_transformer"]
    words += [word for entry in TRANSFORMER.items() for word in entry]
    words += ["--criterion", "twin", "--batch-size", 40, "--disable-validation"]
    words += ["--no-epoch-checkpoints", "--lr", 0, "--max-update"]
    whole, fewer = (tmp_path / name / "checkpoint_last.pt" for name in ("whole", "fewer"))
    inprocess.train(*words, 1, "--save-dir", whole.parent)
    to_keep = ["--decoder-layers-to-keep", "1", "--finetune-from-model", whole]
    for updates in (1, 2):  # the second resumes
        inprocess.train(*words, updates, *to_keep, "--save-dir", fewer.parent)
    first, last = "decoder.layers.0.", "decoder.layers.1."
    for entry in ("model", "criterion"):
        states = [checkpoint_utils.load_checkpoint_to_cpu(path)[entry] for path in (whole, fewer)]
        of_layer = [name for name in states[1] if first in name]
        assert of_layer and not any(last in name for name in states[1])
        for name in of_layer:
            assert torch.equal(states[1][name], states[0][name.replace(first, last)])


def test_a_multilingual_model_with_fewer_layers(toy_corpus):
    """It was built with all layers; of a whole one, the layers that are named are read."""
    words = [toy_corpus.two, "--task", "multilingual_translation", "--lang-pairs", "xx-yy"]
    words += ["--arch", "multilingual_transformer", "--encoder-layers-to-keep", "1"]
    words += [word for entry in TRANSFORMER.items() for word in entry]
    cfg = inprocess.configuration(options.get_training_parser(), words)
    task = tasks.setup_task(cfg.task)
    model = task.build_model(cfg.model)
    sides = model.models["xx-yy"].encoder, model.models["xx-yy"].decoder
    assert [len(side.layers) for side in sides] == [1, 2]
    state = model.state_dict()
    encoder, first = "models.xx-yy.encoder.layers.", "models.xx-yy.encoder.layers.0."
    of_layer = {name: value for name, value in state.items() if name.startswith(first)}
    whole = {name: torch.zeros_like(value) for name, value in state.items()}
    whole.update({f"{encoder}1.{name[len(first) :]}": value for name, value in of_layer.items()})
    model.load_state_dict(whole, strict=True, model_cfg=copy.copy(cfg.model))
    loaded = model.state_dict()
    assert of_layer and all(torch.equal(loaded[name], value) for name, value in of_layer.items())
    model.load_state_dict(loaded, strict=True, model_cfg=cfg.model)  # resumed


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
