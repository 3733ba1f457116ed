"""What systems offer to `fairseq-ext export`."""

import importlib

import pytest

from fairseq_ext.tools import commands
from fairseq_ext.tools.export.protocol import all_exporters


def test_exporters_are_of_registered_models():
    from fairseq.models import MODEL_REGISTRY

    exporters = all_exporters()
    assert "dual_transformer" in exporters.directions and "twin_lstm" in exporters.whole
    assert {*exporters.directions, *exporters.whole} <= set(MODEL_REGISTRY)
    for name in commands.exporter_modules():
        assert callable(importlib.import_module(f"fairseq_ext.{name}").exporters)


@pytest.mark.parametrize(
    "kind, methods",
    [
        ("directions", ("lack", "embeddings", "parameters", "config")),
        ("whole", ("plain_checkpoint", "usage")),
    ],
)
def test_exporters_have_what_the_command_calls(kind, methods):
    for name, exporter in getattr(all_exporters(), kind).items():
        assert all(callable(getattr(exporter, method)) for method in methods), name
