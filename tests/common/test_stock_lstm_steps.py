"""Searches with the steps of stock_lstm_steps.py against fairseq's own."""

from argparse import Namespace

import pytest
import torch
from common.test_beam_search import same
from common.test_transformer_steps import WORDS, both, sample, taken  # noqa: F401  (a fixture)
from fairseq.models.lstm import LSTMDecoder, LSTMModel, base_architecture

MODELS = {
    "plain": {},
    "bidirectional": {"encoder_bidirectional": True},
    "layers": {"encoder_layers": 2, "decoder_layers": 2},
    "shared": {"share_decoder_input_output_embed": True},
    "another width": {"decoder_out_embed_dim": 10},
}
OTHERS = {
    "no attention": {"decoder_attention": "0"},
    "adaptive softmax": {"criterion": "adaptive_loss", "adaptive_softmax_cutoff": "20,40"},
}


def lstm(**options):
    sizes = {"encoder_embed_dim": 12, "decoder_embed_dim": 14, "decoder_out_embed_dim": 14}
    limits = {"max_source_positions": 99, "max_target_positions": 99}
    args = Namespace(**{"criterion": "cross_entropy", **sizes, **limits, **options})
    base_architecture(args)
    torch.manual_seed(0)
    task = Namespace(source_dictionary=WORDS, target_dictionary=WORDS)
    model = LSTMModel.build_model(args, task).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8)  # from +-0.1: otherwise all words are alike
    return model


SEARCHES = {"beam": {}, "greedy": {"beam_size": 1}, "warm": {"temperature": 1.7, "min_len": 5}}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", MODELS)
def test_searches_of_a_sentence_are_those_of_fairseq(taken, name, search):  # noqa: F811
    same(*both([lstm(**MODELS[name])], sample(), **SEARCHES[search]))
    assert taken == [True]


def test_without_attention_among_the_results(taken):  # noqa: F811
    model = lstm()
    model.decoder.need_attn = False
    same(*both([model], sample()))
    assert taken == [True]


class OtherDecoder(LSTMDecoder):
    """It may compute something else."""


@pytest.mark.parametrize("name", [*OTHERS, "residuals", "another class", "padding"])
def test_other_decoders_take_their_own_steps(taken, name):  # noqa: F811
    model, batch = lstm(**OTHERS.get(name, {})), sample()
    if name == "residuals":
        model = lstm(decoder_embed_dim=7, decoder_hidden_size=14)
        model.decoder.residuals = True
    if name == "another class":
        model.decoder.__class__ = OtherDecoder
    if name == "padding":
        batch["net_input"]["src_tokens"][0, 0] = WORDS.pad()
    same(*both([model], batch))
    assert taken == [False]
