"""Conformers begin with the parameters, and are frozen for the updates, that are asked for."""

from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.criterions.label_smoothed_cross_entropy_with_ctc import (
    LabelSmoothedCrossEntropyWithCtcCriterion,
)
from fairseq.models.speech_to_text import s2t_conformer


def options():
    args = Namespace(encoder_embed_dim=8, encoder_ffn_embed_dim=8, encoder_attention_heads=2)
    args.encoder_layers, args.conv_channels, args.fp16, args.max_source_positions = 1, 8, False, 40
    args.input_feat_per_channel, args.depthwise_conv_kernel_size = 4, 3
    s2t_conformer.base_architecture(args)
    return args


def test_the_encoder_is_frozen():
    args = options()
    args.encoder_freezing_updates = 2
    encoder = s2t_conformer.S2TConformerModel.build_encoder(args)
    frames, lengths = torch.randn(1, 9, 4), torch.tensor([9])
    for updates, is_trained in ((0, False), (1, False), (2, True)):
        encoder.set_num_updates(updates)
        assert encoder(frames, lengths)["encoder_out"][0].requires_grad == is_trained


@pytest.mark.parametrize("exists", [True, False])
def test_pretrained_parameters_are_read(exists, tmp_path, monkeypatch, caplog):
    args, path = options(), tmp_path / "encoder.pt"
    args.load_pretrained_encoder_from = str(path)
    if exists:
        path.touch()
    loaded = []
    monkeypatch.setattr(checkpoint_utils, "load_pretrained_component_from_model",
                        lambda *given: loaded.append(given) or given[0])  # fmt: skip
    encoder = s2t_conformer.S2TConformerModel.build_encoder(args)
    assert loaded == ([(encoder, str(path))] if exists else [])
    assert exists or "does not exist" in caplog.text


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_frames_have_scores_of_words(weight):
    args = options()
    args.ctc_weight, args.tgt_dict_size = weight, 7
    encoder = s2t_conformer.S2TConformerModel.build_encoder(args)
    if not weight:
        assert encoder.ctc_proj is None
        return
    encoded = encoder(torch.randn(2, 9, 4), torch.tensor([9, 5]))
    scores, lengths = s2t_conformer.S2TConformerModel.get_ctc_output(
        Namespace(encoder=encoder), (None, {"encoder_out": encoded}), None
    )
    assert scores.shape == (3, 2, 7) and lengths.tolist() == [3, 2]
    torch.testing.assert_close(scores.exp().sum(2), torch.ones(3, 2))


def test_models_without_scores_of_frames_are_named():
    criterion = SimpleNamespace(ctc_weight=0.5)
    forward = LabelSmoothedCrossEntropyWithCtcCriterion.forward
    with pytest.raises(ValueError, match="--ctc-weight 0.5 is not allowed with SimpleNamespace"):
        forward(criterion, SimpleNamespace(), {})


@pytest.mark.parametrize(
    "arch, task", [("s2t_conformer", "speech_to_text"), ("s2ut_conformer", "speech_to_speech")]
)
def test_options_of_conformers_are_numbers(arch, task):
    from fairseq import options

    words = ["data", "--task", task, "--arch", arch, "--depthwise-conv-kernel-size", "5"]
    parsed = options.parse_args_and_arch(options.get_training_parser(), words)
    assert parsed.depthwise_conv_kernel_size == 5
    assert getattr(parsed, "input_feat_per_channel", 80) == 80
    parsed = options.parse_args_and_arch(options.get_training_parser(), words[:-2])
    assert parsed.depthwise_conv_kernel_size == 31
