"""From a stock checkpoint to a folder of CTranslate2, with a double in place of its converter."""

import errno
import os
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from fairseq_ext.tools import UsageError
from fairseq_ext.tools.export import ctranslate2

TASK = {"source_lang": "xx", "target_lang": "yy"}
STOCK = {"cfg": {"task": TASK, "model": Namespace(decoder_embed_dim=8)}, "model": {}}


class Converter:
    """Writes what it was given into the folder, as CTranslate2's converter writes a model."""

    def __init__(self, file, data, source_lang, target_lang):
        assert Path(file).is_file()
        self.words = [data, source_lang, target_lang]

    def convert(self, folder, quantization=None):
        Path(folder).mkdir()
        (Path(folder) / "model.bin").write_text(" ".join([*self.words, str(quantization)]))
        return folder


class Refuses(Converter):
    def convert(self, folder, quantization=None):
        raise ValueError("Model uses --unheard-of")


@pytest.fixture(autouse=True)
def present_torch(monkeypatch):
    monkeypatch.setattr(ctranslate2, "since", lambda *_version: lambda: None)


def test_a_folder_that_is_there_is_replaced(tmp_path):
    output = tmp_path / "model"
    output.mkdir()
    (output / "old").write_text("")
    ctranslate2.write_folder(Converter, STOCK, Path("data"), output, "int8")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (output / "model.bin").read_text() == "data xx yy int8"
    assert not (output / "old").exists()


def test_a_model_that_it_does_not_know_leaves_the_folder_as_it_was(tmp_path):
    output = tmp_path / "model"
    output.mkdir()
    with pytest.raises(UsageError, match="--to ctranslate2: Model uses --unheard-of"):
        ctranslate2.write_folder(Refuses, STOCK, Path("data"), output)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_options_that_fairseq_hydra_train_stores_are_a_namespace():
    """CTranslate2 reads the names of task and architecture in it as well."""
    task = {**TASK, "_name": "translation", "left_pad_source": False}
    model = {"_name": "transformer", "encoder_layers": 3}
    cfg = ctranslate2.with_namespace({"cfg": {"task": task, "model": model}})["cfg"]
    assert cfg["task"] is task
    assert cfg["model"].arch == "transformer" and cfg["model"].task == "translation"
    assert cfg["model"].encoder_layers == 3 and cfg["model"].left_pad_source is False
    # those of fairseq-train are one already
    assert ctranslate2.with_namespace(STOCK)["cfg"]["model"] is STOCK["cfg"]["model"]


@pytest.mark.parametrize(
    "options",
    [
        {"cross_self_attention": True},
        {"no_cross_attention": True},
        {"quant_noise_pq": 0.1},
        {"quant_noise_scalar": 0.1},
        {"base_layers": 1},
        {"decoder_output_dim": 4},
        {"no_decoder_final_norm": True, "decoder_normalize_before": True},
        {"scale_heads": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_that_its_converter_does_not_read_are_refused(options, tmp_path):
    """CTranslate2's own converter leaves them out, and the model translates something else."""
    model = Namespace(decoder_embed_dim=8, **options)
    named = f"--{next(iter(options))}".replace("_", "-")
    stock = {**STOCK, "cfg": {"task": TASK, "model": model}}
    with pytest.raises(UsageError, match=f"trained with {named}, which CTranslate2 does not have"):
        ctranslate2.write_folder(Converter, stock, Path("data"), tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options",
    [
        {"quant_noise_pq": 0.1, "adaptive_input": True},
        {"decoder_output_dim": 8, "quant_noise_pq": 0, "base_layers": 0},
        {"quant_noise_scalar": 0},
        {"no_decoder_final_norm": True, "cross_self_attention": False},
    ],
)
def test_options_that_change_nothing_are_allowed(options, tmp_path):
    stock = {**STOCK, "cfg": {"task": TASK, "model": Namespace(decoder_embed_dim=8, **options)}}
    ctranslate2.write_folder(Converter, stock, Path("data"), tmp_path / "model")
    assert (tmp_path / "model" / "model.bin").is_file()


def test_a_decoder_without_layers_is_refused(tmp_path):
    """CTranslate2 wrote a folder that it could not load."""
    stock = {**STOCK, "cfg": {"task": TASK, "model": Namespace(decoder_layers=0)}}
    with pytest.raises(UsageError, match="trained with --decoder-layers 0, but CTranslate2 needs"):
        ctranslate2.write_folder(Converter, stock, Path("data"), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_replaced_stays(tmp_path, monkeypatch):
    output = tmp_path / "model"
    output.mkdir()
    (output / "old").write_text("old")
    rename = os.rename

    def full(source, target):
        if Path(source).name == "converted":
            raise OSError(errno.ENOSPC, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(OSError, match="No space left"):
        ctranslate2.write_folder(Converter, STOCK, Path("data"), output)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (output / "old").read_text() == "old"


def test_a_torch_that_is_too_old_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(ctranslate2, "since", lambda *_version: lambda: "it is older")
    with pytest.raises(UsageError, match="too old for CTranslate2's converter"):
        ctranslate2.write_folder(Converter, STOCK, Path("data"), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2.converters", None)
    with pytest.raises(UsageError, match="needs the package ctranslate2"):
        ctranslate2.import_converter()
