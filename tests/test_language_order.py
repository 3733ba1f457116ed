"""A training goes on alike when its languages or its pairs are named in another order.

With --schedule joint an update has a batch of every pair, and their order decides nothing but the
order of sums: without dropout both runs have the same gradients.
"""

import random
import shutil

import pytest
import torch
from common import inprocess
from common.checkpoints import UNSET
from common.workers import largest_difference
from dual.reviews import binarise, write_reviews

COMMON = ["--batch-size", 24, "--lr", 0.01, "--seed", 3, "--disable-validation"]
COMMON += ["--no-epoch-checkpoints", "--no-progress-bar", "--dropout", 0]
# rounding is no step: see common/workers.py
ADAM = ["--optimizer", "adam", "--adam-eps", 1e-6]
SGD = ["--optimizer", "sgd", "--momentum", 0.9]
BOTH = [("-s", "xx", "-t", "yy"), ("-s", "yy", "-t", "xx")]
LABELS = [("-s", "text", "-t", "label"), ("-s", "label", "-t", "text")]
TRIANGLE = [("--lang-pairs", pairs) for pairs in ("xx-yy,yy-zz,zz-xx", "zz-xx,yy-zz,xx-yy")]
SIZES = ["--embed-dim", 16, "--ffn-embed-dim", 24, "--attention-heads", 2, "--layers", 1]
DUAL = ["--task", "dual_translation", "--arch", "dual_transformer_tiny", *SIZES]
STACKS = ["--task", "dual_translation", "--arch", "dual_supervised_transformer"]
for _side in ("encoder", "decoder"):
    STACKS += [f"--{_side}-embed-dim", 16, f"--{_side}-ffn-embed-dim", 16]
    STACKS += [f"--{_side}-layers", 1, f"--{_side}-attention-heads", 2]
CLASSIFIERS = ["--task", "dual_translation", "--criterion", "dual_label_cross_entropy"]
CLASSIFIERS += ["--arch", "dual_supervised_lstm_classifier_tiny"]
MULTIWAY = ["--task", "multiway_translation", "--arch", "multiway_gru", "--embed-dim", 12]
MULTIWAY += ["--hidden-size", 12, "--context-size", 10, "--readout-size", 8]
MULTIWAY += ["--init-hidden-size", 6, "--init-size", 6, "--schedule", "joint"]
ROUTED = ["--task", "routed_mtl", "--arch", "routed_gru_tiny", "--main-pair", "xx-yy"]
ROUTED += ["--embed-dim", 12, "--hidden-size", 10, "--attention-size", 12, "--schedule", "joint"]

# (data, options, both orders)
SYSTEMS = {
    "dual": ("two", [*DUAL, "--share-all-embeddings", *ADAM], BOTH),
    "dual-sgd": ("two", [*DUAL, *SGD], BOTH),
    "dual-pairs": ("three", [*DUAL, *ADAM], TRIANGLE),
    "dual-bf16": ("two", [*DUAL, "--bf16", *ADAM], BOTH),
    "dual-averages": ("two", [*DUAL, "--store-ema", "--ema-decay", 0.5, *ADAM], BOTH),
    "supervised": ("two", [*STACKS, *ADAM], BOTH),
    "classifiers": ("reviews", [*CLASSIFIERS, *ADAM], LABELS),
    "multiway": ("three", [*MULTIWAY, *ADAM], TRIANGLE),
    "multiway-sgd": ("three", [*MULTIWAY, *SGD], TRIANGLE),
    "multiway-twin": ("three", [*MULTIWAY, "--criterion", "twin", *ADAM], TRIANGLE),
    "routed": ("three", [*ROUTED, *ADAM], TRIANGLE),
}
SLOW = (
    *("dual-sgd", "dual-averages", "dual-bf16", "dual-pairs"),
    *("classifiers", "multiway-sgd", "multiway-twin"),
)


@pytest.fixture(scope="session")
def reviews(tmp_path_factory):
    """Folder of binarised reviews with labels."""
    folder = tmp_path_factory.mktemp("reviews")
    write_reviews(folder, random.Random(3))
    binarise(folder)
    return folder / "bin"


def trained(folder, number, data, *flags):
    inprocess.train(data, *COMMON, *flags, "--max-update", number, "--save-dir", folder)
    return folder


def stored(folder):
    """The parameters and the averages of the last checkpoint, {part: {name: tensor}}."""
    checkpoint = torch.load(folder / "checkpoint_last.pt", weights_only=True)
    parts = {**checkpoint, **checkpoint["extra_state"]}
    return {
        part: {
            name: tensor
            for name, tensor in parts[part].items()
            if name.rpartition(".")[2] not in UNSET
        }
        for part in ("model", "criterion", "ema")
        if parts.get(part)
    }


@pytest.fixture
def data_of(request):
    """Function (name of a set) -> its folder."""

    def folder(name):
        if name == "reviews":
            return request.getfixturevalue("reviews")
        return getattr(request.getfixturevalue("toy_corpus"), name)

    return folder


@pytest.mark.parametrize(
    "system",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in SYSTEMS],
)
def test_the_other_order_goes_on_as_the_same(system, data_of, tmp_path):
    data, words, (first, second) = data_of(SYSTEMS[system][0]), *SYSTEMS[system][1:]
    start = trained(tmp_path / "start", 5, data, *words, *first)
    for name, order in (("same", first), ("other", second)):
        shutil.copytree(start, tmp_path / name)
        trained(tmp_path / name, 9, data, *words, *order)
    before, same, other = (stored(tmp_path / name) for name in ("start", "same", "other"))
    assert list(same["model"]) != list(other["model"])
    for part, tensors in same.items():
        assert largest_difference(tensors, other[part]) < 1e-5, part
        assert largest_difference(tensors, before[part]) > 1e-3, part


def test_a_new_optimizer_is_left_alone(toy_corpus, tmp_path):
    """With --reset-optimizer nothing of the checkpoint's state is put into any order."""
    start = trained(tmp_path / "start", 2, toy_corpus.two, *DUAL, *ADAM, *BOTH[0])
    path = start / "checkpoint_last.pt"
    whole = torch.load(path, weights_only=True)
    whole["last_optimizer_state"]["param_groups"] *= 2  # no state that can be restored
    torch.save(whole, path)
    with pytest.raises(ValueError, match="2 groups of parameters .*Allowed: .*--reset-optimizer"):
        trained(start, 4, toy_corpus.two, *DUAL, *ADAM, *BOTH[1])
    trained(start, 4, toy_corpus.two, *DUAL, *ADAM, *BOTH[1], "--reset-optimizer")
