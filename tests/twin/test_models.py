"""The architectures are the stock ones, their states are those that predict, and what they build.

The stock models are the reference: fairseq's own code, with the same weights.
"""

import pytest
import torch
from fairseq.modules import FairseqDropout
from twin.support import built, configured, randomise, write_dictionaries

from fairseq_ext.twin.contract import TwinCall
from fairseq_ext.twin.stock import lstm
from properties import (
    check_batch_mate_invariance,
    check_causality,
    check_padding_invariance,
    check_stepwise,
    collate,
    random_sentences,
    shift,
)

PAD, END, WORDS = 1, 2, 13
ENCODER_DECODERS = ["lstm", "transformer"]
CASES = [
    ("lstm", ()),
    ("lstm", ("--encoder-bidirectional", "--encoder-layers", "2", "--decoder-layers", "2")),
    ("lstm", ("--decoder-attention", "0", "--decoder-out-embed-dim", "3")),
    ("transformer", ()),
    ("transformer", ("--decoder-normalize-before", "--encoder-normalize-before")),
    ("lstm_lm", ()),
    ("lstm_lm", ("--decoder-layers", "3", "--residuals", "--decoder-out-embed-dim", "3")),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_dictionaries(tmp_path_factory.mktemp("dictionaries"))


def couple(data, stock, *flags):
    """A twin model and the stock one, with the same random weights."""
    models = [built(configured(data, arch, *flags))[1] for arch in (f"twin_{stock}", stock)]
    randomise(models[0])
    models[1].load_state_dict(models[0].state_dict(), strict=True)
    return [model.eval() for model in models]


def inputs(stock, lengths=(6, 4, 4, 1)):
    """What the model reads, longest sentence first, as fairseq's batches are."""
    targets = random_sentences(lengths, WORDS, END, seed=1)
    prev = collate(shift(targets), PAD)
    if stock.endswith("lm"):
        return {"src_tokens": prev, "src_lengths": prev.ne(PAD).sum(dim=1)}
    source = collate(random_sentences(lengths, WORDS, END, seed=2), PAD, left=True)
    lengths = source.ne(PAD).sum(dim=1)
    return {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": prev}


@pytest.mark.parametrize("stock, flags", CASES)
def test_function_is_the_stock_models(data, stock, flags):
    """The same weights under the same names, the same logits, with and without ``twin``."""
    twin, plain = couple(data, stock, *flags)
    net_input = inputs(stock)
    with torch.no_grad():
        expected, extra = plain(**net_input)
        logits, more = twin(**net_input)
        (again, _), output = twin(**net_input, twin=TwinCall())
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(again, logits)
    assert output.backward_states is None and output.backward_logits is None
    if stock == "lstm" and extra is not None:
        torch.testing.assert_close(more, extra, atol=1e-5, rtol=1e-5)
    assert set(twin.state_dict()) == set(plain.state_dict())


@pytest.mark.parametrize("stock", ["lstm", "lstm_lm"])
def test_the_adaptive_softmax_reads_the_states(data, stock):
    """Where the output has another size than the states, stock leaves the map between them out."""
    flags = ("--criterion", "adaptive_loss", "--adaptive-softmax-cutoff", "5,8")
    twin, plain = couple(data, stock, "--decoder-out-embed-dim", "3", *flags)
    batch = inputs(stock)
    with torch.no_grad():
        torch.testing.assert_close(twin(**batch)[0], plain(**batch)[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("stock, flags", CASES)
def test_state_is_the_one_that_predicts(data, stock, flags):
    """Of a recurrent decoder: the top h that stock fairseq keeps after each step, word by word."""
    twin, plain = couple(data, stock, *flags)
    net_input = inputs(stock, lengths=(5, 5))
    prev = net_input.get("prev_output_tokens", net_input["src_tokens"])
    with torch.no_grad():
        (logits, _), output = twin(**net_input, twin=TwinCall())
        if stock == "transformer":
            expected = plain.decoder.output_layer(output.states)
            torch.testing.assert_close(logits, expected)
            return
        source = None
        if stock == "lstm":
            source = plain.encoder(net_input["src_tokens"], net_input["src_lengths"])
        cache = {}
        for t in range(prev.size(1)):
            plain.decoder(prev[:, : t + 1], encoder_out=source, incremental_state=cache)
            hidden, _, _ = plain.decoder.get_cached_state(cache)
            torch.testing.assert_close(output.states[:, t], hidden[-1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("place", ["dropout_in_module", "dropout_out_module"])
@pytest.mark.parametrize("stock, flags", [case for case in CASES if "lstm" in case[0]])
def test_dropout_stands_where_stock_has_it(data, stock, flags, place, monkeypatch):
    """At a rate of 1 nothing is random: words, or what leaves each layer and is fed back, are 0."""
    models, net_input = couple(data, stock, *flags), inputs(stock, lengths=(5, 5))
    prev = net_input.get("prev_output_tokens", net_input["src_tokens"])
    for model in models:
        model.decoder.train()
        for module in model.decoder.modules():
            if isinstance(module, FairseqDropout):
                module.p = 0.0
        getattr(model.decoder, place).p = 1.0
    twin, plain = models
    source = None
    if stock == "lstm":
        source = plain.encoder(net_input["src_tokens"], net_input["src_lengths"])
    expected, cache = [], {}
    for t in range(prev.size(1)):
        step, _ = plain.decoder(prev[:, : t + 1], encoder_out=source, incremental_state=cache)
        hidden, _, _ = plain.decoder.get_cached_state(cache)
        expected.append((step[:, 0], hidden[-1]))
    logits, states = (torch.stack(part, dim=1) for part in zip(*expected))
    for unrolled in ("_fed", "_literal"):
        monkeypatch.setattr(lstm, "_fed", getattr(lstm, unrolled))
        (twin_logits, _), output = twin(**net_input, twin=TwinCall())
        torch.testing.assert_close(output.states, states, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(twin_logits, logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("stock", ENCODER_DECODERS)
def test_properties_of_a_decoder(data, stock):
    model = couple(data, stock)[0]
    lengths = (6, 5, 3)
    sources = random_sentences(lengths, WORDS, END, seed=3)
    targets = random_sentences(lengths, WORDS, END, seed=4)
    if stock == "transformer":  # stock fairseq's LSTM encoder takes no other padding
        check_padding_invariance(model, sources, targets, PAD, left_pad_source=True)
    check_batch_mate_invariance(model, sources, targets, PAD, words=WORDS)
    same = random_sentences((4, 4), WORDS, END, seed=5)
    source, prev = torch.stack(same), torch.stack(shift(same))
    check_causality(model, source, prev, PAD, words=WORDS)
    check_stepwise(model, source, prev, PAD)


class SourceLess:
    """A language model as an encoder-decoder model whose decoder sees no source."""

    def __init__(self, model):
        self.model, self.eval = model, model.eval

    def encoder(self, source, src_lengths=None):
        return None

    def decoder(self, prev, encoder_out=None, incremental_state=None):
        return self.model(prev, incremental_state=incremental_state)


@pytest.mark.parametrize("flags", [(), ("--decoder-layers", "3", "--residuals")])
def test_properties_of_a_language_model(data, flags):
    model = SourceLess(couple(data, "lstm_lm", *flags)[0])
    targets = random_sentences((6, 5, 3), WORDS, END, seed=4)
    check_padding_invariance(model, targets, targets, PAD, left_pad_source=True)
    check_batch_mate_invariance(model, targets, targets, PAD, words=WORDS)
    prev = torch.stack(shift(random_sentences((4, 4), WORDS, END, seed=5)))
    check_causality(model, prev, prev, PAD, words=WORDS)
    check_stepwise(model, prev, prev, PAD)


def test_the_fused_layers_train_like_the_loop(data):
    """Gradients of the fused kernel and of stock fairseq's steps."""
    models = couple(data, "lstm_lm", "--decoder-layers", "2", "--residuals")
    net_input = inputs("lstm_lm")
    for model in models:
        model(**net_input)[0].square().sum().backward()
    gradients = [dict(model.named_parameters()) for model in models]
    for name, parameter in gradients[0].items():
        torch.testing.assert_close(parameter.grad, gradients[1][name].grad, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("flags", [(), ("--decoder-layers", "2", "--encoder-layers", "2")])
def test_dropout_where_the_stock_model_has_it(data, monkeypatch, rate, flags):
    """Every dropout keeps a share that depends on its input alone: no random numbers."""

    def dropout(module, tensor, inplace=False):
        is_kept = tensor.detach().mul(997).sin().gt(2 * rate - 1)
        return tensor * is_kept / (1 - rate) if module.training else tensor

    monkeypatch.setattr(FairseqDropout, "forward", dropout)
    twin, plain = couple(data, "lstm", *flags)
    net_input = inputs("lstm")
    twin.decoder.train(), plain.decoder.train()
    torch.testing.assert_close(twin(**net_input)[0], plain(**net_input)[0], atol=1e-5, rtol=1e-5)


# ---------------------------------------------------------------- the backward network


@pytest.mark.parametrize("stock", ["lstm", "transformer", "lstm_lm"])
def test_backward_network_is_a_second_decoder(data, stock):
    """Of the same shapes, with no parameter of the model: neither embedding nor output layer."""
    cfg = configured(data, f"twin_{stock}", criterion="twin")
    task, model = built(cfg)
    criterion = task.build_criterion(cfg.criterion)
    model_parameters = {id(parameter) for parameter in model.parameters()}
    network = criterion.network.decoder
    shapes = [
        {name: parameter.shape for name, parameter in decoder.named_parameters()}
        for decoder in (model.decoder, network)
    ]
    assert shapes[0] == shapes[1]
    assert not model_parameters & {id(parameter) for parameter in criterion.parameters()}
    assert criterion.penalty.map.in_features == criterion.network.state_size
    net_input = inputs(stock)
    prev = net_input.get("prev_output_tokens", net_input["src_tokens"])
    (logits, _), output = model(**net_input, twin=TwinCall(criterion.network, prev))
    assert output.backward_states.shape == output.states.shape
    assert output.states.size(2) == criterion.network.state_size
    assert output.backward_logits.shape == logits.shape


@pytest.mark.parametrize("stock", ["lstm", "transformer"])
def test_all_embeddings_shared_are_those_of_the_forward_network(tmp_path, stock):
    """--share-all-embeddings: the backward network has one matrix, its own."""
    for lang in ("xx", "yy"):
        lines = "".join(f"word{number} 1\n" for number in range(9))
        (tmp_path / f"dict.{lang}.txt").write_text(lines, encoding="utf-8")
    same = ("--encoder-embed-dim", "8", "--decoder-embed-dim", "8")
    cfg = configured(tmp_path, f"twin_{stock}", *same, "--share-all-embeddings", criterion="twin")
    task, model = built(cfg)
    network = task.build_criterion(cfg.criterion).network.decoder
    assert model.encoder.embed_tokens is model.decoder.embed_tokens
    assert network.embed_tokens is not model.decoder.embed_tokens
    assert not any("output_projection" in name for name, _ in network.named_parameters())


def test_forward_weights_do_not_depend_on_the_criterion(data):
    """The same seed starts a twin run and its baseline with the same forward network."""
    states = []
    for criterion in ("twin", "label_smoothed_cross_entropy"):
        torch.manual_seed(3)
        cfg = configured(data, "twin_lstm", criterion=criterion)
        task, model = built(cfg)
        task.build_criterion(cfg.criterion)
        states.append(model.state_dict())
    assert all(torch.equal(states[0][name], value) for name, value in states[1].items())


@pytest.mark.parametrize("flags", [("--twin-target", "zeros"), ("--twin-stabilise",)])
def test_no_backward_network_where_none_is_needed(data, monkeypatch, flags):
    monkeypatch.setattr(lstm.TwinLSTMModel, "build_backward", lambda *_: pytest.fail("is built"))
    cfg = configured(data, "twin_lstm", *flags, criterion="twin")
    task, _ = built(cfg)
    assert not list(task.build_criterion(cfg.criterion).parameters())


def test_the_transformer_needs_logits_of_all_words(data):
    with pytest.raises(ValueError, match=r"--adaptive-softmax-cutoff \S*5\S*: allowed: leave"):
        built(configured(data, "twin_transformer", "--adaptive-softmax-cutoff", "5"))


@pytest.mark.parametrize("flags", [flags for stock, flags in CASES if stock == "lstm"])
def test_the_loop_with_gradients_after_it_trains_like_the_literal_one(data, flags, monkeypatch):
    """States, attention and gradients; dropout draws the same numbers."""
    torch.manual_seed(0)
    model = couple(data, "lstm", *flags, "--dropout", "0.4")[0].double().train()
    model.decoder.need_attn = True
    net_input = inputs("lstm")
    trainings = []
    for function in (lstm._fed, lstm._literal):
        torch.manual_seed(1)
        encoder_out = model.encoder(net_input["src_tokens"], net_input["src_lengths"])
        vectors = model.decoder.embed_tokens(net_input["prev_output_tokens"]).transpose(0, 1)
        states, outputs, attention = function(model.decoder, vectors, encoder_out)
        model.zero_grad()
        total = (states.sin() + outputs.cos()).sum()
        total = total if attention is None else total + attention.square().sum()
        total.backward()
        grads = {name: parameter.grad for name, parameter in model.named_parameters()}
        trainings.append((states, outputs, attention, grads))
    torch.testing.assert_close(trainings[0], trainings[1])


def test_training_takes_the_fast_loop(data, monkeypatch):
    model, called = couple(data, "lstm")[0], []
    fed = lstm._fed
    monkeypatch.setattr(lstm, "_fed", lambda *parts: called.append(1) or fed(*parts))
    model.train()(**inputs("lstm"))
    assert called
