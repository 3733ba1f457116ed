"""Every place of dropout in Duo, and other lines that no value or gradient of a test shows.

Legend: B sentences, S source positions, T target positions, D model, F feed-forward, N streams.
"""

import struct

import pytest
import torch
from common.dropouts import record
from duo.support import ROWS
from duo.test_classifier_modules import make
from torch import nn
from toy_sentences import END, PAD

from fairseq_ext.duo import embedding_files
from fairseq_ext.duo.classifier import modules as classifier_modules
from fairseq_ext.duo.transformer import layer
from fairseq_ext.duo.transformer.layer import DuoSize
from fairseq_ext.duo.transformer.modules import DuoDecoder, DuoEmbedding, DuoEncoder

B, S, T, D, F, DEPTH = 2, 4, 3, 8, 12, 2
RATES = {"dropout": 0.1, "attention_dropout": 0.2, "activation_dropout": 0.3}
SOURCE = torch.tensor([[4, 5, 6, END], [7, END, PAD, PAD]])
PREVIOUS = torch.tensor([[END, 4, 5], [END, 8, PAD]])


def sides(row):
    """(encoder, decoder) of a row of Table 6, in training mode."""
    streams, share_kv, norm, fusion = ROWS[row]
    size = DuoSize(D, F, 2, DEPTH, *RATES.values(), streams, share_kv, norm, fusion)
    torch.manual_seed(1)
    return [
        kind(size, DuoEmbedding([nn.Embedding(11, D, PAD) for _ in range(streams)], D, 0.1)).train()
        for kind in (DuoEncoder, DuoDecoder)
    ]


def expected(length, attentions, streams):
    """Calls of one side: embeddings; in each layer the attentions, then F and D of each stream."""
    states = ((B, length, D), 0.1, True)
    of_layer = [states] * attentions * streams
    of_layer += [((B, length, F), 0.3, True), states] * streams
    return [states] * streams + of_layer * DEPTH


@pytest.mark.parametrize("row", ["transformer", "fusion"])
def test_every_place(monkeypatch, row):
    encoder, decoder = sides(row)
    streams = ROWS[row][0]
    calls, rates, real = record(monkeypatch), [], layer.attend

    def spy(query, key, value, visible, dropout, *more):
        rates.append(dropout)
        return real(query, key, value, visible, dropout, *more)

    monkeypatch.setattr(layer, "attend", spy)
    context, padding = encoder.encode(SOURCE)
    assert calls == expected(S, 1, streams)
    calls.clear()
    decoder.decode(PREVIOUS, context, padding)
    assert calls == expected(T, 2, streams)
    assert rates == [0.2] * 3 * DEPTH * streams
    calls.clear()
    rates.clear()
    encoder.eval().encode(SOURCE)
    decoder.eval().decode(PREVIOUS, context, padding)
    assert not any(training for *_, training in calls) and not any(rates)


@pytest.mark.parametrize("method", ["duo", "single", "average", "concatenation", "mean-mlp"])
def test_classifier(monkeypatch, method):
    """On [a_P ; a_S] and on e, or on the mean and the hidden layer."""
    model, _ = make(method)
    model.dropout = 0.25
    if method != "mean-mlp":
        model.sentence.dropout = 0.5
    calls = record(monkeypatch)
    first = model.inner if method == "mean-mlp" else model.sentence.w_o
    places = [(1, first.in_features), (1, first.out_features)]
    rates = (0.25, 0.25) if method == "mean-mlp" else (0.5, 0.25)
    model.train()(torch.tensor([[4, 5]]))
    assert calls == [(shape, rate, True) for shape, rate in zip(places, rates)]
    calls.clear()
    model.eval()(torch.tensor([[4, 5]]))
    assert [training for *_, training in calls] == [False, False]


def test_both_places_of_the_classifier_have_its_rate():
    model = classifier_modules.Classifier(
        nn.Embedding(7, 3, PAD), nn.Embedding(7, 4, PAD), 5, 2, dropout=0.3
    )
    assert (model.dropout, model.sentence.dropout) == (0.3, 0.3)


