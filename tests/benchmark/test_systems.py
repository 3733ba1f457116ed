"""Every system of the benchmark trains, translates and says what it costs; none is timed."""

import mmap

import pytest
import torch
from benchmark.inline import Inline
from speed import families, limits, systems, translation
from speed.corpus import star
from speed.families import FAMILIES
from speed.products import Products

pytestmark = pytest.mark.slow  # other tests cover what is measured

# one of Transformers and one that is recurrent
FAST = ("dual", "multiway")


@pytest.mark.parametrize(
    "family",
    [pytest.param(name, marks=[pytest.mark.slow] * (name not in FAST)) for name in FAMILIES],
)
def test_a_family_works(family, tiny, data, tmp_path, monkeypatch):
    # test_products.py times products; here this would take long
    monkeypatch.setattr(Products, "seconds", lambda self: 0.5)
    monkeypatch.setattr(limits, "bandwidth", lambda size, device: 1e10)
    costs = {}
    for number, row in enumerate(families.rows(family, tiny)):
        folder = tmp_path / f"row {number}"
        folder.mkdir()
        member = Inline(row, data, folder, tiny)
        seconds, tokens = member.call("train")
        # each model has its own updates
        assert seconds > 0 and tokens > 2 * 2 * len(row.models)
        seconds, sentences = member.call("translate", 2, 4)
        assert seconds > 0 and sentences == 4
        costs[row.name] = member.call("training_cost")
        assert 0 < costs[row.name]["seconds"] <= 0.5 and costs[row.name]["bound"] == "products"
        # forward and backward: six operations for each parameter of the output layer at least
        assert costs[row.name]["operations"] > 6 * tiny.embed_dim * tiny.vocab
        searched = member.call("translation_cost", 2, 4)
        assert searched["operations"] > 2 * 2 * 5 * tiny.embed_dim * tiny.vocab
    assert [row.ours for row in families.rows(family, tiny)] == [False, True]
    stock, ours = costs.values()
    if family == "dual":
        assert ours["parameters"] < stock["parameters"]
    if family in ("duo", "twin_transformer", "twin_lstm"):
        assert ours["operations"] > 1.2 * stock["operations"]


def test_an_lstm_of_equal_operations(tiny, data):
    from speed.harness import rows_of

    tiny.context = 64
    stock, equal, ours = rows_of("multiway", data, tiny)
    assert equal.name == families.EQUAL and equal.models != stock.models
    expected = systems.operations_per_token(data, ours.models[0], tiny)
    operations = systems.operations_per_token(data, equal.models[0], tiny)
    # widths are multiples of eight: half of that to either side, here
    assert operations == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("system", families.SHARED)
def test_several_pairs_are_in_every_update(system, tiny, data):
    """Operations grow with the pairs: the update holds a minibatch of each."""
    costs = []
    for pairs in (1, 3):
        row = families.several_pairs(system, tiny, star(pairs))
        products = systems.System(data, row.models[0], tiny).products()
        costs.append(products.operations())
    assert costs[1] == pytest.approx(3 * costs[0], rel=0.4)


@pytest.mark.parametrize("family", ["dual", "duo", "multiway", "routed"])
def test_all_systems_have_the_same_batches_in_every_turn(family, tiny, data):
    """Otherwise one would be compared on longer sentences, or with more padding."""
    tiny.updates = 3
    rows = families.rows(family, tiny)
    table = [[systems.System(data, flags, tiny) for flags in row.models] for row in rows]
    tokens = [sum(member.seconds()[1] for member in members) for members in table]
    again = [sum(member.seconds()[1] for member in members) for members in table]
    assert tokens == again
    paddings = [
        tuple(map(sum, zip(*(member.padding() for member in members)))) for members in table
    ]
    assert tokens[0] == tokens[1]
    (padding, places), (same, others) = paddings
    assert padding == same
    # routed puts a token in front of every source
    more = sum(len(indices) for indices in table[0][0].indices) if family == "routed" else 0
    assert others == places + more


