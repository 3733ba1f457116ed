"""Text to speech: a text has the same speech alone and in a batch with a longer one."""

import argparse
import inspect
import itertools
from types import SimpleNamespace

import pytest
import torch
from common.words import dictionary_with
from fairseq.models.text_to_speech import fastspeech2, tacotron2, tts_transformer
from fairseq.speech_generator import AutoRegressiveSpeechGenerator

SYMBOLS = torch.tensor([[5, 6, 7, 8, 9, 2], [5, 6, 2, 1, 1, 1]])
LENGTHS = torch.tensor([6, 3])
STEPS = torch.tensor([7, 4])  # of frames
AUTOREGRESSIVE = {
    "transformer": (tts_transformer, "TTSTransformerModel"),
    "tacotron": (tacotron2, "Tacotron2Model"),
}


def built(module, name):
    """A small model with statistics of normalisation that are not zero."""
    args = argparse.Namespace(n_frames_per_step=1, output_frame_dim=4, add_postnet=True)
    for width in (
        "encoder_embed_dim decoder_embed_dim decoder_lstm_dim prenet_dim attention_dim "
        "postnet_conv_dim fft_hidden_dim var_pred_hidden_dim encoder_ffn_embed_dim"
    ).split():
        setattr(args, width, 8)
    args.encoder_attention_heads = args.decoder_attention_heads = 2
    args.encoder_transformer_layers = args.decoder_transformer_layers = 1
    args.max_source_positions = args.max_target_positions = 64
    args.pitch_min, args.pitch_max, args.energy_min, args.energy_max = -2, 2, -2, 2
    module.base_architecture(args)
    task = SimpleNamespace(src_dict=dictionary_with(*(f"symbol{number}" for number in range(12))))
    task.get_speaker_embeddings = lambda _args: None
    torch.manual_seed(1)
    model = getattr(module, name).build_model(args, task).double().eval()
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm1d):
            torch.nn.init.normal_(part.bias)
            torch.nn.init.normal_(part.running_mean)
        if isinstance(part, tacotron2.Prenet):
            part.dropout = 0.0  # it drops in evaluation, too
    return model


def same(together, alone):
    """The first rows of a batch are those of the text alone."""
    torch.testing.assert_close(together[: len(alone)], alone, rtol=0, atol=1e-6)


@pytest.fixture(scope="module", params=AUTOREGRESSIVE)
def model(request):
    return built(*AUTOREGRESSIVE[request.param])


def frames():
    torch.manual_seed(2)
    return torch.randn(2, 7, 4, dtype=torch.float64)


def test_frames_of_training(model):
    together = model(SYMBOLS, LENGTHS, frames(), target_lengths=STEPS)
    alone = model(SYMBOLS[1:, :3], LENGTHS[1:], frames()[1:, :4], target_lengths=STEPS[1:])
    for frames_or_ends, others in zip(together[:2], alone[:2]):
        same(frames_or_ends[1], others[0])
    rough = alone[2]["feature_out"]
    same(alone[0], rough + model.decoder.postnet(rough))  # all of them are frames
    longest = model(SYMBOLS[:1], LENGTHS[:1], frames()[:1], target_lengths=STEPS[:1])
    same(together[0][0], longest[0][0])


def test_steps_are_those_of_training(model):
    expected = model(SYMBOLS, LENGTHS, frames(), target_lengths=torch.tensor([7, 7]))[2]
    encoded = model.forward_encoder(SYMBOLS, LENGTHS)
    state = {}
    for step in range(7):
        _, _, more = model.forward_decoder(
            frames()[:, : step + 1],
            encoder_out=encoded,
            incremental_state=state,
            target_lengths=torch.full((2,), step + 1),
        )
        for row in (0, 1):
            same(more["feature_out"][row, 0], expected["feature_out"][row, step])


def test_generated_frames(model):
    config = SimpleNamespace(global_cmvn_stats_npz=None)
    generator = AutoRegressiveSpeechGenerator(model, None, config, max_iter=9)
    ends = {6: 7, 3: 4}  # {symbols: step}

    end = model.decoder.eos_proj

    def generated(symbols, lengths, generate=AutoRegressiveSpeechGenerator.generate):
        steps = itertools.count(1)

        def forward(features):
            """Logits that a text ends."""
            step = next(steps)
            is_over = torch.tensor([step >= ends[length] for length in lengths.tolist()])
            return (is_over.double() * 20 - 10).view(*features.shape[:-1], 1)

        end.forward = forward
        try:
            sample = {"net_input": {"src_tokens": symbols, "src_lengths": lengths}}
            return generate(generator, model, {**sample, "speaker": None})
        finally:
            del end.forward

    together = generated(SYMBOLS, LENGTHS)
    alone = generated(SYMBOLS[1:, :3], LENGTHS[1:])
    assert [len(text["feature"]) for text in together] == [7, 4]
    same(together[1]["feature"], alone[0]["feature"])
    stock = inspect.unwrap(AutoRegressiveSpeechGenerator.generate)
    same(alone[0]["feature"], generated(SYMBOLS[1:, :3], LENGTHS[1:], stock)[0]["feature"])
    same(together[0]["feature"], generated(SYMBOLS[:1], LENGTHS[:1])[0]["feature"])
    assert "forward" not in vars(model.decoder)
    assert "forward" not in vars(model.decoder.postnet)


def test_fastspeech():
    encoder = built(fastspeech2, "FastSpeech2Model").encoder
    durations = torch.tensor([[2, 3, 1, 2, 2, 1], [3, 2, 1, 0, 0, 0]])
    together = encoder(SYMBOLS, src_lengths=LENGTHS, durations=durations)
    alone = encoder(SYMBOLS[1:, :3], src_lengths=LENGTHS[1:], durations=durations[1:, :3])
    assert together[2].tolist() == [11, 6]
    for part in (0, 1):  # frames, and what the postnet makes of them
        same(together[part][1], alone[part][0])
    same(alone[1], alone[0] + encoder.postnet(alone[0]))
    for part in (3, 4, 5):  # durations, pitches, energies
        same(together[part][1], alone[part][0])
    assert encoder.postnet is not None
