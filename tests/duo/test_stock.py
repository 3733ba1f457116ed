"""With all four additions off, duo_transformer is fairseq's transformer: the same function."""

import argparse

import pytest
import torch
from streams.directions import END, FEWEST, PAD, randomise

from properties import collate, random_sentences, shift

OFF = ["--duo-meta-embeddings", "off", "--duo-share-kv", "off"]
OFF += ["--duo-norm", "off", "--duo-fusion", "off"]
STOCK = ["--share-decoder-input-output-embed", "--dropout", 0]
for _side in ("encoder", "decoder"):
    STOCK += [f"--{_side}-embed-dim", 12, f"--{_side}-ffn-embed-dim", 20]
    STOCK += [f"--{_side}-attention-heads", 3, f"--{_side}-layers", 2]


def ours(name):
    """The parameter of duo_transformer that holds a stock one, and the rows of it."""
    for old, new in (
        ("layers.", "module.layers."),
        ("embed_tokens", "module.embedding.tables.0"),
        ("self_attn_layer_norm", "self_attention_norm.norms.0"),
        ("encoder_attn_layer_norm", "context_attention_norm.norms.0"),
        ("self_attn.", "self_attention."),
        ("encoder_attn.", "context_attention."),
        ("q_proj", "query.0"),
        ("out_proj", "output.0"),
        ("fc1", "feed_forward_in"),
        ("fc2", "feed_forward_out"),
        ("final_layer_norm", "feed_forward_norm"),
    ):
        name = name.replace(old, new)
    for number, role in enumerate(("k_proj", "v_proj")):
        if role in name:
            return name.replace(role, "key_value.0"), slice(12 * number, 12 * (number + 1))
    return name, slice(None)


@pytest.fixture(scope="module")
def twins(build, duo):
    """(task, ours, stock) with the same random weights."""
    _, task, model = duo(*OFF, "--dropout", 0)
    _, _, stock = build("transformer", *STOCK)
    randomise(stock)
    named, left = dict(model.named_parameters()), {id(tensor) for tensor in model.parameters()}
    with torch.no_grad():
        for name, parameter in stock.named_parameters():
            place, part = ours(name)
            named[place][part] = parameter
            left.discard(id(named[place]))
    assert not left
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == sum(parameter.numel() for parameter in stock.parameters())
    return task, model.eval(), stock.eval()


def batch(source_lengths, target_lengths):
    sources = random_sentences(source_lengths, FEWEST, END, seed=1)
    targets = shift(random_sentences(target_lengths, FEWEST, END, seed=2))
    source = collate(sources, PAD, left=True)
    return source, source.ne(PAD).sum(dim=1), collate(targets, PAD)


def test_same_scores_and_attention(twins):
    _, model, stock = twins
    source, lengths, prev = batch([5, 1, 3], [2, 4, 1])
    with torch.no_grad():
        logits, extra = model(source, lengths, prev)
        expected, stock_extra = stock(source, lengths, prev)
        real = prev != PAD
        assert expected[real].std() > 0.1
        torch.testing.assert_close(logits[real], expected[real], rtol=0, atol=2e-5)
        torch.testing.assert_close(
            extra["attn"][0][real], stock_extra["attn"][0][real], rtol=0, atol=1e-5
        )


def test_another_weight_would_be_noticed(twins):
    """The broken twin of this file: one number moved in one sub-layer."""
    _, model, stock = twins
    source, lengths, prev = batch([5], [4])
    bias = stock.decoder.layers[0].encoder_attn.v_proj.bias
    with torch.no_grad():
        bias[0] += 0.5
        difference = model(source, lengths, prev)[0] - stock(source, lengths, prev)[0]
        bias[0] -= 0.5
    assert difference.abs().max() > 1e-4


def test_same_n_best_of_beam_search(twins):
    """Sentences of several lengths, so that some leave the batch before others."""
    task, *models = twins
    source, lengths, _ = batch([7, 1, 4], [1])
    sample = {"id": torch.arange(3), "net_input": {"src_tokens": source, "src_lengths": lengths}}
    arguments = argparse.Namespace(beam=4, nbest=4, max_len_b=8)
    lists, expected = (
        task.build_generator([model], arguments).generate([model], sample) for model in models
    )
    for nbest, stock_nbest in zip(lists, expected):
        assert [h["tokens"].tolist() for h in nbest] == [h["tokens"].tolist() for h in stock_nbest]
        for hypothesis, stock_hypothesis in zip(nbest, stock_nbest):
            torch.testing.assert_close(
                hypothesis["score"], stock_hypothesis["score"], rtol=0, atol=1e-5
            )