def test_minibatches_are_those_of_fairseq(tiny, data):
    """For a stock model fairseq's own, in the order of their lengths, whatever it shuffles."""
    system = systems.System(data, families.rows("duo", tiny)[0].models[0], tiny)
    batches = systems.minibatches(data, system.cfg.dataset)
    sizes = system.iterator.dataset.src_sizes
    assert sorted(sorted(sizes[batch]) for batch in batches) == sorted(
        sorted(sizes[batch]) for batch in system.iterator.frozen_batches
    )
    longest = [max(sizes[batch]) for batch in batches]
    assert longest == sorted(longest)


def test_batches_are_evenly_spaced():
    batches = [[0], [1, 1], [3, 4], [7], [8], [9, 2]]
    assert translation.spaced(batches, 3) == [[1, 1], [7], [9, 2]]
    assert translation.spaced(batches, 1) == [[7]]
    assert translation.spaced(batches[:1], 2) == 2 * [[0]]


def test_the_first_update_is_one(tiny, data, tmp_path):
    tiny.updates = 3
    for row in families.rows("dual", tiny):
        member = Inline(row, data, tmp_path, tiny).member
        assert [system.trainer.get_num_updates() for system in member.systems] == [1] * len(
            row.models
        )


def test_the_shortest_sentences_are_not_what_is_translated(tiny, data, tmp_path):
    member = Inline(families.rows("duo", tiny)[0], data, tmp_path, tiny).member
    translator = member._translator(1, 4)
    shortest = sorted(translator.task.dataset("valid").src_sizes)[:4]
    (batch,) = translator.batches
    assert sorted(batch["net_input"]["src_lengths"].tolist()) > shortest


def test_padding_is_counted(tiny, data):
    system = systems.System(data, families.rows("duo", tiny)[0].models[0], tiny)
    (batch,) = system.batches()
    sides = batch["net_input"]["src_tokens"], batch["target"]
    padding, places = system.padding()
    assert places == sum(side.numel() for side in sides)
    words = int((batch["net_input"]["src_lengths"]).sum()) + batch["ntokens"]
    assert padding == places - words


def test_corpus(data):
    from fairseq.data import Dictionary

    assert star(3) == ["aa-bb", "aa-cc", "aa-dd"]
    assert len(Dictionary.load(str(data / "dict.aa.txt"))) == 40
    lengths = [
        [len(line.split()) for line in (data.parent / f"train.{lang}").read_text().splitlines()]
        for lang in ("aa", "bb")
    ]
    # a sentence and its translation are about as long, sentences of different lines are not
    apart = [abs(first - second) for first, second in zip(*lengths)]
    shifted = [abs(first - second) for first, second in zip(lengths[0], lengths[1][1:])]
    assert sum(apart) / len(apart) < 0.7 * sum(shifted) / len(shifted)
    assert all((data / f"train.{pair}.aa.bin").exists() for pair in star(3))


def test_bf16_trains_and_translates(tiny, data, tmp_path):
    tiny.precision = "bf16"
    member = Inline(families.rows("multiway", tiny)[-1], data, tmp_path, tiny)
    assert member.call("translate", 1, 1)[1] == 8  # one at a time: several of them
    (model,) = member.member.translators[1, 1].models
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}


def test_peak_of_memory_is_seen(tiny):
    """Touching 64 MiB shows in the high-water mark, and setting it back takes it out again."""
    member = systems.Member.__new__(systems.Member)
    member.args, member.idle = tiny, 0
    member.forget_peak()
    before = member.peak()
    # straight from the kernel: the allocator may keep pages that the process has already
    pages = mmap.mmap(-1, 64 << 20)
    for page in range(0, 64 << 20, mmap.PAGESIZE):
        pages[page] = 1
    assert member.peak() >= before + (60 << 20)
    pages.close()
    if systems.os.access(systems.CLEAR_REFS, systems.os.W_OK):
        member.forget_peak()
        assert member.peak() <= before + (32 << 20)
