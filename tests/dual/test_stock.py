"""The primal direction is a stock Transformer with the same weights: in scores and in search.

Both models are filled here from one set of random arrays, without the exporter.
"""

import argparse
import copy
import functools

import numpy as np
import pytest
import torch
from dual.support import fill, fill_stock
from toy_sentences import END, PAD, random_sentence

from properties import collate
from reference import dual as reference

SHAPES = {
    "post-norm": reference.Shape(12, 20, 3, 2),
    "pre-norm": reference.Shape(12, 20, 3, 2, normalize_before=True),
}


@pytest.fixture(scope="module")
def separate_dictionaries(toy_corpus, run, tmp_path_factory):
    """The pair xx-yy with a dictionary for each language."""
    folder = tmp_path_factory.mktemp("separate") / "bin"
    command = ["fairseq-preprocess", "-s", "xx", "-t", "yy", "--destdir", folder]
    for split in ("train", "valid"):
        command += [f"--{split}pref", toy_corpus.text / split]
    run(*command)
    return folder


class Twins:
    """A dual model and a stock transformer of its direction xx -> yy, with equal weights."""

    def __init__(self, shape, dual, stock, shared):
        self.task, model = dual
        self.stock_task, self.stock = stock
        rng = np.random.default_rng(17)
        sizes = {lang: len(self.task.dictionaries[lang]) for lang in ("xx", "yy")}
        params = {
            lang: reference.random_parameters(shape, size, rng) for lang, size in sizes.items()
        }
        if shared:
            params["yy"]["embedding"] = params["yy"]["softmax"] = params["xx"]["embedding"]
        for lang in ("xx", "yy"):
            # as after training: a softmax tied to the embedding moves the row of padding as well
            fill(model.components[lang], params[lang], shape)
        fill_stock(self.stock, params["xx"], params["yy"], shape)
        self.model, self.dual = model, model.direction("xx-yy")
        self.dual.eval(), self.stock.eval()
        self.rng, self.sizes = rng, sizes

    def batch(self, source_lengths, target_lengths):
        """(source padded on the left, lengths, decoder's inputs)."""

        def sentences(lang, lengths):
            return [
                torch.tensor(random_sentence(self.rng, length, self.sizes[lang]))
                for length in lengths
            ]

        source = collate(sentences("xx", source_lengths), PAD, left=True)
        target = collate(sentences("yy", target_lengths), PAD)
        prev = torch.cat([torch.full((len(target), 1), END), target[:, :-1]], dim=1)
        prev[prev == END] = PAD
        prev[:, 0] = END
        return source, torch.tensor(source_lengths), prev


@pytest.fixture(scope="module", params=["shared", "separate"])
def make_twins(request, dual_task, stock_task, toy_corpus, separate_dictionaries):
    shared = request.param == "shared"
    data = toy_corpus.two if shared else separate_dictionaries

    @functools.lru_cache(maxsize=None)
    def make(shape):
        norm = ["--normalize-before"] if shape.normalize_before else []
        ours = ["--share-all-embeddings"] if shared else []
        theirs = ours or ["--share-decoder-input-output-embed"]
        dual = dual_task(*ours, *norm, "--dropout", 0, data=data)
        return Twins(shape, dual, stock_task(shape, *theirs, data=data), shared)

    return make


@pytest.fixture(params=SHAPES)
def twins(request, make_twins):
    return make_twins(SHAPES[request.param])


@pytest.mark.parametrize("lengths", [([1], [1]), ([6], [3]), ([5, 2, 3], [1, 4, 3])])
def test_same_scores(twins, lengths):
    source, source_lengths, prev = twins.batch(*lengths)
    with torch.no_grad():
        ours, _ = twins.dual(source, source_lengths, prev)
        theirs, _ = twins.stock(source, source_lengths, prev)
    real = prev != PAD
    assert (ours - theirs)[real].abs().max() < 1e-5
    assert theirs[real].std() > 0.1


def generate(task, model, source, lengths, **arguments):
    options = argparse.Namespace(**arguments)
    generator = task.build_generator([model], options)
    sample = {"id": torch.arange(len(source)), "net_input": {}}
    sample["net_input"].update(src_tokens=source, src_lengths=lengths)
    return generator.generate([model], sample)


@pytest.mark.parametrize(
    "arguments",
    [
        {"beam": 1, "max_len_b": 40},
        {"beam": 5, "nbest": 5, "max_len_b": 12},
        {"beam": 4, "lenpen": 0.6, "max_len_b": 8, "unkpen": 1.0},
        {"beam": 4, "diverse_beam_groups": 2, "diverse_beam_strength": 0.5, "max_len_b": 8},
    ],
    ids=["greedy", "beam", "length-penalty", "diverse"],
)
def test_same_n_best_of_beam_search(twins, arguments):
    """Sentences of several lengths, so that some leave the batch before others."""
    source, lengths, _ = twins.batch([7, 1, 4, 2, 5], [1])
    twins.task.pair = "xx-yy"
    ours = generate(twins.task, twins.model, source, lengths, **arguments)
    theirs = generate(twins.stock_task, twins.stock, source, lengths, **arguments)
    assert len(ours) == len(theirs) == 5
    for our_list, their_list in zip(ours, theirs):
        assert [h["tokens"].tolist() for h in our_list] == [
            h["tokens"].tolist() for h in their_list
        ]
        for our, their in zip(our_list, their_list):
            torch.testing.assert_close(our["score"], their["score"], rtol=0, atol=1e-5)
            torch.testing.assert_close(
                our["positional_scores"], their["positional_scores"], rtol=0, atol=2e-5
            )


def test_same_attention(twins):
    """What --print-alignment reads: the last block's attention, averaged over heads."""
    source, lengths, prev = twins.batch([5, 2], [4, 2])
    with torch.no_grad():
        twins.dual.decoder.need_attention = True
        _, ours = twins.dual(source, lengths, prev)
        _, theirs = twins.stock(source, lengths, prev)
    ours, theirs = ours["attn"][0], theirs["attn"][0]
    assert (ours - theirs)[prev != PAD].abs().max() < 1e-5


def test_the_wrong_weights_would_be_noticed(make_twins):
    """The broken twin of this file: one number moved in one matrix."""
    twins = make_twins(SHAPES["post-norm"])
    broken = copy.deepcopy(twins.stock)
    source, lengths, prev = twins.batch([5], [4])
    with torch.no_grad():
        broken.decoder.layers[1].encoder_attn.k_proj.weight[0, 0] += 0.5
        ours, _ = twins.dual(source, lengths, prev)
        theirs, _ = broken(source, lengths, prev)
    assert (ours - theirs).abs().max() > 1e-4


def test_same_gradient(make_twins):
    """One step of training on one direction gives both the same change."""
    twins = make_twins(SHAPES["post-norm"])
    for model in (twins.dual, twins.stock):
        model.zero_grad()
        model.train()
    source, lengths, prev = twins.batch([5, 2, 3], [3, 4, 3])
    for model in (twins.dual, twins.stock):
        scores, _ = model(source, lengths, prev)
        scores.log_softmax(dim=-1)[prev != PAD][:, 5].sum().backward()
    ours = twins.dual.decoder.module.blocks[0].context_attention.key_value.weight.grad
    theirs = twins.stock.decoder.layers[0].encoder_attn
    theirs = torch.cat([theirs.k_proj.weight.grad, theirs.v_proj.weight.grad])
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
