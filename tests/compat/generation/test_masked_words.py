"""cmlm_transformer: no mask is left in a translation, and words alone are masked."""

import argparse
from types import SimpleNamespace

import pytest
import torch
from common.words import dictionary_with
from fairseq.iterative_refinement_generator import IterativeRefinementGenerator
from fairseq.models.nat import cmlm_transformer

SOURCES = torch.tensor([[0, 5, 6, 7, 2], [1, 1, 0, 9, 2]])
SAMPLE = {"net_input": {"src_tokens": SOURCES, "src_lengths": torch.tensor([5, 3])}}


@pytest.fixture
def model():
    """Untrained; every translation has four words."""
    words = dictionary_with(*(f"word{number}" for number in range(12)))
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    args = argparse.Namespace(encoder_layers=1, decoder_layers=1, encoder_embed_dim=8)
    args.encoder_ffn_embed_dim, args.label_smoothing = 8, 0.0
    args.encoder_attention_heads = args.decoder_attention_heads = 2
    args.max_source_positions = args.max_target_positions = 20
    cmlm_transformer.cmlm_base_architecture(args)
    torch.manual_seed(3)
    model = cmlm_transformer.CMLMNATransformerModel.build_model(args, task).eval()
    model.decoder.forward_length_prediction = lambda *_args, **_options: torch.tensor([6, 6])
    return model


def test_refinement_goes_on_to_the_last_step(model):
    """With --iter-decode-force-max-iter it always did."""
    words = model.decoder.dictionary
    early, last = (
        IterativeRefinementGenerator(words, max_iter=10, adaptive=adaptive)
        for adaptive in (True, False)
    )
    expected = last.generate([model], SAMPLE)
    for hypotheses, others in zip(early.generate([model], SAMPLE), expected):
        assert hypotheses[0]["tokens"].tolist() == others[0]["tokens"].tolist()
    assert early.adaptive  # other models end where two steps agree


def test_certain_words_are_masked_before_the_end_of_the_sentence():
    scores = torch.zeros(3, 12)  # each word is certain
    scores[1, 2] = -1.0
    is_token = torch.arange(12) < torch.tensor([[12], [6], [2]])
    masked = cmlm_transformer._skeptical_unmasking(scores, is_token, 0.7)
    assert masked.sum(1).tolist() == [7, 2, 0]
    assert masked[1, 2]
    assert not masked[:, 0].any()
    assert not (masked & ~is_token).any()
    assert not masked[0, 11]
    assert not masked[1, 5]
