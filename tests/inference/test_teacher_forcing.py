"""Batches of given targets: each row is its source with its target, wherever it stands."""

import pytest
import torch
from inference.stock import ALL

import fairseq_ext
from fairseq_ext.compat.generation.line_translator import Line
from fairseq_ext.inference.teacher_forcing import aligns_whole_targets, forced_batches

LINES = ["an1 av2 an3", "an4", "an5 av1"]


def batches(model, size=2):
    translator = model.translator(size, {})
    sources = [translator.source(Line(number, text)) for number, text in enumerate(LINES)]
    words = translator.target_dictionary
    targets = [torch.tensor([4 + n] * (n + 1) + [words.eos()]) for n in range(len(LINES))]
    return translator, sources, targets, list(forced_batches(translator, sources, targets))


@pytest.mark.parametrize("name", ["transformer", "routed_gru"])
def test_rows_know_their_places(name, data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of(name), data[ALL[name].data])
    translator, sources, targets, forced = batches(model)
    pad = translator.target_dictionary.pad()
    assert sorted(place for _, places in forced for place in places) == [0, 1, 2]
    assert [len(places) for _, places in forced] in ([2, 1], [1, 2])
    for sample, places in forced:
        inputs = sample["net_input"]
        for row, place in enumerate(places):
            target, previous = sample["target"][row], inputs["prev_output_tokens"][row]
            assert target[target.ne(pad)].tolist() == targets[place].tolist()
            assert previous[previous.ne(pad)].tolist() == [
                translator.target_dictionary.eos(), *targets[place].tolist()[:-1]
            ]  # fmt: skip
            read = inputs["src_tokens"][row]
            task_token = name == "routed_gru"
            assert read[read.ne(pad)].tolist()[task_token:] == sources[place].tokens.tolist()
        assert sample["ntokens"] == sum(len(targets[place]) for place in places)


def test_nothing_is_forced_without_rows(data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of("transformer"), data["two"])
    assert model.score([], []) == []


def test_models_that_align_whole_targets(data, checkpoint_of):
    """Only those see the words behind the one that they align: the others do not change."""
    for name, expected in (("full context", True), ("stock transformer_align", False)):
        model = fairseq_ext.load(checkpoint_of(name), data["two"])
        assert aligns_whole_targets(model.translator(2, {})) is expected
        first, second = model.score(["an1 av2"] * 2, ["un1 un2", "un1 uv3"])
        change = abs(first.attention[0] - second.attention[0]).max()
        assert bool(change > 1e-7) is expected
