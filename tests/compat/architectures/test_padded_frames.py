"""A recording has the same frames alone and in a batch with longer ones."""

from argparse import Namespace

import pytest
import torch
from common.words import dictionary_with
from fairseq.models.hubert.hubert import HubertConfig, HubertModel
from fairseq.models.speech_to_text.berard import BerardEncoder
from fairseq.models.speech_to_text.convtransformer import (
    ConvTransformerEncoder,
    base_architecture,
)
from fairseq.models.speech_to_text.s2t_transformer import Conv1dSubsampler
from fairseq.models.speech_to_text.s2t_wav_transformer import SpeechWavTransformerEncoder
from fairseq.models.speech_to_text.xm_transformer import Conv1dAdaptor
from fairseq.models.wav2vec.wav2vec2 import TransformerEncoder, Wav2Vec2Config
from fairseq.modules.conformer_layer import ConformerEncoderLayer
from fairseq.tasks.hubert_pretraining import HubertPretrainingConfig

LENGTHS = [29, 22, 21, 9, 1]


@pytest.fixture
def recordings():
    """Padded recordings (B, T, 6) and their lengths (B,)."""
    torch.manual_seed(1)
    frames = torch.randn(len(LENGTHS), max(LENGTHS), 6, dtype=torch.float64)
    lengths = torch.tensor(LENGTHS)
    return frames * (torch.arange(max(LENGTHS)) < lengths[:, None]).unsqueeze(2), lengths


@pytest.mark.parametrize("kernels", [[5, 5], [3, 3, 3], [3]])
def test_subsampled_frames(recordings, kernels):
    frames, lengths = recordings
    subsample = Conv1dSubsampler(6, 8, 4, kernels).double()
    together, sizes = subsample(frames, lengths)
    assert sizes.tolist() == subsample.get_out_seq_lens_tensor(lengths).tolist()
    for row, length in enumerate(LENGTHS):
        alone, size = subsample(frames[row : row + 1, :length], lengths[row : row + 1])
        assert size == sizes[row] == len(alone)
        torch.testing.assert_close(together[:size, row], alone[:, 0], rtol=0, atol=1e-12)
        assert not together[size:, row].any()


def test_frames_of_a_conformer(recordings):
    frames, lengths = recordings
    layer = ConformerEncoderLayer(6, 8, 2, 0.0, depthwise_conv_kernel_size=5, use_fp16=False)
    layer = layer.double().eval()
    is_padding = torch.arange(max(LENGTHS)) >= lengths[:, None]
    together, _ = layer(frames.transpose(0, 1), is_padding)
    for row, length in enumerate(LENGTHS):
        alone, _ = layer(frames[row : row + 1, :length].transpose(0, 1), is_padding[:1, :length])
        torch.testing.assert_close(together[:length, row], alone[:, 0], rtol=0, atol=1e-12)
    assert not layer.conv_module.depthwise_conv._forward_pre_hooks


def test_frames_of_a_convolutional_transformer(recordings):
    frames, lengths = recordings
    args = Namespace(input_feat_per_channel=6, input_channels=1, encoder_layers=1)
    args.encoder_embed_dim, args.encoder_ffn_embed_dim, args.conv_out_channels = 8, 8, 4
    args.max_source_positions = 40
    base_architecture(args)
    encoder = ConvTransformerEncoder(args).double().eval()
    together = encoder(frames, lengths)["encoder_out"][0]
    for row, length in enumerate(LENGTHS[:-2]):  # shorter ones alone are counted otherwise
        alone = encoder(frames[row : row + 1, :length], lengths[row : row + 1])["encoder_out"][0]
        torch.testing.assert_close(together[: len(alone), row], alone[:, 0], rtol=0, atol=1e-12)
    assert not encoder.conv[2]._forward_pre_hooks


def test_frames_before_lstms(recordings):
    frames, lengths = recordings
    encoder = BerardEncoder([8, 8], [(4, 3, 2), (4, 3, 2)], 1, 6, 1, 5, 0.0).double().eval()
    together = encoder(frames, lengths)["encoder_out"]
    for row, length in enumerate(LENGTHS):
        alone = encoder(frames[row : row + 1, :length], lengths[row : row + 1])["encoder_out"]
        torch.testing.assert_close(together[: len(alone), row], alone[:, 0], rtol=0, atol=1e-12)
    assert not any(conv._forward_pre_hooks for conv in encoder.conv_layers)


