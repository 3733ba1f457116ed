"""The beam search of common/beam_search.py against fairseq's own."""

import functools
import math

import pytest
import torch
from common.words import numbered_words
from fairseq import search, utils
from fairseq.models import (
    FairseqDecoder,
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
)
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment
from torch import nn

from fairseq_ext.common import beam_search, search_record
from fairseq_ext.common.beam_search import BeamSearchGenerator, BeamSearchWithAlignment

SENTENCES, LENGTH = 7, 5


@pytest.fixture(autouse=True)
def words_in_chunks(monkeypatch):
    """Also of the small vocabularies here."""
    monkeypatch.setattr(search_record, "SORTED_WHOLE", 0)


class Encoder(FairseqEncoder):
    def __init__(self, words):
        super().__init__(words)
        self.table = nn.Embedding(len(words), 6)

    def forward(self, src_tokens, src_lengths=None, **_unused):
        return {"states": self.table(src_tokens)}

    def reorder_encoder_out(self, encoder_out, new_order):
        return {"states": encoder_out["states"].index_select(0, new_order)}

    def max_positions(self):
        return 100


class Decoder(FairseqIncrementalDecoder):
    """A sum over all words so far, kept in the incremental state; ends become likely with time."""

    def __init__(self, words, spoilt):
        super().__init__(words)
        self.table = nn.Embedding(len(words), 6)
        self.output = nn.Linear(6, len(words))
        self.spoilt, self.eos = spoilt, words.eos()

    def forward(self, prev_output_tokens, encoder_out=None, incremental_state=None, **_unused):
        newest = self.table(prev_output_tokens[:, -1])
        before = incremental_state.get("sum", 0)
        incremental_state["sum"] = state = torch.sin(newest + before)
        source = encoder_out["states"]
        attention = (source @ state.unsqueeze(2)).squeeze(2).softmax(1)
        logits = 3 * self.output(state + (attention.unsqueeze(2) * source).sum(1))
        length = prev_output_tokens.size(1)
        logits[:, self.eos] += length - 5
        if self.spoilt and length == 3:
            logits[prev_output_tokens[:, -1] % 3 == 0] = math.nan
            logits[prev_output_tokens[:, -1] % 3 == 1, 6:] = -math.inf
        return logits.unsqueeze(1), {"attn": [attention.unsqueeze(1)]}

    def reorder_incremental_state(self, incremental_state, new_order):
        incremental_state["sum"] = incremental_state["sum"].index_select(0, new_order)

    def max_positions(self):
        return 100


def model(words, seed=0, spoilt=False):
    torch.manual_seed(seed)
    return FairseqEncoderDecoderModel(Encoder(words), Decoder(words, spoilt)).eval()


def sample(words):
    torch.manual_seed(1)
    tokens = torch.randint(4, len(words), (SENTENCES, LENGTH))
    tokens[:, -1] = words.eos()
    lengths = torch.full((SENTENCES,), LENGTH)
    previous = tokens.roll(1, dims=1)
    net_input = {"src_tokens": tokens, "src_lengths": lengths, "prev_output_tokens": previous}
    return {"id": torch.arange(SENTENCES), "net_input": net_input}


def same(lists, expected):
    assert len(lists) == len(expected)
    for ours, theirs in zip(lists, expected):
        assert [hypothesis["tokens"].tolist() for hypothesis in ours] == [
            hypothesis["tokens"].tolist() for hypothesis in theirs
        ]
        for hypothesis, reference in zip(ours, theirs):
            for name in ("score", "positional_scores", "attention"):
                torch.testing.assert_close(hypothesis[name], reference[name])
            assert list(hypothesis["alignment"]) == list(reference["alignment"])


OPTIONS = {
    "plain": {},
    "one": {"beam_size": 1},
    "wide": {"beam_size": 9},
    "short": {"max_len_b": 3},
    # with few words there are fewer continuations than hypotheses wanted once one has ended
    "empty": {"beam_size": 9, "min_len": 0},
    "long": {"min_len": 7},
    "exact": {"min_len": 4, "max_len_b": 4},
    "relative": {"min_len": 5, "max_len_a": 0.8, "max_len_b": 1},
    "sums": {"normalize_scores": False},
    "penalties": {"len_penalty": 0.3, "unk_penalty": 2.0, "temperature": 1.7},
    "short_first": {"len_penalty": -1, "min_len": 0},  # a whole number, as JSON has it
    "suppressed": {"tokens_to_suppress": ("w3", "w7")},
    "begin": {"eos": 5},
}


