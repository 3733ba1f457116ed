"""The Duo classifier and its baselines against the NumPy reference; padding; parameters; labels."""

import numpy as np
import pytest
import torch
from common.words import dictionary_with
from torch import nn
from toy_sentences import PAD, rows

from fairseq_ext.common import labels
from fairseq_ext.duo.classifier.modules import ATTENTIONS, METHODS, Classifier, duo_attention
from reference import duo as reference
from reference import gradient

WORDS, WIDTHS, OUT, LABELS = 11, (4, 6), 5, 3
NAMES = {
    "s.weight": "S",
    "p.weight": "P",
    "sentence.w_s": "w_s",
    "sentence.w_p": "w_p",
    "sentence.w_o.weight": "w_o",
    "w_y.weight": "w_y",
    "inner.weight": "inner.weight",
    "inner.bias": "inner.bias",
    "outer.weight": "outer.weight",
    "outer.bias": "outer.bias",
}
TEXTS = [[7], [4, 9, 4, 10], [5, 6]]


def make(method, kind="softmax", words=WORDS, widths=WIDTHS, out=OUT, count=LABELS, two=True):
    """A float64 classifier with random numbers, and the same numbers for the reference."""
    torch.manual_seed(METHODS.index(method) + 10 * two)
    s, p = (nn.Embedding(words, width, PAD) for width in widths)
    p = p if two and method != "single" else None
    model = Classifier(s, p, out, count, method, kind).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    params = {NAMES[name]: tensor.detach().numpy() for name, tensor in model.named_parameters()}
    return model, params


def some_methods():
    return [(method, kind, True) for method in METHODS[:-1] for kind in ATTENTIONS] + [
        ("mean-mlp", "softmax", True),
        ("mean-mlp", "softmax", False),
    ]


@pytest.mark.parametrize("method, kind, two", some_methods())
def test_classifier_is_eq_1_to_3(method, kind, two):
    """Log probabilities of a padded batch, and gradients of a label's."""
    model, params = make(method, kind, two=two)
    linear = kind == "linear"

    def expected(text):
        return reference.classify(text, params, method, linear)

    log_probs = model(rows(TEXTS)).log_softmax(dim=1)
    for row, text in zip(log_probs, TEXTS):
        np.testing.assert_allclose(row.detach().numpy(), expected(text), atol=1e-9)
    log_probs[:, 1].sum().backward()
    rng = np.random.default_rng(0)
    for name, parameter in model.named_parameters():
        array = params[NAMES[name]]  # the same memory
        index = (4, 2) if NAMES[name] in "SP" else gradient.random_entries(array, 1, rng)[0]
        slope = gradient.central_difference(
            lambda: sum(expected(text)[1] for text in TEXTS), array, index
        )
        assert parameter.grad[index].item() == pytest.approx(slope, rel=1e-5, abs=1e-8), name


@pytest.mark.parametrize("kind", ATTENTIONS)
@pytest.mark.parametrize("method", METHODS)
def test_padding_contributes_nothing(method, kind):
    """Alone and with more padding, on either side, even if its vectors were not zero."""
    model, _ = make(method, kind)
    with torch.no_grad():
        alone = [model(torch.tensor([text]))[0] for text in TEXTS]
        for left in (False, True):
            wide = rows([*TEXTS, [4] * 9], left=left)
            for logits, expected in zip(model(wide), alone):
                torch.testing.assert_close(logits, expected)


def test_unmasked_linear_attention_would_be_noticed():
    """The broken twin: without the mask the vector of padding adds to the sum."""
    keys, values = torch.randn(1, 3, 4), torch.randn(1, 3, 6)
    padding = torch.tensor([[False, False, True]])
    w = torch.randn(4)
    right = duo_attention(w, keys, values, padding, "linear")
    torch.testing.assert_close(
        right, duo_attention(w, keys[:, :2], values[:, :2], padding[:, :2], "linear")
    )
    wrong = duo_attention(w, keys, values, torch.zeros_like(padding), "linear")
    assert (right - wrong).abs().max() > 1e-3


@pytest.mark.parametrize(
    "method, expected",
    [
        ("duo", 300 + 300 + 600 * 600 + 600 * 20),
        ("single", 300 + 300 + 600 * 600 + 600 * 20),
        ("average", 300 + 300 + 600 * 600 + 600 * 20),
        ("concatenation", 600 + 600 + 1200 * 600 + 600 * 20),
        ("mean-mlp", 600 * 600 + 600 + 600 * 20 + 20),
    ],
)
def test_parameters_besides_embeddings(method, expected):
    """Sec. 3.1.4: 372,600 for 300 + 300, d_ff 600 and 20 labels, without any bias."""
    model, _ = make(method, widths=(300, 300), out=600, count=20)
    named = model.named_parameters()
    count = sum(
        parameter.numel() for name, parameter in named if name not in ("s.weight", "p.weight")
    )
    assert count == expected
    assert method != "duo" or count == 372_600


@pytest.mark.parametrize(
    "change, message",
    [
        ({"method": "sum"}, "--meta-embedding sum: must be one of duo"),
        ({"attention": "cubic"}, "--duo-attention cubic: must be one of softmax"),
        ({"out_dim": 0}, "--ffn-embed-dim 0"),
        ({"dropout": 1.0}, "--dropout 1.0"),
        ({"p": None}, "--meta-embedding duo: takes two embeddings"),
    ],
)
def test_bad_arguments_name_their_option(change, message):
    s, p = (nn.Embedding(WORDS, width, PAD) for width in WIDTHS)
    with pytest.raises(ValueError, match=message):
        Classifier(**{"s": s, "p": p, "out_dim": 5, "labels": 2, **change})


def test_labels_are_the_words_of_the_dictionary():
    dictionary = dictionary_with("neg", "pos")
    dictionary.finalize(padding_factor=8)
    assert len(dictionary) == 8 and labels.labels(dictionary) == ["neg", "pos"]
    target = torch.tensor([[5, 2], [4, 2]])
    assert labels.numbers(target, dictionary).tolist() == [1, 0]
    assert dictionary.string(labels.entry(1, dictionary)) == "pos"
