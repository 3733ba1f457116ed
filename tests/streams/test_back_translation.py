"""What a batch of lines becomes: the pairs that fairseq-generate would give, and their update."""

import copy

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from streams.folders import random_lines, write_lines, write_pair
from streams.monolingual_runs import SYSTEMS, Run, write_data
from streams.support import Optimizer

from fairseq_ext.streams import back_translation
from fairseq_ext.streams.back_translation import _drawn_word, _moved_right

STREAM = "xx-yy@mono"
LINES = ["--monolingual", "xx,yy"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("lines"))


@pytest.fixture(scope="module")
def data_of(data, tmp_path_factory):
    """{system: its data}."""
    joined = write_data(tmp_path_factory.mktemp("joined"), joined=("xx", "yy", "zz"))
    return {system: joined if system == "tagged" else data for system in SYSTEMS}


def translated(run, batch, stream=STREAM, update=7):
    return run.task.back_translation(stream, batch[stream], run.model, update)


def sentences(tokens, pad=1):
    return [row[row.ne(pad)].tolist() for row in tokens]


def ends_sooner(run):
    """Models with random weights rarely end by themselves."""
    for name, parameter in run.model.named_parameters():
        if name.endswith("output.bias"):
            parameter.data[2] += 1.5
        if name.endswith("output_projection.weight"):
            parameter.data[2] *= 2


