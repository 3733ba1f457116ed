"""What the YAML file of speech data says of its input."""

import logging

import pytest
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
