"""What the YAML file of speech data says of its input."""

import logging
import sys
from types import ModuleType

import numpy as np
import pytest
import torch
import yaml
from fairseq.data.audio.data_cfg import S2SDataConfig, S2TDataConfig
from fairseq.data.audio.speech_to_text_dataset import SpeechToTextDataset
from fairseq.data.audio.speech_to_text_joint_dataset import S2TJointDataConfig


@pytest.fixture
def configured(tmp_path):
    """Function (class, entries) -> the configuration of a file with these entries."""

    def configured(kind, **entries):
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(entries))
        return kind(path)

    return configured


@pytest.mark.parametrize(
    "transforms, channels",
    [
        ({}, 1),
        ({"_train": ["utterance_cmvn", "delta_deltas"]}, 3),
        ({"*": ["delta_deltas"]}, 3),
        ({"*": ["delta_deltas"], "_train": ["specaugment"]}, 1),
        ({"_eval": ["delta_deltas"]}, 1),
    ],
)
def test_channels_of_the_transforms(configured, transforms, channels):
    configuration = configured(S2SDataConfig, transforms=transforms)
    assert configuration.input_transformed_channels == channels


@pytest.mark.parametrize("waveforms", [True, False])
def test_transforms_of_waveforms_are_named(configured, waveforms, caplog):
    configuration = configured(
        S2TDataConfig,
        use_audio_input=waveforms,
        standardize_audio=False,
        transforms={"_train": ["utterance_cmvn"], "_eval": []},
    )
    for split in ("train", "valid"):
        with caplog.at_level(logging.WARNING):
            SpeechToTextDataset(split, split == "train", configuration, ["a.wav"], [1])
    named = "'train': transforms (UtteranceCMVN) are for features and have no effect on waveforms"
    assert (named in caplog.text) is waveforms and "'valid'" not in caplog.text


def test_tokenizers_of_the_source_are_beside_the_file(configured, tmp_path):
    (tmp_path / "source.model").touch()
    coder = {"bpe": "sentencepiece", "sentencepiece_model": "source.model"}
    configuration = configured(S2TJointDataConfig, src_bpe_tokenizer=coder)
    path = (tmp_path / "source.model").as_posix()
    assert configuration.src_bpe_tokenizer == {**coder, "sentencepiece_model": path}
    assert configuration.src_pre_tokenizer == {"tokenizer": None}


@pytest.mark.parametrize(
    "lines, standardised, warnings",
    [
        ("use_audio_input: true\nstandardize_audio: false", False, 0),
        ("use_audio_input: true\nstandardize_audio: true", True, 0),
        ("use_audio_input: true", True, 1),  # what models of stock have seen
        ("standardize_audio: true", False, 0),
    ],
)
def test_waveforms_are_standardised_as_asked(lines, standardised, warnings, tmp_path, caplog):
    (tmp_path / "config.yaml").write_text(lines)
    config = S2TDataConfig(tmp_path / "config.yaml")
    assert config.standardize_audio is standardised
    assert caplog.text.count("waveforms are standardised") == warnings


def test_deltas_have_their_window(monkeypatch, caplog):
    """The formula of torchaudio: a slope, sum_n n (c[t+n] - c[t-n]) / (2 sum_n n^2)."""
    from fairseq.data.audio.feature_transforms.delta_deltas import DeltaDeltas

    def slopes(values, win_length=5):
        reach = win_length // 2
        padded = np.pad(np.asarray(values), ((0, 0), (reach, reach)), mode="edge")
        steps = np.arange(-reach, reach + 1)
        frames = range(np.shape(values)[1])
        sums = [padded[:, frame : frame + win_length] @ steps for frame in frames]
        return torch.tensor(np.array(sums).T / (steps**2).sum())

    functional = ModuleType("torchaudio.functional")
    functional.compute_deltas = slopes
    monkeypatch.setitem(sys.modules, "torchaudio", ModuleType("torchaudio"))
    monkeypatch.setitem(sys.modules, "torchaudio.functional", functional)
    spectrogram = np.random.RandomState(1).rand(9, 3)
    for config, window in ((None, 5), ({"win_length": 3}, 3), ({"win_length": 7}, 7)):
        deltas = slopes(spectrogram.T, window)
        expected = np.vstack([spectrogram.T, deltas, slopes(deltas, window)]).T
        np.testing.assert_allclose(DeltaDeltas.from_config_dict(config)(spectrogram), expected)
    assert [record.args for record in caplog.records] == [(3, 5), (7, 5)]