@pytest.mark.parametrize("more", [[], ["--left-pad-source"]], ids=["left", "right"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_sources_are_those_of_stock_beam_search_with_beam_1(system, more, data_of):
    """In training mode, with dropout: neither counts. --left-pad-source switches it off."""
    run = Run(data_of[system], *SYSTEMS[system], *LINES, *more)
    ends_sooner(run)
    run.model.train()
    batch = run.synthetic(STREAM)
    before = copy.deepcopy(batch)
    sample = translated(run, batch)
    assert run.model.training
    lines = batch[STREAM]["net_input"]
    direction = copy.deepcopy(run.model).eval().direction("yy-xx")
    marks = {pair: run.task.source_marks(pair) for pair in ("xx-yy", "yy-xx")}
    assert [len(tokens) for tokens in marks.values()] == [int(system == "routed")] * 2
    sources = sentences(sample["net_input"]["src_tokens"])
    for row, line in enumerate(sentences(lines["src_tokens"])):
        assert line == [*marks["yy-xx"], *sentences(batch[STREAM]["target"])[row]]
        search = SequenceGenerator(
            [direction],
            run.task.dictionaries["xx"],
            beam_size=1,
            max_len_a=0,
            max_len_b=2 * (len(line) - 1 - len(marks["yy-xx"])) + 10,
        )
        alone = {"src_tokens": torch.tensor([line]), "src_lengths": torch.tensor([len(line)])}
        expected = search.generate(None, {"net_input": alone})[0][0]["tokens"].tolist()
        assert sources[row] == [*marks["xx-yy"], *expected]
    tokens = sample["net_input"]["src_tokens"]
    lengths = tokens.ne(1).sum(dim=1)
    assert torch.equal(sample["net_input"]["src_lengths"], lengths)
    assert tokens[:, 0 if more else -1].ne(1).all(), "the padding is on the other side"
    # the rest is as it was, and the batch itself too
    assert sample["net_input"]["pair"] == "xx-yy" and sample["ntokens"] == before[STREAM]["ntokens"]
    assert torch.equal(sample["target"], before[STREAM]["target"])
    for name in ("src_tokens", "src_lengths", "prev_output_tokens"):
        assert torch.equal(before[STREAM]["net_input"][name], lines[name]), name


@pytest.mark.parametrize("system", SYSTEMS)
def test_an_update_is_one_on_the_pairs_that_were_made(system, data_of):
    """Loss and gradients: of X -> Y on (x', y) alone, as of any batch; Y -> X gets none of it."""
    run = Run(data_of[system], *SYSTEMS[system], *LINES, "--dropout", 0)
    batch = run.synthetic(STREAM)
    # main+aux trains the main pair as well
    others = {name: part for name, part in batch.items() if "@" not in name}
    real = {"xx-yy": translated(run, batch)}
    gradients = []
    for step in (real, {STREAM: batch[STREAM]}):
        assert not others or system == "routed"
        run.model.zero_grad(set_to_none=True)
        loss, size, log = run.task.train_step(step, run.model, run.criterion, Optimizer, 7)
        grads = {name: parameter.grad for name, parameter in run.model.named_parameters()}
        gradients.append((loss, size, log["ntokens"], grads))
    first, second = gradients
    assert torch.equal(first[0], second[0]) and first[1:3] == second[1:3]
    for name, gradient in first[3].items():
        both = gradient, second[3][name]
        assert (both == (None, None)) or torch.equal(*both), name
    assert log[f"{STREAM}:ntokens"] == log["ntokens"] and log["xx-yy:ntokens"] == 0


def test_the_tag_stands_behind_the_task_token(data):
    for system in ("dual", "routed"):
        run = Run(data, *SYSTEMS[system], *LINES, "--synthetic-tag")
        marks = [*run.task.source_marks("xx-yy"), run.task.dictionaries["xx"].bos()]
        sample = translated(run, run.synthetic(STREAM))
        for sentence in sentences(sample["net_input"]["src_tokens"]):
            assert sentence[: len(marks)] == marks and sentence[-1] == 2


def test_padding_to_a_multiple(data):
    run = Run(data, *SYSTEMS["dual"], *LINES, "--required-seq-len-multiple", 8)
    assert translated(run, run.synthetic(STREAM))["net_input"]["src_tokens"].size(1) % 8 == 0


def test_sources_are_no_longer_than_the_model_reads(data):
    flags = ["--max-source-positions", 9, "--synthetic-tag", "--monolingual-max-len", 6]
    flags += ["--skip-invalid-size-inputs-valid-test"]
    run = Run(data, *SYSTEMS["multiway"], *LINES, *flags)
    batches = [batch for batch in run.batches() if STREAM in batch]
    # six words and the end; the tag, the words of a model that rarely ends, and the end
    assert max(batch[STREAM]["target"].size(1) for batch in batches) == 7
    lengths = [translated(run, batch)["net_input"]["src_lengths"].max() for batch in batches]
    assert max(lengths) == 9


@pytest.mark.parametrize("method", ["sampling", "noised_beam"])
def test_randomness_is_of_seed_update_stream_and_sentence(method, data):
    run = Run(data, *SYSTEMS["dual"], *LINES, "--synthetic-sources", method)
    batch = run.synthetic(STREAM)

    def words(update, **changes):
        for name, value in changes.items():
            run.task.cfg[name] = value
        return sentences(translated(run, batch, update=update)["net_input"]["src_tokens"])

    first = words(7)
    assert words(7) == first and words(8) != first
    torch.manual_seed(99)
    assert words(7) == first, "not of what was drawn elsewhere"
    assert words(7, seed=4) != first and words(7, seed=3) == first
    # a sentence of the batch alone
    part = run.task.dataset("train").datasets[STREAM]
    numbers = batch[STREAM]["id"].tolist()
    alone = part.collater([part[numbers[2]]])
    alone["net_input"]["pair"] = "xx-yy"
    assert sentences(translated(run, {STREAM: alone})["net_input"]["src_tokens"]) == [first[2]]


@pytest.mark.parametrize("method", ["greedy", "sampling", "noised_beam"])
def test_no_source_is_longer_than_its_line_allows(method, data, tmp_path):
    """2 n + 10 words for a line of n, whichever lines are in its batch."""
    lines = {lang: random_lines(lang, 6) for lang in ("xx", "yy")}
    folder = write_pair(tmp_path, "train", "xx-yy", **lines)
    write_lines(folder, "train", "yy", [*lines["yy"], " ".join(lines["yy"]), "yy1"])
    flags = ["--monolingual", "yy", "--synthetic-sources", method, "--batch-size", 8]
    run = Run(folder, *SYSTEMS["dual"], *flags)
    run.batches()  # the first of the epochs of one real update has no other
    batch = run.synthetic(STREAM)
    allowed = 2 * (batch[STREAM]["net_input"]["src_lengths"] - 1) + 10
    assert allowed.max() > 3 * allowed.min()
    words = translated(run, batch)["net_input"]["src_lengths"] - 1
    assert (words <= allowed).all() and (words > 12).any()


def test_noised_sources_are_those_of_the_beam_without_the_noise(data, monkeypatch):
    flags = ["--synthetic-sources", "noised_beam", "--synthetic-beam", 3]
    run = Run(data, *SYSTEMS["multiway"], *LINES, *flags)
    ends_sooner(run)
    monkeypatch.setattr(back_translation, "noised", lambda words, lengths, *_: (words, lengths))
    batch = run.synthetic(STREAM)
    net_input = batch[STREAM]["net_input"]
    limit = 2 * (net_input["src_tokens"].size(1) - 1) + 10
    search = SequenceGenerator(
        [copy.deepcopy(run.model).eval().direction("yy-xx")],
        run.task.dictionaries["xx"],
        beam_size=3,
        max_len_a=0,
        max_len_b=limit,
    )
    inputs = {name: net_input[name] for name in ("src_tokens", "src_lengths")}
    expected = search.generate(None, {"net_input": inputs})
    sources = sentences(translated(run, batch)["net_input"]["src_tokens"])
    assert sources == [hypotheses[0]["tokens"].tolist() for hypotheses in expected]


def test_words_are_drawn_by_their_probabilities():
    logits = torch.tensor([[0.0, 1.0, -torch.inf, 2.0, -1.0]])
    draws = 20000
    ids = torch.arange(draws)
    words = _drawn_word(ids, 11, logits.expand(draws, -1), ids, 3)
    shares = torch.bincount(words, minlength=5) / draws
    torch.testing.assert_close(shares, logits.softmax(dim=1)[0], atol=0.012, rtol=0)
    assert shares[2] == 0


@pytest.mark.parametrize("draw, word", [(0.0, 1), (0.25, 2), (0.5, 3), (0.75, 4), (1.0, 4)])
def test_a_draw_at_the_edge_of_a_word_is_the_next_possible_word(draw, word, monkeypatch):
    """Four words of probability 1/4 behind one of 0: an exact sum is not above the draw."""
    monkeypatch.setattr(
        back_translation, "uniform", lambda rows, *_: torch.full((len(rows), 1), draw)
    )
    logits = torch.tensor([[-torch.inf, 0.0, 0.0, 0.0, 0.0]])
    ids = torch.tensor([7])
    assert _drawn_word(ids, 11, logits, torch.tensor([0]), 3).tolist() == [word]


def test_padding_moves_to_the_left():
    tokens = torch.tensor([[5, 6, 2, 1], [7, 2, 1, 1], [5, 6, 7, 2]])
    moved = _moved_right(tokens, torch.tensor([3, 2, 4]), 1)
    assert moved.tolist() == [[1, 5, 6, 2], [1, 1, 7, 2], [5, 6, 7, 2]]


def test_the_average_translates_where_it_is_asked_for(data):
    flags = [*SYSTEMS["dual"], *LINES, "--dropout", 0]
    plain, averaged = Run(data, *flags), Run(data, *flags, "--store-ema", "--synthetic-ema")
    assert averaged.task.uses_ema and not plain.task.uses_ema
    batch = plain.synthetic(STREAM)
    other = copy.deepcopy(plain.model)
    for parameter in other.parameters():
        parameter.data += torch.randn_like(parameter)
    losses = [
        run.task.train_step(batch, run.model, run.criterion, Optimizer, 7, ema_model=other)[0]
        for run in (plain, averaged)
    ]
    sample = averaged.task.back_translation(STREAM, batch[STREAM], other, 7)
    parts = {"xx-yy": sample}
    if "yy-xx@mono" in batch:
        parts["yy-xx"] = averaged.task.back_translation("yy-xx@mono", batch["yy-xx@mono"], other, 7)
    expected = averaged.task.train_step(parts, averaged.model, averaged.criterion, Optimizer, 7)
    assert torch.equal(losses[1], expected[0]) and not torch.equal(*losses)
