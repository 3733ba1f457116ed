"""latent_depth (fairseq_ext/compat/examples/latent_layers.py)."""

from types import SimpleNamespace

import pytest
import torch

from fairseq_ext.compat.examples.latent_layers import check_latent_layers
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
