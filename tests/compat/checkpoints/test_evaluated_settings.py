"""Every evaluation in fairseq reads literals."""

import argparse
import ast
import importlib
import importlib.util
import types
from pathlib import Path

import pytest

from fairseq_ext.compat.checkpoints.evaluated_settings import (
    EVALUATING_EXAMPLES,
    EVALUATING_MODULES,
)
from fairseq_ext.compat.checkpoints.literal_evaluation import RefusedSetting, evaluate
from fairseq_ext.compat.data.data_files import UnreadableFile

NEEDS_MORE = ("fairseq.optim.cpu_adam",)  # optional packages


def evaluates(path):
    """True if a source file calls eval or exec."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("eval", "exec")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def test_every_evaluating_module_is_listed():
    modules = set()
    for package in ("fairseq", "fairseq_cli"):
        root = Path(importlib.util.find_spec(package).origin).parent
        for path in root.rglob("*.py"):
            if evaluates(path):
                modules.add(".".join(path.relative_to(root.parent).with_suffix("").parts))
    examples = {f"fairseq.examples.{name}" for name in EVALUATING_EXAMPLES}
    assert modules == {*EVALUATING_MODULES, *examples}


@pytest.mark.parametrize("name", sorted(set(EVALUATING_MODULES) - set(NEEDS_MORE)))
def test_module_has_the_literal_eval(name):
    assert importlib.import_module(name).eval is evaluate


def attack(marker):
    return f"[__import__('os').mkdir({str(marker)!r})]"


def test_models_refuse_an_attack(tmp_path):
    from fairseq.models.fconv import FConvModel
    from fairseq.models.wav2vec.wav2vec2 import Wav2Vec2Config, Wav2Vec2Model

    marker = tmp_path / "marker"
    with pytest.raises(RefusedSetting, match="^conv_feature_layers"):
        Wav2Vec2Model(Wav2Vec2Config(conv_feature_layers=attack(marker)))
    args = argparse.Namespace(
        encoder_layers=attack(marker),
        encoder_embed_dim=4,
        decoder_embed_dim=4,
        encoder_embed_path=None,
        decoder_embed_path=None,
        dropout=0.0,
        max_source_positions=8,
    )
    task = argparse.Namespace(source_dictionary=None, target_dictionary=None)
    with pytest.raises(RefusedSetting, match="^encoder_layers"):
        FConvModel.build_model(args, task)
    assert not marker.exists()
    eval(attack(marker))  # without the layer it runs
    assert marker.is_dir()


def test_options_keep_their_values():
    from fairseq import utils

    assert utils.eval_str_list("0.5,1") == [0.5, 1.0]
    assert utils.eval_bool("False") is False and utils.eval_bool(True, default=True) is True
    assert utils.eval_str_dict("{'a': 1}") == {"a": 1}


def test_manifest_names_its_line(tmp_path):
    from fairseq.data import Dictionary, codedataset

    path = tmp_path / "manifest"
    path.write_text(f"{attack(tmp_path / 'marker')}\n", encoding="utf-8")
    with pytest.raises(UnreadableFile, match="manifest, line 1: "):
        codedataset.parse_manifest(str(path), Dictionary())
    assert not (tmp_path / "marker").exists()
    assert codedataset.eval("{'audio': 'a.wav', 'hubert_km100': '1 2'}")["audio"] == "a.wav"


def test_copies_of_examples_are_treated(tmp_path, monkeypatch):
    from fairseq import utils

    folder = tmp_path / "data2vec"
    (folder / "models").mkdir(parents=True)
    (folder / "__init__.py").write_text("from .models import data2vec_audio\n")
    (folder / "models" / "__init__.py").write_text("")
    (folder / "models" / "data2vec_audio.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    utils.import_user_module(types.SimpleNamespace(user_dir=str(folder)))
    module = importlib.import_module("data2vec.models.data2vec_audio")
    assert module.eval is evaluate
