"""Several sources at once: how they are told apart, and both averages against the references.

Legend: B sentences, S source positions, T target positions, V words.
"""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from common.words import dictionary_with, numbered_words
from fairseq.data import LanguagePairDataset, ListDataset
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from multiway.support import Case
from streams.directions import FEWEST, some_rows
from toy_sentences import END, PAD, previous, rows

from fairseq_ext.multiway.model import MultiwayModel, select_source
from fairseq_ext.multiway.task import JointDictionary, MultiwayTranslationTask
from fairseq_ext.multiway.task import _check_aligned as check_aligned
from fairseq_ext.streams.language_pair import LanguagePair
from fairseq_ext.streams.task import StreamsTask
from properties import check_beam_reorder, collate, random_sentences
from reference import multiway as reference
from reference.layers import log_softmax

TWO_SOURCES = [[5, 6, END, 7, END], [4, END, 8, 9, 6, END], [END, END]]


@pytest.mark.parametrize("left", [False, True], ids=["right-padded", "left-padded"])
def test_sources_are_told_apart_by_their_end_symbols(left):
    tokens = rows(TWO_SOURCES, left)
    selected = [select_source(tokens, number, PAD, END) for number in (0, 1)]
    assert selected[0][0].tolist() == [[5, 6, END], [4, END, PAD], [END, PAD, PAD]]
    assert selected[1][0].tolist() == [[7, END, PAD, PAD], [8, 9, 6, END], [END, PAD, PAD, PAD]]
    for words, positions in selected:
        real = words.ne(PAD)
        assert torch.equal(tokens.gather(1, positions)[real], words[real])


@pytest.mark.parametrize("left", [False, True], ids=["right-padded", "left-padded"])
def test_only_source_is_taken_whole(left):
    tokens = rows(TWO_SOURCES, left)
    words, _ = select_source(tokens, None, PAD, END)
    assert torch.equal(words, rows(TWO_SOURCES))


def model_of(case):
    """A MultiwayModel around the modules of a case: sources s0, s1 (...), target t."""
    encoders = {f"s{n}": case.modules[f"encoder{n}"] for n in range(len(case.sources))}
    dictionaries = {
        lang: numbered_words(encoder.embedding.num_embeddings) for lang, encoder in encoders.items()
    }
    dictionaries["t"] = numbered_words(case.modules["decoder"].embedding.num_embeddings)
    pairs = [f"{lang}-t" for lang in encoders]
    decoders = {"t": case.modules["decoder"]}
    shared = case.modules["shared"]
    return MultiwayModel(encoders, decoders, shared, dictionaries, pairs, (50, 50)).eval()


@pytest.fixture(params=[([2], [1], [3]), ([3, 2, 4], [1, 4, 2], [5, 2, 1])], ids=str)
def case(request):
    return Case(71, *request.param)


@pytest.fixture(params=[False, True], ids=["right-padded", "left-padded"])
def joined(request, case):
    """The sources of each row one after the other, as the task reads them."""
    return rows([sum(parts, []) for parts in zip(*case.sources)], left=request.param)


@torch.no_grad()
def test_early_average(case, joined):
    """A direction of two sources is the reference's early average."""
    logits = model_of(case).direction("s0+s1-t")(joined, None, previous(case.targets))[0]
    for number, target in enumerate(case.targets):
        expected = case.reference_logits(number)
        np.testing.assert_allclose(logits[number, : len(target)], expected, atol=1e-10)


@torch.no_grad()
def test_forward_averages_early(case, joined):
    """Scoring references (fairseq-validate) with several sources."""
    model = model_of(case)
    prev = previous(case.targets)
    expected = model.direction("s0+s1-t")(joined, None, prev)[0]
    assert torch.equal(model(joined, None, prev, pair="s0+s1-t")[0], expected)


@torch.no_grad()
def test_late_average(case, joined):
    """fairseq's ensemble of one direction for each source is the reference's late average."""
    ensemble = EnsembleModel(model_of(case).directions("s0+s1-t"))
    states = [{}, {}]
    encoded = ensemble.forward_encoder({"src_tokens": joined, "src_lengths": None})
    prev = previous(case.targets)
    for t in range(prev.size(1)):
        probabilities, _ = ensemble.forward_decoder(prev[:, : t + 1], encoded, states)  # (B, V)
        for number, target in enumerate(case.targets):
            if t < len(target):
                expected = case.reference_logits(number, reference.late_average)[t]
                np.testing.assert_allclose(probabilities[number], expected, atol=1e-5)


