"""A vocoder of units takes one recording at a time."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.models.text_to_speech.vocoder import CodeHiFiGANVocoder


def speak(units, **options):
    """What the vocoder gives its model, for which the units are the waveform."""
    self = SimpleNamespace(model=lambda code, **_: code)
    return CodeHiFiGANVocoder.forward(self, {"code": units, **options}).tolist()


@pytest.mark.parametrize("units", [[3, 4, -1], [[3, 4, -1]]])
def test_one_recording(units):
    assert speak(torch.tensor(units)) == [3, 4]


def test_several_recordings_are_refused():
    with pytest.raises(ValueError, match="units of 2 recordings are not allowed"):
        speak(torch.tensor([[3, 4], [5, -1]]))


def test_the_units_remain():
    inputs = {"code": torch.tensor([[3, -1]])}
    CodeHiFiGANVocoder.forward(SimpleNamespace(model=lambda code, **_: code), inputs)
    assert inputs.keys() == {"code"} and inputs["code"].tolist() == [[3, -1]]
