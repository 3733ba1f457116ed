"""The command in a model card sets the options that the checkpoint was trained with."""

import argparse
import shlex
from dataclasses import fields

import pytest
from fairseq import options
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from omegaconf import OmegaConf
from options.systems import SYSTEMS

from fairseq_ext.compat.checkpoints.configurations import options_of
from fairseq_ext.inference.stored_models import read_checkpoint
from fairseq_ext.inference.train_command import LEFT_OUT, train_command

# what a run or its task writes into the options of a model
WRITTEN = {
    entry.name
    for declaration in MODEL_DATACLASS_REGISTRY.values()
    for entry in fields(declaration or FairseqDataclass)
    if "written_by" in entry.metadata
}


def options_of_model(name):
    """The names of its options."""
    parser = argparse.ArgumentParser(add_help=False)
    ARCH_MODEL_REGISTRY[name].add_args(parser)
    return {action.dest for action in parser._actions}


def text(value):
    """Checkpoints hold tuples as lists."""
    return str(value).replace("(", "[").replace(")", "]")


@pytest.mark.parametrize("name", ["tagged_transformer", "twin_lstm", "transformer"])
def test_a_model_of_fairseq_hydra_train_has_its_options(name, checkpoint_of):
    """It stores the options of a model without a dataclass as those of one that has it."""
    cfg = read_checkpoint(checkpoint_of(name)).cfg
    expected, names = train_command(cfg), options_of_model(name)
    assert "--encoder-embed-dim" in expected
    stored = {option: value for option, value in vars(cfg.model).items() if option in names}
    cfg.model = OmegaConf.create({"_name": name, **stored})
    assert sorted(shlex.split(train_command(cfg))) == sorted(shlex.split(expected))


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_the_command_has_the_options_of_the_training(name, data, checkpoint_of):
    cfg = read_checkpoint(checkpoint_of(name)).cfg
    program, *words = shlex.split(train_command(cfg))
    assert program == "fairseq-train" and not any(word.startswith("/") for word in words)
    assert "--stop-time-hours" not in words  # 0 by default, and 0.0 in the checkpoint
    if "--user-dir" in words:
        place = words.index("--user-dir")
        del words[place : place + 2]
    parser = options.get_training_parser()
    again = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, input_args=words))
    for group in ("optimization", "task", "model", "criterion", "optimizer", "lr_scheduler"):
        stored, parsed = options_of(cfg[group]), options_of(again[group])
        for option, value in parsed.items():
            # what a run carries to its checkpoints is none of its options
            if option in LEFT_OUT or option.startswith("_") or option not in stored:
                continue
            if option in ("lang_pairs", "label_lang", *WRITTEN) and group == "model":
                continue
            if group in ("task", "model") and not hasattr(cfg[group], "_get_parent"):
                if option not in words:
                    continue  # a Namespace holds the options of all groups
            assert text(stored[option]) == text(value), (group, option)


@pytest.mark.parametrize(
    "words",
    [
        ["--arch", "transformer", "--left-pad-source", "False"],
        ["--arch", "lightconv", "--weight-softmax", "False"],
        ["--arch", "lightconv", "--decoder-glu", "True"],
    ],
)
def test_options_that_are_switched_off(words):
    """Without its value an option that is on by default would be on."""

    def parsed(words):
        return options.parse_args_and_arch(options.get_training_parser(), input_args=words)

    args = parsed(["DATA", "--optimizer", "adam", "--task", "translation", *words])
    command = train_command(convert_namespace_to_omegaconf(args))
    again = parsed(shlex.split(command)[1:])
    name = words[-2][2:].replace("-", "_")
    assert getattr(again, name) is getattr(args, name) is (words[-1] == "True")
