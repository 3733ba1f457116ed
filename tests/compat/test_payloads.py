"""No checkpoint runs code: every payload, in every format of torch, by every way in."""

import argparse
import os
import pickle
from pathlib import Path

import pytest
import torch
from common import inprocess
from compat.payloads import FORMATS, PAYLOADS, state, write

from fairseq_ext.compat.checkpoints.data_only import RefusedCheckpoint
from fairseq_ext.compat.checkpoints.literal_evaluation import RefusedSetting
from fairseq_ext.tools import UsageError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "safety.md"


def read(path):
    from fairseq import checkpoint_utils

    checkpoint_utils.load_checkpoint_to_cpu(path)


def load_ensemble(path):
    from fairseq import checkpoint_utils

    checkpoint_utils.load_model_ensemble_and_task([path])


def hub(path):
    from fairseq.models.transformer import TransformerModel

    TransformerModel.from_pretrained(os.path.dirname(path), os.path.basename(path))


def pretrained_wav2vec(path):
    from fairseq.models.wav2vec.wav2vec2_asr import Wav2Vec2CtcConfig, Wav2VecEncoder

    Wav2VecEncoder(Wav2Vec2CtcConfig(w2v_path=path, w2v_args=None, normalize=False, data="."))


def averages(path):
    from fairseq import checkpoint_utils

    checkpoint_utils.load_ema_from_checkpoint(path)


def own_reader(path):
    from fairseq_ext.tools.checkpoint.reading import read

    read(path, "dual_transformer")


def own_option(path):
    from fairseq_ext.common.stored import read_stored

    read_stored("--option", path)


# what tells fairseq that it need not upgrade a checkpoint
CURRENT = {
    "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
    "optimizer_history": [
        {"optimizer_name": "A", "lr_scheduler_state": {"best": 1}, "num_updates": 1}
    ],
    "last_optimizer_state": None,
}
WAYS = [read, load_ensemble, hub, pretrained_wav2vec, averages, own_reader, own_option]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", PAYLOADS)
def test_no_payload_runs(name, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # torch would write the source of a class here
    marker = tmp_path / "marker"
    path = write(tmp_path / "model.pt", state(PAYLOADS[name].body(str(marker))), kind)
    for way in WAYS:
        with pytest.raises((RefusedCheckpoint, UsageError, ValueError)) as caught:
            way(path)
        text = str(caught.value)
        assert "refused" in text and "model.pt" in text, (way.__name__, text)
        assert "weights_only" not in text, way.__name__
        assert os.listdir(tmp_path) == ["model.pt"], way.__name__
    assert not hasattr(argparse.Namespace, "user_dir")


@pytest.mark.parametrize("name", [name for name in PAYLOADS if PAYLOADS[name].acts])
def test_without_the_layer_it_runs(name, tmp_path):
    """The payloads are what they are meant to be."""
    marker = tmp_path / "marker"
    raw = state(PAYLOADS[name].body(str(marker)))
    try:
        pickle.loads(raw)
    except (OSError, TypeError, AttributeError):
        pass  # it has run
    assert marker.exists() or marker.is_symlink()


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", ["os.mkdir", "a forged number of numpy", "os.system"])
def test_commands_refuse_it(name, kind, tmp_path, toy_corpus):
    marker = tmp_path / "marker"
    path = write(tmp_path / "model.pt", state(PAYLOADS[name].body(str(marker))), kind)
    words = [toy_corpus.two, "--task", "translation", "-s", "xx", "-t", "yy", "--path", path]
    source = tmp_path / "lines"
    source.write_text("a\n", encoding="utf-8")
    for command, more in (
        (inprocess.generate, []),
        (inprocess.interactive, ["--input", source]),
        (inprocess.validate, ["--batch-size", 2]),
    ):
        with pytest.raises(RefusedCheckpoint):
            command(*words, *more)
        assert not marker.exists()


@pytest.fixture
def evaluated(tmp_path, toy_corpus):
    """A checkpoint of a convolutional model whose layers are code; its marker; options."""
    marker = tmp_path / "marker"
    args = argparse.Namespace(
        task="translation",
        arch="fconv",
        data=str(toy_corpus.two),
        source_lang="xx",
        target_lang="yy",
        encoder_layers=f"[__import__('os').mkdir({str(marker)!r})]",
    )
    path = tmp_path / "model.pt"
    torch.save({"args": args, "model": {}, **CURRENT}, path)
    words = [toy_corpus.two, "--task", "translation", "-s", "xx", "-t", "yy", "--path", path]
    return str(path), marker, words


@pytest.mark.parametrize("way", ["ensemble", "hub", "generate", "interactive", "validate"])
def test_settings_of_a_checkpoint_are_not_evaluated(way, evaluated, toy_corpus, tmp_path):
    from fairseq.models.fconv import FConvModel

    path, marker, words = evaluated
    source = tmp_path / "lines"
    source.write_text("a\n", encoding="utf-8")
    act = {
        "ensemble": lambda: load_ensemble(path),
        "hub": lambda: FConvModel.from_pretrained(
            str(tmp_path), "model.pt", data_name_or_path=str(toy_corpus.two)
        ),
        "generate": lambda: inprocess.generate(*words),
        "interactive": lambda: inprocess.interactive(*words, "--input", source),
        "validate": lambda: inprocess.validate(*words, "--batch-size", 2),
    }[way]
    with pytest.raises(RefusedSetting, match=r"model.pt: encoder_layers .* is not allowed"):
        act()
    assert not marker.exists()


def test_settings_behind_w2v_path_are_not_evaluated(tmp_path):
    marker = tmp_path / "marker"
    model = {
        "_name": "wav2vec2",
        "conv_feature_layers": f"[__import__('os').mkdir({str(marker)!r})]",
    }
    task = {"_name": "audio_pretraining", "data": str(tmp_path), "normalize": False}
    path = tmp_path / "model.pt"
    torch.save({"cfg": {"model": model, "task": task}, "args": None, "model": {}, **CURRENT}, path)
    with pytest.raises(RefusedSetting, match="conv_feature_layers"):
        pretrained_wav2vec(str(path))
    assert not marker.exists()


def test_forty_payloads_are_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    assert len(PAYLOADS) >= 40
    assert [name for name in PAYLOADS if f"`{name}`" not in page] == []


def test_allowed_globals_are_on_the_page():
    from fairseq_ext.compat.checkpoints.safe_globals import fairseq_safe_globals

    page = PAGE.read_text(encoding="utf-8")
    for entry in fairseq_safe_globals():
        full = entry[1] if isinstance(entry, tuple) else f"{entry.__module__}.{entry.__qualname__}"
        if not full.startswith("numpy"):  # numbers of numpy are a row
            assert f"`{full.removeprefix('builtins.')}`" in page, full


def test_torch_is_as_it_was():
    assert torch.load is torch.serialization.load
