"""Logits of speech with CTC: padding is blank, and the encoder's output stays as it is."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.models.hubert.hubert_asr import HubertCtc
from fairseq.models.wav2vec.wav2vec2_asr import Wav2VecCtc

IS_PADDING = torch.tensor([[False] * 5, [False, False, False, True, True]])
BLANK = torch.tensor([0, float("-inf"), float("-inf"), float("-inf")])


@pytest.fixture
def encoded():
    """(T, B, V) and the padding (B, T), as both encoders return them."""
    torch.manual_seed(1)
    logits = torch.randn(5, 2, 4)
    return {"encoder_out": logits, "encoder_padding_mask": IS_PADDING, "padding_mask": IS_PADDING}


@pytest.mark.parametrize("model", [HubertCtc, Wav2VecCtc])
def test_padding_is_blank(model, encoded):
    before = encoded["encoder_out"].clone()
    logits = model.get_logits(SimpleNamespace(blank_weight=0), encoded)
    assert torch.equal(encoded["encoder_out"], before)
    assert torch.equal(logits[:, 0], before[:, 0])
    assert torch.equal(logits[:3, 1], before[:3, 1])
    assert torch.equal(logits[3:, 1], BLANK.expand(2, 4))


def test_recordings_without_padding(encoded):
    for mask in (None, torch.zeros_like(IS_PADDING)):
        logits = HubertCtc.get_logits(None, {**encoded, "encoder_padding_mask": mask})
        assert torch.equal(logits, encoded["encoder_out"])


@pytest.mark.parametrize("mode", ["add", "set"])
def test_weight_of_the_blank_is_added_once(mode, encoded):
    model = SimpleNamespace(blank_weight=2.0, blank_mode=mode)
    first, second = (Wav2VecCtc.get_logits(model, encoded) for _ in range(2))
    assert torch.equal(first, second)
    expected = encoded["encoder_out"][:, 0, 0] + 2 if mode == "add" else torch.full((5,), 2.0)
    assert torch.equal(first[:, 0, 0], expected)