@pytest.mark.parametrize("depth", [1, 3])
def test_frames_with_positions(recordings, depth):
    frames, lengths = recordings
    config = Wav2Vec2Config(encoder_layers=1, encoder_embed_dim=6, encoder_ffn_embed_dim=8)
    config.encoder_attention_heads, config.conv_pos, config.conv_pos_groups = 2, 9, 2
    config.pos_conv_depth = depth
    encoder = TransformerEncoder(config).double().eval()
    for name, parameter in encoder.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    is_padding = torch.arange(max(LENGTHS)) >= lengths[:, None]
    together, _ = encoder(frames, is_padding)
    for row, length in enumerate(LENGTHS):
        alone, _ = encoder(frames[row : row + 1, :length])
        torch.testing.assert_close(together[row, :length], alone[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("trimmed", [False, True])
def test_recordings_of_hubert_have_their_frames(trimmed):
    config = HubertConfig(extractor_mode="layer_norm", label_rate=4000, final_dim=4)
    config.conv_feature_layers = "[(8, 10, 2), (8, 3, 2)]"
    config.encoder_layers = config.encoder_attention_heads = config.conv_pos_groups = 1
    config.encoder_embed_dim = config.encoder_ffn_embed_dim = 8
    config.conv_pos, config.encoder_layerdrop, config.mask_prob = 4, 0.0, 0.5
    torch.manual_seed(1)
    model = HubertModel(config, HubertPretrainingConfig(), [dictionary_with("a", "b")]).eval()
    lengths = [400, 203, 117, 7]  # the last is shorter than a frame
    is_padding = torch.arange(400) >= torch.tensor(lengths).unsqueeze(1)
    waves = torch.randn(4, 400).masked_fill(is_padding, 0)
    frames = [((length - 10) // 2 + 1 - 3) // 2 + 1 for length in lengths[:3]] + [1]
    if trimmed:  # labels of three frames less, where padding has the label 1
        labels = torch.full((4, frames[0] - 3), 1)
        for row, size in enumerate(frames):
            labels[row, :size] = 4
        predicted = model(waves, [labels], is_padding)
        assert predicted["padding_mask"].logical_not().sum(1).tolist() == [
            frames[0] - 3,
            *frames[1:],
        ]
        return
    together, mask = model.extract_features(waves, is_padding)
    assert mask.logical_not().sum(1).tolist() == frames
    for row, length in enumerate(lengths[:3]):
        alone, _ = model.extract_features(waves[row : row + 1, :length], is_padding[:1, :length])
        torch.testing.assert_close(together[row, : frames[row]], alone[0])


@pytest.mark.parametrize("proj", [False, True])
def test_frames_of_an_adaptor(recordings, proj):
    frames, lengths = recordings
    adaptor = Conv1dAdaptor(6, 8, n_layers=3, layernorm=True, proj=proj).double()
    together, padding = adaptor(
        frames.transpose(0, 1) + 1, torch.arange(max(LENGTHS)) >= lengths[:, None]
    )
    for row, length in enumerate(LENGTHS):
        alone, _ = adaptor(frames[row : row + 1, :length].transpose(0, 1) + 1, None)
        size = int(padding[row].logical_not().sum())
        assert size == len(alone)
        torch.testing.assert_close(together[:size, row], alone[:, 0], rtol=0, atol=1e-12)
    assert not any(layer._forward_pre_hooks for layer in adaptor.layers)


@pytest.mark.parametrize("as_mask", [False, True])
def test_frames_of_waveforms(as_mask):
    args = Namespace(encoder_embed_dim=8, encoder_ffn_embed_dim=8, encoder_attention_heads=2)
    args.dropout = args.dropout_input = args.dropout_features = args.attention_dropout = 0.0
    args.activation_dropout = args.speech_mask_prob = args.speech_mask_channel_prob = 0.0
    args.no_scale_feature = args.speech_conv_bias = args.encoder_normalize_before = True
    args.conv_feature_layers, args.speech_extractor_mode = "[(6, 10, 2), (6, 3, 2)]", "layer_norm"
    args.conv_pos, args.conv_pos_groups, args.feature_grad_mult = 4, 1, 1.0
    args.encoder_layers, args.activation_fn = 1, "relu"
    for name in ("mask_selection", "mask_other", "mask_length", "no_mask_overlap", "mask_min_space",
                 "mask_channel_selection", "mask_channel_other", "mask_channel_length",
                 "no_mask_channel_overlap", "mask_channel_min_space"):  # fmt: skip
        setattr(args, f"speech_{name}", 0)
    torch.manual_seed(1)
    encoder = SpeechWavTransformerEncoder(args).double().eval()
    lengths = torch.tensor([90, 60, 31])
    is_padding = torch.arange(90) >= lengths[:, None]
    waves = torch.randn(3, 90, dtype=torch.float64).masked_fill(is_padding, 0)
    options = {"padding_mask": is_padding} if as_mask else {}
    together = encoder(waves, None if as_mask else lengths, **options)
    (mask,), (states,) = together["encoder_padding_mask"], together["encoder_out"]
    for row, length in enumerate(lengths.tolist()):
        alone = encoder(waves[row : row + 1, :length], lengths[row : row + 1])
        assert alone["encoder_padding_mask"] == []
        size = len(alone["encoder_out"][0])
        assert size == mask[row].logical_not().sum()
        torch.testing.assert_close(states[:size, row], alone["encoder_out"][0][:, 0])