@pytest.mark.parametrize("size", [7, 9, 40, 203])
@pytest.mark.parametrize("name", OPTIONS)
def test_hypotheses_are_those_of_fairseq(name, size):
    words = numbered_words(size)
    options = {"beam_size": 4, "max_len_b": 12, **OPTIONS[name]}
    if size < 10:
        options.pop("tokens_to_suppress", None)
    ours, stock = (
        kind([model(words)], words, **options) for kind in (BeamSearchGenerator, SequenceGenerator)
    )
    same(ours.generate(None, sample(words)), stock.generate(None, sample(words)))


def test_the_toy_ends_its_sentences_at_different_steps():
    words = numbered_words(40)
    stock = SequenceGenerator([model(words)], words, beam_size=4, max_len_b=12)
    lists = stock.generate(None, sample(words))
    assert len({max(len(hypothesis["tokens"]) for hypothesis in nbest) for nbest in lists}) > 1


class OtherDecoder(Decoder):
    def reorder_incremental_state_scripting(self, incremental_state, new_order):
        self.reorder_incremental_state(incremental_state, new_order)


class WholeDecoder(FairseqDecoder):
    """Not incremental: it reads all words at every step."""

    def __init__(self, words):
        super().__init__(words)
        self.inside = Decoder(words, False)

    def forward(self, prev_output_tokens, encoder_out=None, **_unused):
        state = {}
        for length in range(1, prev_output_tokens.size(1) + 1):
            decoded = self.inside(prev_output_tokens[:, :length], encoder_out, state)
        return decoded

    def max_positions(self):
        return 100


@pytest.mark.parametrize("beam", [1, 4])
def test_other_decoders(beam):
    words = numbered_words(40)
    expected = SequenceGenerator([model(words)], words, beam_size=beam, max_len_b=12)
    expected = expected.generate(None, sample(words))
    for kind in (lambda: OtherDecoder(words, False), lambda: WholeDecoder(words)):
        other = model(words)
        decoder = kind()
        getattr(decoder, "inside", decoder).load_state_dict(other.decoder.state_dict())
        other.decoder = decoder.eval()
        ours = BeamSearchGenerator([other], words, beam_size=beam, max_len_b=12)
        same(ours.generate(None, sample(words)), expected)