@torch.no_grad()
def test_the_two_averages_differ(case, joined):
    model, prev = model_of(case), previous(case.targets)
    early = model.direction("s0+s1-t")(joined, None, prev)[0].softmax(dim=-1)
    late = [
        translate(joined, None, prev)[0].softmax(dim=-1)
        for translate in model.directions("s0+s1-t")
    ]
    assert (early - sum(late) / 2).abs().max() > 1e-4


@pytest.mark.parametrize("kind", ["one", "early", "late"])
@torch.no_grad()
def test_scores_of_beam_search_are_those_of_the_references(case, joined, kind):
    """fairseq's generator, beam 4: every hypothesis is scored again, by the NumPy loops."""
    model = model_of(case)
    if kind == "one":
        directions, source = [model.direction("s0-t")], rows(case.sources[0], left=True)
    else:
        directions, source = [model.direction("s0+s1-t")], joined
        if kind == "late":
            directions = model.directions("s0+s1-t")
    generator = SequenceGenerator(directions, model.dictionaries["t"], beam_size=4, max_len_b=6)
    lengths = source.ne(PAD).sum(dim=1)
    sample = {"net_input": {"src_tokens": source, "src_lengths": lengths}}
    for number, hypotheses in enumerate(generator.generate(directions, sample)):
        assert len(hypotheses) == 4
        for hypothesis in hypotheses:
            case.targets[number] = hypothesis["tokens"].tolist()
            if kind == "late":
                log_probs = case.reference_logits(number, reference.late_average)
            elif kind == "early":
                log_probs = [log_softmax(scores) for scores in case.reference_logits(number)]
            else:
                alone = case.sources[0][number], case.targets[number], case.encoders[0]
                logits = reference.translate(*alone, case.params["shared"], case.params["decoder"])
                log_probs = [log_softmax(scores) for scores in logits]
            expected = [row[token] for row, token in zip(log_probs, case.targets[number])]
            np.testing.assert_allclose(hypothesis["positional_scores"], expected, atol=1e-5)


@torch.no_grad()
def test_order_of_the_sources_does_not_matter(case, joined):
    model, prev = model_of(case), previous(case.targets)
    turned = rows([sum(reversed(parts), []) for parts in zip(*case.sources)])
    in_order = model.direction("s0+s1-t")(joined, None, prev)[0]
    other = model.direction("s1+s0-t")(turned, None, prev)[0]
    torch.testing.assert_close(in_order, other)


@torch.no_grad()
def test_attention_stands_at_the_positions_of_the_words(case, joined):
    """Each source's weights, halved, where its words are; zero at padding."""
    direction = model_of(case).direction("s0+s1-t", need_attention=True)
    prev = previous(case.targets)
    [attention] = direction(joined, None, prev)[1]["attn"]
    assert attention.shape == (*prev.shape, joined.size(1))
    _, _, per_source = outcome_of_literal(case, prev)
    for number in range(len(case.targets)):
        real = joined[number].ne(PAD)
        assert not attention[number][:, ~real].any()
        lengths = [len(sentences[number]) for sentences in case.sources]
        weights = [
            weights_of[number, :, :length] for weights_of, length in zip(per_source, lengths)
        ]
        expected = torch.cat(weights, dim=1) / 2
        torch.testing.assert_close(attention[number][:, real], expected)


def outcome_of_literal(case, prev):
    decoder, shared = case.modules["decoder"], case.modules["shared"]
    sources = [shared.prepare(*encoded) for encoded in case.encode()]
    return decoder.literal(decoder.embed(prev, first=True), shared, sources)


@torch.no_grad()
def test_attention_of_one_source(model):
    source, prev = some_rows([5, 2, 3], 1, left=True), some_rows([3, 3, 3], 2)
    [attention] = model.direction("xx-yy", need_attention=True)(source, None, prev)[1]["attn"]
    torch.testing.assert_close(attention.sum(dim=-1), torch.ones(3, 3))
    assert not attention[source.eq(PAD).unsqueeze(1).expand_as(attention)].any()
    [nothing] = model.direction("xx-yy")(source, None, prev)[1]["attn"]
    assert nothing is None


@pytest.mark.parametrize("pair, sources", [("xx-yy", 1), ("yy+zz-xx", 2)])
def test_attention_follows_the_beam(model, pair, sources):
    direction = model.direction(pair, need_attention=True)
    parts = [random_sentences([5, 2, 3], FEWEST, END, seed=n) for n in range(sources)]
    source = collate([torch.cat(together) for together in zip(*parts)], PAD, left=True)
    check_beam_reorder(direction, source, END, PAD, words=FEWEST, beams=2, steps=5)


