"""Where dropout acts, what weights start from, and which limit, device and type goes where."""

import math
from types import SimpleNamespace

import pytest
import torch
from common.words import numbered_words
from dual.lstm_support import build, write_dictionaries

from fairseq_ext.common import dropout
from fairseq_ext.dual import task as dual_task_module
from fairseq_ext.dual.lstm_classifier import modules as lstm_modules
from fairseq_ext.dual.reranker import PairScorer
from fairseq_ext.dual.task import DualTranslationTask
from fairseq_ext.dual.transformer import modules
from fairseq_ext.streams.model import StreamsModel

PAD, END, WORDS, LAYERS = 1, 2, 11, 2
RATES = dict(dropout=0.3, attention_dropout=0.2, activation_dropout=0.1)
SOURCE, PREVIOUS = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[2, 8, 9]])


class Recorder:
    """In the place of ``dropout``: notes rates and shapes, and zeroes the result of one call."""

    def __init__(self, zeroed=None):
        self.zeroed, self.calls = zeroed, []

    def __call__(self, values, rate, training=True):
        self.calls.append((rate, tuple(values.shape), training))
        return values * 0 if len(self.calls) - 1 == self.zeroed else values


@pytest.fixture(scope="module")
def component():
    torch.manual_seed(2)
    size = modules.ComponentSize(embed_dim=8, ffn_dim=12, heads=2, layers=LAYERS, **RATES)
    return modules.Component(size, WORDS, PAD)


@pytest.fixture(params=["encode", "decode"])
def role(request, component):
    """Function () -> states of the component in training mode; what dropout is to be given."""
    component.train()
    width = len(SOURCE[0]) if request.param == "encode" else len(PREVIOUS[0])
    states, hidden = (1, width, 8), (1, width, 12)
    context = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(3))

    def run():
        if request.param == "encode":
            return component.encode(SOURCE)[0]
        return component.decode(PREVIOUS, context, torch.zeros(1, 4, dtype=torch.bool))[0]

    attentions = 1 if request.param == "encode" else 2
    block = [(0.3, states)] * attentions + [(0.1, hidden), (0.3, states)]
    return run, [(0.3, states), *block * LAYERS], attentions


def test_dropout_is_on_embeddings_and_every_sub_layer(role, monkeypatch):
    """In this order; and what each call returns is what goes on."""
    run, expected, _ = role
    plain = Recorder()
    monkeypatch.setattr(dropout, "dropout", plain)
    states = run()
    assert plain.calls == [(*call, True) for call in expected]
    for number in range(len(expected)):
        monkeypatch.setattr(dropout, "dropout", Recorder(number))
        assert (run() - states).abs().max() > 1e-3, number


@pytest.mark.parametrize("training, rate", [(True, 0.2), (False, 0.0)])
def test_dropout_of_attention(role, component, monkeypatch, training, rate):
    run, _, attentions = role
    rates, attend = [], modules.attend

    def noted(query, key, value, visible, dropout, *more, **options):
        rates.append(dropout)
        return attend(query, key, value, visible, dropout, *more, **options)

    monkeypatch.setattr(modules, "attend", noted)
    component.train(training)
    run()
    assert rates == [rate] * attentions * LAYERS


def test_nothing_is_dropped_outside_of_training(role, component):
    run, _, _ = role
    component.eval()
    assert torch.equal(run(), run())


def test_the_embedding_is_multiplied_by_the_root_of_its_width(component):
    component.eval()
    positions = component.positions(SOURCE, False)
    expected = math.sqrt(8) * component.embedding.weight[SOURCE] + positions
    torch.testing.assert_close(component._embed(SOURCE), expected)


# ---------------------------------------------------------------- the LSTM


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(4)
    size = lstm_modules.DualLSTMSize(embed_dim=6, hidden_size=40, dropout=0.4)
    return lstm_modules.DualLSTM(size, WORDS, 3, PAD).train()


def lstm_roles(network):
    """{name: (function () -> scores, shapes that dropout is given)}."""
    label = torch.tensor([[0.0, 1.0, 0.0]])

    def classify():
        return network.label_logits(network.read(PREVIOUS, torch.tensor([3])))

    def write():
        return network.logits(network.states(PREVIOUS, label)[0])

    return {
        "classify": (classify, [(1, 3, 6), (1, 40)]),
        "write": (write, [(1, 3, 6), (1, 3, 40)]),
    }


