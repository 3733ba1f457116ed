"""Options of the model: named sizes, and what is refused by name."""

import argparse
import copy

import pytest
from fairseq.models import ARCH_CONFIG_REGISTRY
from omegaconf import OmegaConf
from routed.conftest import PAIRS

from fairseq_ext.routed.config import RoutedConfig


@pytest.mark.parametrize("family", ["routed_gru", "mtl_full_gru", "mtl_partial_gru"])
def test_named_sizes(family):
    """A small and a tiny one of every system, the same but for sizes; given values win."""
    sharing = {"sharing", "encoder_layers", "decoder_layers"}
    plain = argparse.Namespace()
    if family != "routed_gru":
        ARCH_CONFIG_REGISTRY[family](plain)
    for size, width in (("small", 200), ("tiny", 48)):
        args = argparse.Namespace(dropout=0.7)
        ARCH_CONFIG_REGISTRY[f"{family}_{size}"](args)
        assert args.hidden_size == args.embed_dim == args.attention_size == width
        assert args.dropout == 0.7
        for name, value in vars(plain).items():
            assert getattr(args, name) == value
        assert not plain.__dict__ or sharing <= set(vars(plain))


LAYERS = ["--sharing", "layers"]


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--shared-blocks", 0], "--shared-blocks 0: must be at least 1"),
        (["--encoder-layers", 0], "--encoder-layers 0: must be at least 1"),
        ([*LAYERS, "--decoder-layers", 0], "--decoder-layers 0: must be at least 1"),
        ([*LAYERS, "--shared-decoder-layers", 2], "2: must be between 0 and --decoder-layers, 1"),
        (["--shared-encoder-layers", 1], "--shared-encoder-layers 1: only with --sharing layers"),
        ([*LAYERS, "--shared-blocks", 3], "--shared-blocks 3: does nothing with --sharing layers"),
        ([*LAYERS, "--router-size", 6], "--router-size 6: does nothing with --sharing layers"),
        (["--dropout", 1.5], "--dropout 1.5"),
    ],
)
def test_wrong_options_are_named(routed_task, flags, message):
    with pytest.raises(ValueError, match=message):
        routed_task(*flags)


def test_older_checkpoints_hold_options_that_layers_do_not_look_at(routed_task):
    task, _ = routed_task(arch="mtl_full_gru")
    stored = RoutedConfig("routed_gru", sharing="layers", shared_blocks=3, router_size=8)
    cfg = OmegaConf.structured(stored)
    cfg.lang_pairs = PAIRS
    cfg.max_source_positions = cfg.max_target_positions = 50
    with pytest.raises(ValueError, match="--shared-blocks 3: does nothing"):
        task.build_model(copy.deepcopy(cfg))
    assert task.build_model(cfg, from_checkpoint=True).pairs == PAIRS.split(",")
