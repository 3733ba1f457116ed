"""Configurations that multiply are refused before anything resolves them."""

import argparse

import pytest
import torch
from omegaconf import OmegaConf

from fairseq_ext.compat.checkpoints.data_only import RefusedCheckpoint
from fairseq_ext.compat.checkpoints.interpolations import MAX_VALUES
from fairseq_ext.compat.checkpoints.reference_sizes import multiplies


def lists(count, reference="${%s}"):
    """A configuration of lists of ten; each but the first refers to the one before."""
    names = [f"list{number}" for number in range(count)]
    bomb = {names[0]: [1] * 10}
    for before, name in zip(names, names[1:]):
        bomb[name] = [reference % before] * 10
    return bomb


def shared(count):
    """The same without references: a list that is named ten times in a list, and so on."""
    value = [1] * 10
    for _ in range(count - 1):
        value = [value] * 10
    return {"x": value}


BOMBS = {
    "absolute": lists(10),
    "below the root": {"model": lists(10, "${model.%s}")},
    "of a part": {"model": {"w2v_args": lists(10)}},
    "relative": lists(10, "${..%s}"),
    "by number": {"x": [[1] * 10, *(["${x[%d]}" % i] * 10 for i in range(9))]},
    "objects of omegaconf": OmegaConf.create(lists(10)),
    "options of old checkpoints": argparse.Namespace(**lists(10)),
    "shared lists": shared(10),
    "long texts": {"text": "x" * 10_000, "all": ["y${text}"] * 10_000},
    "deep": __import__("functools").reduce(lambda inner, _: [inner], range(5_000), 1),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name):
    assert multiplies(BOMBS[name])


@pytest.mark.parametrize(
    "configuration",
    [
        {"a": "${b}", "b": [1, 2], "c": {"d": "${a}", "e": "${.d}", "f": "${..b[0]}"}},
        {"a": "${a}", "b": ["${b}"]},  # omegaconf refuses these by itself
        {"model": {"seed": "${seed}"}, "seed": 1},
        {"a": "${nowhere.at.all}", "b": "${....x}"},
        {"many": list(range(MAX_VALUES - 10))},
        OmegaConf.create({"a": "${b}", "b": {"c": "???", "d": None}}),
        lists(4),
        None,
    ],
)
def test_others(configuration):
    assert not multiplies(configuration)


def test_bombs_are_bombs():
    """A small one has as many values as it should when omegaconf resolves it."""
    resolved = OmegaConf.to_container(OmegaConf.create(lists(4)), resolve=True)
    assert str(resolved["list3"]).count("1") == 10**4


def test_stock_configurations_are_small():
    from fairseq.dataclass.configs import FairseqConfig

    assert not multiplies(OmegaConf.structured(FairseqConfig))


@pytest.mark.parametrize("part", ["cfg", "args"])
def test_checkpoint_is_refused(part, tmp_path):
    from fairseq import checkpoint_utils

    path = tmp_path / "model.pt"
    content = lists(10) if part == "cfg" else argparse.Namespace(**lists(10))
    torch.save({"model": {}, "args": None, "cfg": None, part: content}, path)
    with pytest.raises(RefusedCheckpoint, match=r"model.pt: refused, .* more than 100,000 values"):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