@pytest.mark.parametrize("name", ["classify", "write"])
def test_dropout_is_on_word_vectors_and_before_the_softmax(network, monkeypatch, name):
    run, shapes = lstm_roles(network)[name]
    plain = Recorder()
    monkeypatch.setattr(dropout, "dropout", plain)
    scores = run()
    assert plain.calls == [(0.4, shape, True) for shape in shapes]
    for number in range(len(shapes)):
        monkeypatch.setattr(dropout, "dropout", Recorder(number))
        assert (run() - scores).abs().max() > 1e-3, number


def test_what_the_lstm_starts_from(network):
    """The forget gate's bias is 1, all others 0; every gate's U_a is orthogonal."""
    biases = (network.lstm.bias_ih_l0 + network.lstm.bias_hh_l0).view(4, 40)
    assert biases[1].eq(1).all() and biases[[0, 2, 3]].eq(0).all()  # torch: i, f, g, o
    for gate in network.lstm.weight_hh_l0.view(4, 40, 40):
        torch.testing.assert_close(gate @ gate.t(), torch.eye(40), atol=1e-5, rtol=0)
    assert network.label_embedding.std().item() == pytest.approx(40**-0.5, rel=0.25)


# ---------------------------------------------------------------- limits


def test_limits_of_source_and_target(dual_task):
    words = ("--max-source-positions", 31, "--max-target-positions", 37)
    _, model = dual_task(*words)
    direction = model.direction("yy-xx")
    assert model.max_positions() == (31, 37) and model.max_decoder_positions() == 37
    assert (direction.encoder.max_positions(), direction.decoder.max_positions()) == (31, 37)


@pytest.mark.parametrize("arch", ["dual_lstm_classifier", "dual_supervised_lstm_classifier"])
def test_limits_of_texts_and_labels(tmp_path, arch):
    data = write_dictionaries(tmp_path / "data")
    words = ("--arch", arch, "--max-source-positions", 31, "--max-target-positions", 37)
    _, model, _ = build(data, *words)
    direction = model.direction("label-text")
    assert model.max_positions() == (31, 37)
    assert (direction.encoder.max_positions(), direction.decoder.max_positions()) == (31, 37)


# ---------------------------------------------------------------- devices and types


@pytest.mark.parametrize("device, dtype", [("cpu", torch.float64), ("meta", torch.float32)])
def test_models_of_dual_path_are_where_and_as_those_of_path_are(monkeypatch, device, dtype):
    calls = []

    def load(*arguments):
        calls.append(arguments)
        return [torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]

    monkeypatch.setattr(dual_task_module, "load_models", load)
    cfg = SimpleNamespace(dual_path="a.pt:b.pt", data="folder")
    task = SimpleNamespace(pair="xx-yy", cfg=cfg)
    models = [torch.nn.Linear(3, 3, device=device, dtype=dtype)]
    loaded = DualTranslationTask._reverse_models(task, models)
    assert calls == [("a.pt:b.pt", "yy-xx", "folder")] and len(loaded) == 2
    for model in loaded:
        assert (model.weight.device.type, model.weight.dtype) == (device, dtype)


@pytest.mark.parametrize("log_probs", [True, False])
def test_probabilities_of_half_precision_are_float32(log_probs):
    logits = torch.randn(2, 3, 500, generator=torch.Generator().manual_seed(5)).half()
    probabilities = StreamsModel.get_normalized_probs(None, (logits, {}), log_probs)
    expected = logits.double().log_softmax(dim=-1)
    expected = expected if log_probs else expected.exp()
    assert probabilities.dtype == torch.float32
    torch.testing.assert_close(probabilities.double(), expected, rtol=1e-5, atol=1e-7)


class HalfScores(torch.nn.Module):
    """log P of every token is -7.03125, in bfloat16."""

    def forward(self, read, lengths, previous):
        return torch.full((*previous.shape, WORDS), -7.03125, dtype=torch.bfloat16)

    def get_normalized_probs(self, output, log_probs):
        return output if log_probs else output.float().exp().to(output)


def test_the_sum_over_a_long_source_is_in_float32():
    """In bfloat16 it would be rounded to a multiple of 8."""
    dictionary = numbered_words(WORDS)
    source = torch.tensor([*[7] * 200, END])
    score = PairScorer([HalfScores()], dictionary, True)([torch.tensor([6, END])], [source])
    assert score.dtype == torch.float32
    assert score.item() == pytest.approx(-7.03125 * 201, rel=1e-6)
