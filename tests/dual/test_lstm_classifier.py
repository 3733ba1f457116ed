"""The asymmetric setting: Eq. 2, 3 and 6, and the properties of both directions."""

import shutil

import numpy as np
import pytest
import torch
from dual.lstm_support import (
    END,
    FIRST,
    LABELS,
    NAMES,
    PAD,
    WORDS,
    batch,
    build,
    builder,
    fill,
    gradient_of,
    random_pairs,
    sample_of,
    write_dictionaries,
)

from fairseq_ext.dual.lstm_classifier import model as lstm_model
from fairseq_ext.dual.lstm_classifier import modules as lstm_modules
from fairseq_ext.dual.lstm_classifier.modules import DualLSTM, DualLSTMSize, inputs_of
from properties import (
    check_batch_mate_invariance,
    check_beam_reorder,
    check_causality,
    check_gradient_everywhere,
    check_no_gradient,
    check_padding_invariance,
    check_save_load,
    check_stepwise,
    collate,
    gradients,
    random_sentences,
    shift,
)
from reference import dual_lstm as reference
from reference.gradient import central_difference, random_entries

LENGTHS = [[4, 1, 6], [1], [3, 3]]


def network_of(params, seed=0):
    embed_dim, hidden = params["embedding"].shape[1], params["E_y"].shape[1]
    network = DualLSTM(DualLSTMSize(embed_dim, hidden), WORDS, LABELS, PAD).double()
    return fill(network, params)


def module_logs(network, pairs, left=False):
    """log P(label | text) (B,) and log P(text | label) (B,) of a padded batch."""
    texts, labels = batch(pairs, left)
    previous, lengths = inputs_of(texts, PAD, END)
    y = torch.eye(LABELS, dtype=torch.double)[labels[:, 0] - FIRST]
    primal = network.label_logits(network.read(previous, lengths)).log_softmax(dim=1)
    aligned = batch(pairs)[0]
    words = network.logits(network.states(previous, y)[0]).log_softmax(dim=2)
    words = words.gather(2, aligned.unsqueeze(2)).squeeze(2).masked_fill(aligned.eq(PAD), 0)
    return primal.gather(1, labels[:, :1] - FIRST).squeeze(1), words.sum(dim=1)


# ---------------------------------------------------------------- the equations


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("left", [True, False])
def test_a_padded_batch_is_eq_2_3_and_6_of_single_sentences(lengths, left):
    rng = np.random.default_rng(5)
    params = reference.random_parameters(WORDS, LABELS, *rng.integers(2, 6, size=2), rng)
    pairs, network = random_pairs(lengths, rng), network_of(params)
    primal, dual = module_logs(network, pairs, left)
    expected = [reference.log_label(*pair, params, END) for pair in pairs]
    assert primal.tolist() == pytest.approx(expected, rel=1e-9)
    expected = [reference.log_words(*pair, params, END).sum() for pair in pairs]
    assert dual.tolist() == pytest.approx(expected, rel=1e-9)
    # the label reaches the text, the broken twin of the condition
    other = [reference.log_words(text, (y + 1) % LABELS, params, END).sum() for text, y in pairs]
    assert np.abs(np.subtract(other, expected)).min() > 1e-3


@pytest.mark.parametrize("name", list(NAMES))
def test_gradient_of_the_pair_loss(name):
    rng = np.random.default_rng(8)
    params = reference.random_parameters(WORDS, LABELS, 3, 4, rng)
    pairs, network = random_pairs([3, 1, 4], rng), network_of(params)
    primal, dual = module_logs(network, pairs)
    (-primal - dual).sum().backward()
    gradient = gradient_of(network, name)

    def objective():
        return reference.objective(pairs, params, END)

    used = {END, *(word for text, _ in pairs for word in text)}
    for index in random_entries(params[name], 4, rng):
        if name == "embedding":
            index = (sorted(used)[index[0] % len(used)], index[1])
        expected = central_difference(objective, params[name], index)
        assert gradient[index].item() == pytest.approx(expected, rel=1e-5, abs=1e-7), index


def test_e_y_learns_from_both_roles():
    rng = np.random.default_rng(2)
    network = network_of(reference.random_parameters(WORDS, LABELS, 3, 4, rng))
    primal, dual = (log.sum() for log in module_logs(network, random_pairs([3, 2], rng)))
    shared = {
        name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad
    }
    only_dual = {name: shared.pop(name) for name in list(shared) if name[:3] in ("con", "out")}
    for loss in (primal, dual):
        check_gradient_everywhere(loss, shared)
    check_no_gradient(primal, only_dual)
    check_gradient_everywhere(dual, only_dual)
    both, *parts = (
        gradients(loss, {"E_y": network.label_embedding})["E_y"]
        for loss in (primal + dual, primal, dual)
    )
    assert torch.allclose(both, sum(parts))
    assert (parts[0] - parts[1]).abs().max() > 1e-3


