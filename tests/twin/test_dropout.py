"""Every place of dropout in the recogniser of speech and in both models of captions.

Legend: B sentences, F frames, S encoded positions, T steps, P positions of an image.
"""

import torch
from common.dropouts import record

from fairseq_ext.twin.captions.modules import AttentiveSize, CaptionDecoder, PlainDecoder
from fairseq_ext.twin.speech.modules import SpeechDecoder, SpeechEncoder, SpeechSize

RATE = 0.25
SPEECH = SpeechSize(3, 4, 5, 6, 7, 2, 3, (1, 2), RATE)
TOKENS = torch.tensor([[2, 4, 5], [2, 6, 1]])


def check(monkeypatch, module, call, shapes):
    calls = record(monkeypatch)
    module.train()
    call()
    assert calls == [(shape, RATE, True) for shape in shapes]
    calls.clear()
    module.eval()
    call()
    assert [training for *_, training in calls] == [False] * len(shapes)


def test_layers_of_the_encoder(monkeypatch):
    """Of both layers, the upper one after time reduction: (B, S, 2 G)."""
    encoder, frames = SpeechEncoder(SPEECH, 9), torch.randn(2, 4, 9)
    padding = torch.tensor([[False] * 4, [False, False, True, True]])
    shapes = [(2, 4, 6), (2, 2, 6)]
    check(monkeypatch, encoder, lambda: encoder(frames, padding), shapes)


def test_characters(monkeypatch):
    """Embeddings (B, T, E) and readout (B, T, O), for whole sentences and by steps."""
    decoder, source = SpeechDecoder(SPEECH, 9, 1), torch.randn(2, 4, 6)
    padding = torch.zeros(2, 4, dtype=torch.bool)
    whole, step = [(2, 3, 4), (2, 3, 7)], [(2, 1, 4), (2, 1, 7)]
    for call, shapes in (
        (lambda: decoder.unroll(TOKENS, source, padding), whole),
        (lambda: decoder.decode(TOKENS, source, padding, {}), step),
    ):
        check(monkeypatch, decoder, call, shapes)


def test_captions(monkeypatch):
    """Of Show and Tell the image and the words, and h; of the attentive one words and readout."""
    image, padding = torch.randn(2, 3, 8), torch.zeros(2, 3, dtype=torch.bool)
    size = AttentiveSize(8, 4, 5, RATE, 6)
    plain, attentive = PlainDecoder(size, 9, 1), CaptionDecoder(size, 9, 1)
    for decoder, shapes in (
        (plain, [(2, 4, 4), (2, 3, 5)]),
        (attentive, [(2, 3, 4), (2, 3, 4)]),
    ):
        call = lambda decoder=decoder: decoder.unroll(TOKENS, image, padding)  # noqa: E731
        check(monkeypatch, decoder, call, shapes)
    cache = {}
    calls = record(monkeypatch)
    plain.train()
    for steps in (1, 2):
        plain.decode(TOKENS[:, :steps], image, padding, cache)
    assert [shape for shape, *_ in calls] == [(2, 2, 4), (2, 1, 5), (2, 1, 4), (2, 1, 5)]