def test_attention_is_the_mean_of_both_streams(monkeypatch):
    """Of the last layer, over streams and heads: (B, T, S)."""
    encoder, decoder = (side.eval() for side in sides("fusion"))
    context, padding = encoder.encode(SOURCE)
    weights, real = [], layer.attend

    def spy(*arguments):
        mixed, stream_weights = real(*arguments)
        weights.append(stream_weights)
        return mixed, stream_weights

    monkeypatch.setattr(layer, "attend", spy)
    _, attention = decoder.decode(PREVIOUS, context, padding, need_weights=True)
    of_streams = [
        stream_weights.mean(dim=1) for stream_weights in weights if stream_weights is not None
    ]
    assert len(of_streams) == 2  # the last layer's alone
    assert not torch.allclose(*of_streams, atol=1e-4)
    torch.testing.assert_close(attention, (of_streams[0] + of_streams[1]) / 2)


def test_the_end_of_a_line_is_not_given_to_the_model(build, tmp_path):
    """Neither in data nor in lines that are typed."""
    (tmp_path / "dict.text.txt").write_text("a 1\nb 1\n", encoding="utf-8")
    (tmp_path / "dict.label.txt").write_text("x 1\ny 1\n", encoding="utf-8")
    words = ("-s", "text", "-t", "label")
    _, task, _ = build("duo_classifier", task="text_classification", languages=words, data=tmp_path)
    lines = [torch.tensor([4, 5, END]), torch.tensor([5, END])]
    dataset = task.build_dataset_for_inference(lines, [3, 2])
    batch = dataset.collater([dataset[0], dataset[1]])["net_input"]
    assert batch["src_tokens"].tolist() == [[4, 5], [5, PAD]]
    assert batch["src_lengths"].tolist() == [2, 1]


@pytest.mark.parametrize("name", ["v.txt", "v.vec", "v.bin"])
def test_the_first_vector_of_a_word_counts(name, tmp_path):
    rows = [("a", [1.0, 2.0]), ("b", [3.0, 4.0]), ("a", [5.0, 6.0])]
    if name.endswith("bin"):
        parts = [word.encode() + b" " + struct.pack("<2f", *vector) for word, vector in rows]
        data = b"3 2\n" + b"\n".join(parts)
    else:
        header = "3 2\n" * name.endswith("vec")
        data = (header + "".join(f"{word} {x} {y}\n" for word, (x, y) in rows)).encode()
    (tmp_path / name).write_bytes(data)
    vectors, _ = embedding_files.read(str(tmp_path / name), ["a", "b"])
    assert vectors["a"].tolist() == [1, 2] and vectors["b"].tolist() == [3, 4]


def test_attention_starts_with_the_deviation_of_a_row():
    """w ~ N(0, 1 / d): the scores w S^T have the size of a vector's numbers."""
    torch.manual_seed(1)
    sentence = classifier_modules.DuoSentence(4000, 2000, 3, "softmax", 0.0)
    for weight, width in ((sentence.w_s, 4000), (sentence.w_p, 2000)):
        assert weight.std().item() == pytest.approx(width**-0.5, rel=0.1)


def test_softmax_of_half_precision_is_single(monkeypatch):
    asked, real = [], torch.Tensor.softmax

    def spy(self, dim, dtype=None):
        asked.append(dtype)
        return real(self, dim=dim, dtype=dtype)

    monkeypatch.setattr(torch.Tensor, "softmax", spy)
    for dtype in (torch.bfloat16, torch.float64):
        keys, padding = torch.randn(2, 3, 4, dtype=dtype), torch.zeros(2, 3, dtype=torch.bool)
        attention = classifier_modules.duo_attention(keys[0, 0], keys, keys, padding, "softmax")
        assert attention.dtype == dtype
    assert asked == [torch.float32, torch.float64]
