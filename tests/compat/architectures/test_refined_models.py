"""Models that write all words at once: copies of the source, noise, and labels."""

import argparse
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from common.words import dictionary_with
from fairseq.models.nat import insertion_transformer
from fairseq.models.nat import nonautoregressive_transformer as refined
from fairseq.models.nat.iterative_nonautoregressive_transformer import _sequential_poisoning

BOS, PAD, EOS, UNK = range(4)


def copying_model(seed=1):
    words = dictionary_with(*(f"word{number}" for number in range(12)))
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    args = argparse.Namespace(encoder_layers=1, decoder_layers=1, encoder_embed_dim=8)
    args.encoder_ffn_embed_dim, args.src_embedding_copy = 8, True
    args.encoder_attention_heads = args.decoder_attention_heads = 2
    args.max_source_positions = args.max_target_positions = 20
    refined.base_architecture(args)
    torch.manual_seed(seed)
    return refined.NATransformerModel.build_model(args, task).eval()


def test_copies_do_not_depend_on_padding():
    model = copying_model()
    target = torch.tensor([[BOS, UNK, UNK, UNK, EOS], [BOS, UNK, UNK, EOS, PAD]])

    def translated(source, words=target):
        encoded = model.encoder(source, src_lengths=source.ne(PAD).sum(1))
        return model.decoder(normalize=True, encoder_out=encoded, prev_output_tokens=words)

    left = torch.tensor([[BOS, 5, 6, 7, EOS], [PAD, PAD, BOS, 9, EOS]])
    right = torch.tensor([[BOS, 5, 6, 7, EOS], [BOS, 9, EOS, PAD, PAD]])
    alone = translated(left[1:, 2:], target[1:, :4])[0]
    for source in (left, right):
        together = translated(source)
        torch.testing.assert_close(together[1, :4], alone)
        torch.testing.assert_close(together[0], translated(source[:1], target[:1])[0])
    wider = torch.nn.functional.pad(target, (0, 3), value=PAD)
    torch.testing.assert_close(translated(left, wider)[:, :5], translated(left))


def test_models_of_an_ensemble_copy_their_own_words():
    models = [copying_model(1), copying_model(2)]
    source = torch.tensor([[BOS, 5, 6, 7, EOS], [PAD, PAD, BOS, 9, EOS]])
    target = torch.tensor([[BOS, UNK, UNK, UNK, EOS], [BOS, UNK, UNK, EOS, PAD]])
    alone = []
    for model in models:
        encoded = model.encoder(source, src_lengths=source.ne(PAD).sum(1))
        alone.append(model.decoder(normalize=True, encoder_out=encoded, prev_output_tokens=target))
    models[0].enable_ensemble(models)
    encoded = models[0].forward_encoder([source, source.ne(PAD).sum(1)])
    scores = models[0].decoder(normalize=True, encoder_out=encoded, prev_output_tokens=target)
    expected = torch.stack(alone).exp().mean(0).log()
    torch.testing.assert_close(scores, expected)


def test_noise_leaves_special_symbols_where_they_are():
    torch.manual_seed(1)
    words = torch.tensor([[BOS, 5, UNK, 7, 8, EOS, PAD, PAD]]).repeat(500, 1)
    before = words.clone()
    noised = _sequential_poisoning(words, 16, 0.33, BOS, EOS, PAD)
    assert torch.equal(words, before)
    assert torch.equal(noised[:, [0, 5, 6, 7]], words[:, [0, 5, 6, 7]])
    changed = noised.ne(words).float().mean(0)
    assert (changed[1:5] > 0.1).all()  # <unk> is a word, and what is beside it changes, too
    assert not (noised[:, 1:5] == EOS).any()


def test_weights_of_insertions():
    inputs = torch.tensor([[BOS, EOS, PAD], [BOS, 9, EOS]])
    outputs = torch.tensor([[BOS, 5, 5, 6, EOS], [BOS, 9, EOS, PAD, PAD]])
    labels = insertion_transformer._get_ins_targets(inputs, outputs, PAD, UNK, 16)
    expected = torch.zeros(2, 2, 16)
    expected[0, 0, 5], expected[0, 0, 6] = 2 / 3, 1 / 3
    expected[1, :, PAD] = 1  # nothing is to be inserted
    torch.testing.assert_close(labels, expected)


@pytest.mark.parametrize("length", [1, 2, 5, 48, 49, 60])
@pytest.mark.parametrize("tau", [0.5, 1.0, 3.0])
def test_words_in_the_middle_of_a_span_have_the_most_weight(length, tau):
    distances = np.abs(np.arange(length) - (length - 1) / 2)
    expected = np.exp(-distances / tau) / np.exp(-distances / tau).sum()
    weights = [insertion_transformer.neg_scorer(place, length, tau) for place in range(length)]
    np.testing.assert_allclose(weights, expected)