def test_padding_never_reaches_a_real_state(monkeypatch):
    """The broken twin of the alignment: the first row is padded in front."""
    rng = np.random.default_rng(3)
    params = reference.random_parameters(WORDS, LABELS, 3, 4, rng)
    pairs, network = random_pairs([2, 5], rng), network_of(params)
    before = module_logs(network, pairs, left=True)[0]
    monkeypatch.setattr(lstm_modules, "align_left", lambda tokens, _pad: tokens)
    after = module_logs(network, pairs, left=True)[0]
    assert abs(before[0] - after[0]) > 1e-3 and before[1] == after[1]


def test_dropout_is_on_word_vectors_and_before_both_softmaxes():
    network = DualLSTM(DualLSTMSize(40, 40, 0.5), WORDS, LABELS, PAD).train()
    words, h = torch.full((1, 50), 7), torch.ones(1, 40)
    vectors = network.drop(network.embedding(words))
    assert 0.3 < vectors.eq(0).double().mean() < 0.7
    for softmax in (network.label_logits, network.logits):
        assert not torch.equal(softmax(h), softmax(h))
    network.eval()
    assert torch.equal(network.label_logits(h), network.label_logits(h))


# ---------------------------------------------------------------- the directions


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Function (options...) -> (task, model, criterion)."""
    return builder(write_dictionaries(tmp_path_factory.mktemp("dictionaries")))


def label_rows(count):
    return [torch.tensor([FIRST + number % LABELS, END]) for number in range(count)]


def texts(lengths, seed=1):
    return random_sentences(lengths, WORDS, END, seed=seed)


def check_padding(primal, dual):
    rows = texts([5, 2, 7])
    for left in (True, False):
        for model, sides in ((primal, (rows, label_rows(3))), (dual, (label_rows(3), rows))):
            check_padding_invariance(model, *sides, PAD, left_pad_source=left)


def check_mates(primal, dual):
    rows = texts([5, 2, 7])
    check_batch_mate_invariance(primal, rows, label_rows(3), PAD, words=WORDS)
    check_batch_mate_invariance(dual, label_rows(3), rows, PAD, words=WORDS)


def check_steps(primal, dual):
    labels = collate(label_rows(2), PAD)
    check_stepwise(primal, collate(texts([4, 2]), PAD, left=True), labels.flip(1), PAD)
    check_stepwise(dual, labels, collate(shift(texts([5, 5], 2)), PAD), PAD)


def check_label_beams(primal, _dual):
    rows = collate(texts([4, 2, 5]), PAD, left=True)
    check_beam_reorder(primal, rows, END, PAD, words=FIRST + LABELS, beams=3, steps=2)


def check_beams(_primal, dual):
    labels = collate(label_rows(3), PAD)
    check_beam_reorder(dual, labels, END, PAD, words=WORDS, beams=3, steps=6)


def check_order(_primal, dual):
    prev = collate(shift(texts([5, 5], 2)), PAD)
    check_causality(dual, collate(label_rows(2), PAD), prev, PAD, words=WORDS)


def check_saving(primal, dual):
    def other(pair):
        model = lstm_model.DualLSTMClassifierModel(
            DualLSTM(DualLSTMSize(5, 6), WORDS, LABELS, PAD),
            {"text": primal.encoder.dictionary, "label": dual.encoder.dictionary},
            ["text-label", "label-text"],
            (10, 10),
            "label",
        )
        return model.direction(pair)

    rows, labels = collate(texts([4, 4]), PAD), collate(label_rows(2), PAD)
    check_save_load(primal, lambda: other("text-label"), rows, labels, PAD)
    check_save_load(dual, lambda: other("label-text"), labels, rows, PAD)


CHECKS = [check_padding, check_mates, check_steps, check_beams, check_label_beams]
CHECKS += [check_order, check_saving]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_directions(built, check):
    _, model, _ = built()
    check(model.direction("text-label"), model.direction("label-text"))


def last_input_is_read(monkeypatch):
    monkeypatch.setattr(DualLSTM, "read", lambda self, previous, _: self.states(previous)[0][:, -1])


def texts_are_mixed(monkeypatch):
    real = DualLSTM.states

    def twin(self, *inputs):
        h, last = real(self, *inputs)
        return h - h.mean(dim=0), last

    monkeypatch.setattr(DualLSTM, "states", twin)


def state_is_forgotten(monkeypatch):
    real = DualLSTM.states
    twin = lambda self, previous, y=None, before=None: real(self, previous, y)  # noqa: E731
    monkeypatch.setattr(DualLSTM, "states", twin)


def beams_keep_their_place(monkeypatch):
    from fairseq_ext.streams import direction

    def twin(cache, new_order):
        first, sentences = cache["state"].size(0), cache["context_y"].size(0)
        if new_order.numel() != first:
            cache["context_y"] = cache["context_y"][: new_order.numel() * sentences // first]
            for name in ("state", "memory"):
                cache[name] = cache[name][: new_order.numel()]

    monkeypatch.setattr(direction, "reorder_cache", twin)


@pytest.mark.parametrize(
    "check, twin, message",
    [
        (check_padding, last_input_is_read, "padding of sentence"),
        (check_mates, texts_are_mixed, "batch mates"),
        (check_steps, state_is_forgotten, "step 1"),
        (check_beams, beams_keep_their_place, "after re-ordering"),
    ],
)
def test_broken_twins_are_found(built, monkeypatch, check, twin, message):
    _, model, _ = built()
    twin(monkeypatch)
    with pytest.raises(AssertionError, match=message):
        check(model.direction("text-label"), model.direction("label-text"))


def test_the_end_of_a_label_is_certain(built):
    _, model, _ = built()
    rows, labels = collate(texts([4, 2]), PAD), collate(label_rows(2), PAD)
    output = model.direction("text-label")(rows, None, labels.flip(1))
    probs = model.get_normalized_probs(output, log_probs=True)
    assert probs[:, 1, END].tolist() == [0, 0]
    assert probs[:, 0].exp().nonzero()[:, 1].unique().tolist() == [FIRST, FIRST + 1, FIRST + 2]


# ---------------------------------------------------------------- one direction, options


def test_one_way_models_have_what_they_need(built):
    sizes = {}
    for name, flags, sides in (
        ("both", (), ("-s", "text", "-t", "label")),
        ("classifier", ("--one-way",), ("-s", "text", "-t", "label")),
        ("generator", ("--one-way",), ("-s", "label", "-t", "text")),
    ):
        _, model, _ = built(*flags, sides=sides)
        sizes[name] = sum(parameter.numel() for parameter in model.parameters())
    dual_only = 4 * 6 * 6 + WORDS * 6 + WORDS
    assert sizes["classifier"] == sizes["both"] - dual_only
    assert sizes["generator"] == sizes["both"]


@pytest.mark.parametrize("pair", ["text-label", "label-text"])
def test_sides_of_a_direction_have_their_dictionaries_and_limits(built, pair):
    task, model, _ = built("--max-source-positions", 7, "--max-target-positions", 9)
    direction = model.direction(pair)
    source, target = pair.split("-")
    assert direction.encoder.dictionary is task.dictionaries[source]
    assert direction.decoder.dictionary is task.dictionaries[target]
    assert (direction.encoder.max_positions(), direction.decoder.max_positions()) == (7, 9)
    assert model.max_positions() == (7, 9)


@pytest.mark.parametrize("pair", ["text-label", "label-text"])
def test_pair_parameters_are_those_that_the_pair_moves(built, pair):
    _, model, criterion = built()
    model.zero_grad(set_to_none=True)
    criterion(model, sample_of(random_pairs([3, 2], np.random.default_rng(1)), pair))[0].backward()
    moved = [name for name, parameter in model.named_parameters() if parameter.grad is not None]
    assert moved == model.pair_parameters(pair)


@pytest.mark.parametrize(
    "flags, sides, message",
    [
        ((), ("-s", "label", "-t", "other"), "dict.other.txt: no dictionary"),
        (
            ("--label-lang", "y"),
            ("-s", "text", "-t", "label"),
            "--label-lang y: the sides are text",
        ),
        (("--hidden-size", 0), ("-s", "text", "-t", "label"), "--hidden-size 0: must be at least"),
        (("--dropout", 1.0), ("-s", "text", "-t", "label"), "--dropout 1.0: must be in"),
    ],
)
def test_bad_options_name_themselves(built, flags, sides, message):
    with pytest.raises(ValueError, match=message):
        built(*flags, sides=sides)


def test_a_single_label_is_refused(tmp_path):
    with pytest.raises(ValueError, match="dict.label.txt: 1 labels .*at least 2"):
        build(write_dictionaries(tmp_path, labels=("good",)))


def test_a_joined_dictionary_is_refused(tmp_path):
    folder = write_dictionaries(tmp_path)
    shutil.copy(folder / "dict.text.txt", folder / "dict.label.txt")
    with pytest.raises(ValueError, match="dict.label.txt is the dictionary of the texts"):
        build(folder)


def test_a_direction_that_was_not_trained_is_refused(built):
    _, model, _ = built("--one-way")
    with pytest.raises(ValueError, match="'label-text': the model was trained for text-label"):
        model.direction("label-text")


def test_sizes_of_the_paper(tmp_path):
    """500 and 1024, 10,000 words: E_x, gates, E_y, P and the softmax."""
    _, model, _ = build(write_dictionaries(tmp_path), "--embed-dim", 500, "--hidden-size", 1024)
    gates = 4 * 1024 * (500 + 1024 + 2)  # torch's second bias stays zero
    expected = WORDS * 500 + gates + 3 * 1024 + 4 * 1024**2 + WORDS * 1025
    assert sum(parameter.numel() for parameter in model.parameters()) == expected
