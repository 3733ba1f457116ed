"""wav2vec and wav2vec 2.0: which frames a frame depends on, and which it is told from."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.models.wav2vec.wav2vec import (
    Wav2VecConfig,
    Wav2VecModel,
    Wav2VecPredictionsModel,
)
from fairseq.models.wav2vec.wav2vec2 import Wav2Vec2Config, Wav2Vec2Model


def test_features_of_a_recurrence_do_not_depend_on_the_batch(caplog):
    config = Wav2VecConfig(aggregator="gru", gru_dim=4, conv_feature_layers="[(4, 3, 2)]")
    config.prediction_steps, config.offset, config.infonce = 2, "1", False
    torch.manual_seed(1)
    model = Wav2VecModel(config).eval()
    assert "FAIRSEQ_EXT_COMPAT_OFF=recurrences_run_over_frames" in caplog.text
    features = torch.randn(3, 4, 6)  # (B, C, T)
    together = model.feature_aggregator(features)
    torch.testing.assert_close(together[1:2], model.feature_aggregator(features[1:2]))
    features[:, :, 2] += 1
    changed = together.ne(model.feature_aggregator(features)).any(1)  # (B, T)
    assert changed[:, 2:].all() and not changed[:, :2].any()


def negatives_of(recordings, frames, **options):
    """Places (N, B, T), among all frames of all recordings, of what is drawn."""
    model = Wav2VecPredictionsModel(
        1, 1, prediction_steps=1, dropout=0, offset=1, balanced_classes=False, infonce=True,
        **options,
    )  # fmt: skip
    places = torch.arange(recordings * frames).view(recordings, 1, frames)
    return model.sample_negatives(places).squeeze(2)


@pytest.mark.parametrize(("distance", "near"), [(None, 7), (3, 3), (4, 4), (90, 7)])
def test_negatives_are_of_the_recording(distance, near):
    torch.manual_seed(1)
    drawn = negatives_of(3, 7, n_negatives=200, cross_sample_negatives=0, sample_distance=distance)
    assert drawn.shape == (200, 3, 7)
    for row in range(3):
        for frame in range(7):
            places = set((drawn[:, row, frame] - 7 * row).tolist())
            first = min(max(frame - near // 2, 0), 7 - near)
            assert places == set(range(first, first + near)) - {frame}


def test_negatives_of_all_recordings():
    torch.manual_seed(1)
    drawn = negatives_of(2, 3, n_negatives=1, cross_sample_negatives=300, sample_distance=None)
    assert drawn.shape == (301, 2, 3)
    for row in range(2):
        for frame in range(3):
            assert set(drawn[1:, row, frame].tolist()) == set(range(6)) - {3 * row + frame}


@pytest.mark.parametrize("everywhere", [False, True])
def test_negatives_where_masks_are_computed_before(everywhere):
    model = SimpleNamespace(
        n_negatives=200, cross_sample_negatives=0, negatives_from_everywhere=everywhere
    )
    frames = torch.arange(20.0).view(2, 10, 1)
    drawn, _ = Wav2Vec2Model.sample_negatives(model, frames, 10, padding_count=4)
    allowed = 6 if everywhere else 10  # masked frames are no padding
    for row in range(2):
        assert set(drawn[:, row].flatten().tolist()) == set(range(10 * row, 10 * row + allowed))


def test_negatives_from_everywhere_are_no_padding(monkeypatch):
    config = Wav2Vec2Config(negatives_from_everywhere=True, num_negatives=9, mask_length=2)
    config.conv_feature_layers, config.extractor_mode = "[(4, 10, 2), (4, 3, 2)]", "layer_norm"
    config.encoder_layers = config.encoder_attention_heads = config.conv_pos_groups = 1
    config.encoder_embed_dim = config.encoder_ffn_embed_dim = config.final_dim = 4
    config.conv_pos = 4
    counts, stock = [], Wav2Vec2Model.sample_negatives

    def sample_negatives(self, y, num, padding_count=None):
        counts.append(padding_count)
        return stock(self, y, num, padding_count)

    monkeypatch.setattr(Wav2Vec2Model, "sample_negatives", sample_negatives)
    is_padding = torch.arange(200) >= torch.tensor([[200], [120]])
    loss = Wav2Vec2Model(config)(torch.randn(2, 200), is_padding)["x"]
    # 47 and 27 frames
    assert counts == [20] and not loss.isnan().any()