@pytest.mark.parametrize("beam", [1, 4])
def test_rows_move_only_when_they_have_to(beam):
    """The source when sentences leave; the state also when hypotheses change places."""
    words, moved = numbered_words(40), {"source": [], "state": []}
    watched = model(words)
    for part, name, key in (
        (watched.encoder, "reorder_encoder_out", "source"),
        (watched.decoder, "reorder_incremental_state", "state"),
    ):
        function = getattr(part, name)

        def watch(value, new_order, function=function, key=key):
            moved[key].append(len(new_order) // beam)
            return function(value, new_order)

        setattr(part, name, watch)
    generator = BeamSearchGenerator([watched], words, beam_size=beam, max_len_b=12)
    generator.generate(None, sample(words))
    assert len(set(moved["source"])) == len(moved["source"]) > 2
    assert moved["source"] == sorted(moved["source"], reverse=True)
    if beam == 1:
        assert moved["state"] == moved["source"][1:]


@pytest.mark.parametrize("every", [2, 5])
def test_sentences_may_stay_longer_than_needed(monkeypatch, every):
    words = numbered_words(40)
    generator = BeamSearchGenerator([model(words)], words, beam_size=4, max_len_b=12)
    stock_search = SequenceGenerator([model(words)], words, beam_size=4, max_len_b=12)
    monkeypatch.setattr(beam_search, "steps_between_checks", lambda source: every)
    same(generator.generate(None, sample(words)), stock_search.generate(None, sample(words)))


def test_ensemble_and_words_that_are_no_numbers():
    words = numbered_words(40)
    for models in ([model(words), model(words, 5)], [model(words, spoilt=True)]):
        ours, stock = (
            kind(models, words, beam_size=4, max_len_b=12)
            for kind in (BeamSearchGenerator, SequenceGenerator)
        )
        same(ours.generate(None, sample(words)), stock.generate(None, sample(words)))


def test_a_sentence_without_a_finite_hypothesis_is_named():
    words = numbered_words(40)
    broken = model(words)
    for parameter in broken.parameters():
        parameter.data.fill_(float("nan"))
    generator = BeamSearchGenerator([broken], words, beam_size=4, max_len_b=12)
    with pytest.raises(RuntimeError, match="sentence 1 of the batch: no hypothesis has a finite"):
        generator.generate(None, sample(words))


def test_alignments():
    words = numbered_words(40)
    ours, stock = (
        kind([model(words)], words, beam_size=2, max_len_b=12)
        for kind in (BeamSearchWithAlignment, SequenceGeneratorWithAlignment)
    )
    same(ours.generate(None, sample(words)), stock.generate(None, sample(words)))


def few_hypotheses(**options):
    """(generator, its batch): five words can stand alone, for a beam of six."""
    words = numbered_words(7)
    generator = BeamSearchWithAlignment([model(words)], words, beam_size=6, max_len_b=1, **options)
    return generator, sample(words)


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_alignments_of_fewer_hypotheses_than_the_beam_has_places(kind):
    generator, batch = few_hypotheses(print_alignment=kind)
    extract = {"hard": utils.extract_hard_alignment, "soft": utils.extract_soft_alignment}[kind]
    sentences = generator.generate(None, batch)
    assert {len(nbest) for nbest in sentences} == {5}
    for source, nbest in zip(batch["net_input"]["src_tokens"], sentences):
        for hypothesis in nbest:
            attention, tokens = hypothesis["attention"].t(), hypothesis["tokens"]
            expected = extract(attention, source, tokens, generator.pad, generator.eos)
            assert list(hypothesis["alignment"]) == list(expected)


def test_models_that_align_by_themselves_read_a_row_for_each_hypothesis(monkeypatch):
    generator, batch = few_hypotheses()
    generator.model.models[0].full_context_alignment = True
    rows = []

    def align(source, lengths, previous):
        rows.extend(zip(source.tolist(), lengths.tolist(), previous.tolist()))
        return torch.eye(LENGTH)[:2].repeat(len(source), 1, 1)  # target word t is source word t

    monkeypatch.setattr(generator.model, "forward_align", align)
    sentences = generator.generate(None, batch)
    tokens = batch["net_input"]["src_tokens"].tolist()
    assert rows == [
        (source, LENGTH, [generator.eos, *hypothesis["tokens"].tolist()[:-1]])
        for source, nbest in zip(tokens, sentences)
        for hypothesis in nbest
    ]
    assert all(list(entry["alignment"]) == [(0, 0)] for nbest in sentences for entry in nbest)


def test_other_searches_are_fairseqs(monkeypatch):
    words = numbered_words(40)
    monkeypatch.setattr(BeamSearchGenerator, "_search", None)  # would fail if it were called
    for options, more in (
        ({"search_strategy": search.DiverseBeamSearch(words, 2, 0.5)}, {}),
        ({"no_repeat_ngram_size": 2}, {}),
        ({}, {"prefix_tokens": torch.full((SENTENCES, 2), 6)}),
    ):
        ours, stock = (
            kind([model(words)], words, beam_size=4, max_len_b=12, **options)
            for kind in (BeamSearchGenerator, SequenceGenerator)
        )
        same(
            ours.generate(None, sample(words), **more), stock.generate(None, sample(words), **more)
        )


class WithoutWord(search.BeamSearch):
    """A search that never chooses a word."""

    def __init__(self, words, word):
        super().__init__(words)
        self.word = word

    def step(self, step, lprobs, *more):
        lprobs[:, :, self.word] = -math.inf
        return super().step(step, lprobs, *more)


def of_a_class(generator, strategy, monkeypatch):
    generator.search = strategy


def on_the_instance(generator, strategy, monkeypatch):
    generator.search.step = strategy.step


def on_the_class(generator, strategy, monkeypatch):
    stock = search.BeamSearch.step

    @functools.wraps(stock)
    def step(self, step, lprobs, *more):
        lprobs[:, :, strategy.word] = -math.inf
        return stock(self, step, lprobs, *more)

    monkeypatch.setattr(search.BeamSearch, "step", step)


@pytest.mark.parametrize("slope", [0, 0.5])
@pytest.mark.parametrize("replace", [of_a_class, on_the_instance, on_the_class])
def test_a_step_of_a_program_is_taken(replace, slope, monkeypatch):
    words = numbered_words(40)
    generator = BeamSearchGenerator([model(words)], words, max_len_a=slope, max_len_b=12)
    word = generator.generate(None, sample(words))[0][0]["tokens"][0]
    replace(generator, WithoutWord(words, word), monkeypatch)
    for _batch in range(2):
        lists = generator.generate(None, sample(words))
        assert not any(word in entry["tokens"] for nbest in lists for entry in nbest)


def test_the_environment_leaves_the_search_to_fairseq(monkeypatch):
    words = numbered_words(40)
    monkeypatch.setattr(BeamSearchGenerator, "_search", None)  # would fail if it were called
    monkeypatch.setenv("FAIRSEQ_EXT_SEARCH", "0")
    ours, stock = (
        kind([model(words)], words, beam_size=4, max_len_b=12)
        for kind in (BeamSearchGenerator, SequenceGenerator)
    )
    same(ours.generate(None, sample(words)), stock.generate(None, sample(words)))


def test_bad_lengths():
    words = numbered_words(40)
    generator = BeamSearchGenerator([model(words)], words, min_len=9, max_len_b=5)
    with pytest.raises(ValueError, match="--min-len 9: allowed: up to 5"):
        generator.generate(None, sample(words))
