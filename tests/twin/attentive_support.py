"""Small recognisers and captioners with random weights, in double precision, and their inputs.

Legend: B sentences, F frames, D features, T target positions.
"""

import torch

from fairseq_ext.twin.captions import modules as caption_modules
from fairseq_ext.twin.speech import modules as speech_modules
from properties import collate, random_sentences, shift

PAD, END, WORDS = 1, 2, 9
FEATURES = 3
SPEECH = speech_modules.SpeechSize(
    encoder_hidden_size=2,
    embed_dim=3,
    hidden_size=4,
    attention_size=5,
    readout_size=3,
    conv_filters=2,
    conv_width=3,
    time_reduction=(1, 2),
    dropout=0.0,
)
CAPTION = caption_modules.AttentiveSize(
    feature_size=FEATURES, embed_dim=2, hidden_size=4, dropout=0.0, attention_size=5
)


@torch.no_grad()
def randomise(module, seed=0):
    """Weights far from their start, in double precision; what is not trained stays.

    Those of the attention are large, so that it differs from word to word.
    """
    generator = torch.Generator().manual_seed(seed)
    module.double()
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            of_attention = any(part in name for part in ("energy", "filters", "location", "query"))
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_((2.0 if of_attention else 0.6) * noise)
    return module


def speech_encoder(size=SPEECH, seed=0):
    return randomise(speech_modules.SpeechEncoder(size, FEATURES), seed)


def speech_decoder(size=SPEECH, seed=1):
    return randomise(speech_modules.SpeechDecoder(size, WORDS, PAD), seed)


def plain_decoder(seed=2):
    return randomise(caption_modules.PlainDecoder(CAPTION, WORDS, PAD), seed)


def caption_decoder(seed=3):
    return randomise(caption_modules.CaptionDecoder(CAPTION, WORDS, PAD), seed)


def batch_of_rows(lengths, width, seed=4, junk=50.0):
    """Rows of vectors (B, S, width) and padding (B, S); what stands in the padding is large."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(len(lengths), max(lengths), width, generator=generator, dtype=torch.float64)
    padding = torch.arange(max(lengths)) >= torch.tensor(lengths).unsqueeze(1)
    return rows.masked_fill(padding.unsqueeze(2), junk).requires_grad_(), padding


def batch_of_words(lengths, seed=5):
    """Sentences, the decoder's inputs and its targets (B, T)."""
    sentences = random_sentences(lengths, WORDS, END, seed=seed)
    return sentences, collate(shift(sentences), PAD), collate(sentences, PAD)


def arrays(module):
    """{name: NumPy array}, the module's own memory."""
    return {name: parameter.detach().numpy() for name, parameter in module.named_parameters()}


def likelihood(logits, target):
    """Minus the log-likelihood of (B, T), summed; padding does not count."""
    picked = logits.log_softmax(dim=2).gather(2, target.unsqueeze(2)).squeeze(2)
    return -picked[target.ne(PAD)].sum()