LANGS = {lang: dictionary_with(*(f"{lang}{number}" for number in range(3))) for lang in "xzy"}


def lines_of(tokens):
    return ListDataset([torch.tensor(tokens)], np.array([len(tokens)]))


def task_of_two():
    task = object.__new__(MultiwayTranslationTask)
    task.requested, task.dictionaries = LanguagePair.parse("x+z-y"), LANGS
    task.pair = "x+z-y"
    return task


def joined_lines(monkeypatch, left=False, **sources):
    """The data set of x+z-y, of which each pair has one line."""

    def single(task, path, split, pair, combine):
        source, target = pair.split("-")
        sides = lines_of(sources[source]), lines_of([4, END])
        return LanguagePairDataset(
            sides[0], sides[0].sizes, LANGS[source], sides[1], sides[1].sizes, LANGS[target],
            left_pad_source=left, shuffle=False,
        )  # fmt: skip

    monkeypatch.setattr(StreamsTask, "_load_pair", single)
    return task_of_two()._load_pair("data", "test", "x+z-y", False)


@pytest.mark.parametrize("left", [True, False])
def test_sources_stand_in_one_row(left, monkeypatch):
    lines = joined_lines(monkeypatch, left, x=[4, 5, END], z=[6, END])
    assert lines[0]["source"].tolist() == [4, 5, END, 6, END] and lines.src_sizes.tolist() == [5]
    assert lines.left_pad_source == left and not lines.shuffle
    assert lines.src_dict.string(lines[0]["source"]) == "x0 x1 ||| z2"


@pytest.mark.parametrize("tokens", [[4, END, 5, END], [4, END, 5]])
@pytest.mark.parametrize("lang", "xz")
def test_a_source_that_ends_before_its_end_is_named(lang, tokens, monkeypatch):
    sides = {"x": [4, END], "z": [4, END], lang: tokens}
    with pytest.raises(ValueError, match=f"^data: line 1 of test in {lang}-y: holds '</s>' inside"):
        joined_lines(monkeypatch, **sides)


def test_directions_of_the_late_average_have_attention_where_it_is_asked_for():
    task, asked = task_of_two(), []
    task.cfg, task._need_attention = SimpleNamespace(source_average="late"), True
    task._directions([SimpleNamespace(directions=lambda *options: asked.append(options) or [])])
    assert asked == [("x+z-y", True)]


def test_several_sources_are_trained_one_by_one():
    requested = LanguagePair.parse("x+z-y")
    pairs = MultiwayTranslationTask.training_pairs(SimpleNamespace(lang_pairs=None), requested)
    assert pairs == ["x-y", "z-y"]


class Part:
    """Target sentences of a pair; None where there are none."""

    def __init__(self, *targets):
        self.tgt = None if None in targets else [torch.tensor(words) for words in targets]
        self.count = len(targets)

    def __len__(self):
        return self.count


@pytest.mark.parametrize(
    "parts, message",
    [
        (
            [Part([5, END], [6, END]), Part([5, END])],
            "test of xx-zz has 2 lines, of yy-zz 1; .* by",
        ),
        (
            [Part([5, END]), Part([5, END], [6, END])],
            "test of xx-zz has 1 lines, of yy-zz 2; .* by",
        ),
        ([Part([5, END]), Part([6, END])], "line 1 of test has different targets in xx-zz and yy"),
        ([Part([5, END]), Part(None)], "test of yy-zz has no sentences of zz, by which several"),
    ],
    ids=["fewer", "more", "different", "none"],
)
def test_sources_that_are_not_aligned_are_named(parts, message):
    pairs = ["xx-zz", "yy-zz"]
    check_aligned("data", "test", pairs, [parts[0], parts[0]])
    with pytest.raises(ValueError, match=f"^data: {message}"):
        check_aligned("data", "test", pairs, parts)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda entry: pickle.loads(pickle.dumps(entry))])
def test_their_dictionaries_reach_spawned_workers(copied):
    """A data set is pickled for the processes that load it where these are no forks."""
    words = [numbered_words(9), numbered_words(12)]
    joint = copied(JointDictionary(words))
    assert [other.symbols for other in joint.dictionaries] == [part.symbols for part in words]
    assert joint.string(torch.tensor([5, END, 6, END])) == JointDictionary(words).string(
        torch.tensor([5, END, 6, END])
    )
