"""The greedy search returns the words of fairseq's search with beam 1."""

import pytest
import torch
from common import toy
from fairseq.sequence_generator import SequenceGenerator

from fairseq_ext.common import greedy_search
from properties import collate, random_sentences


class Symbols(toy.WordDictionary):
    """What fairseq's generator asks of a dictionary."""

    def unk(self):
        return 3

    def bos(self):
        return 0


class WithoutAttention(toy.ToyDecoder):
    """Returns what fairseq's generator reads."""

    def forward(self, *words, **more):
        return super().forward(*words, **more)[0], {"attn": [None]}


@pytest.fixture(params=range(6))
def model(request):
    torch.manual_seed(request.param)
    built = toy.build(decoder=WithoutAttention).eval()
    # otherwise a random model rarely ends
    with torch.no_grad():
        built.decoder.output.bias[toy.END] += 1.0
    built.decoder.dictionary = Symbols()
    return built


def batch(lengths=(5, 1, 3, 7), seed=1):
    sentences = random_sentences(lengths, toy.WORDS, toy.END, seed=seed)
    tokens = collate(sentences, toy.PAD)
    return {"src_tokens": tokens, "src_lengths": tokens.ne(toy.PAD).sum(dim=1)}


def words_of(model, net_input, longest, **more):
    steps = int(longest.max())
    words, lengths = greedy_search.greedy_search(model, net_input, longest, steps, **more)
    assert words[torch.arange(words.size(1)) >= lengths.unsqueeze(1)].eq(toy.PAD).all()
    return [row[:length].tolist() for row, length in zip(words, lengths)]


# on a GPU rows that have ended stay for some steps
@pytest.mark.parametrize("one_in, every", [(8, 1), (8, 5), (1, 1)])
@pytest.mark.parametrize("seed", range(4))
def test_words_are_those_of_beam_search_with_beam_1(model, seed, one_in, every, monkeypatch):
    """Whether rows leave the batch when they have ended, or not before all have."""
    monkeypatch.setattr(greedy_search, "ENDED_ONE_IN", one_in)
    monkeypatch.setattr(greedy_search, "steps_between_checks", lambda source: every)
    net_input, limit = batch(seed=seed), 12
    search = SequenceGenerator([model], Symbols(), beam_size=1, max_len_a=0, max_len_b=limit)
    expected = search.generate([model], {"net_input": net_input})
    translated = words_of(model, net_input, torch.full((4,), limit))
    assert translated == [hypotheses[0]["tokens"][:-1].tolist() for hypotheses in expected]
    assert all(translated), "a translation has at least one word"


def test_each_sentence_has_its_limit(model):
    net_input = batch()
    free = words_of(model, net_input, torch.full((4,), 12))
    limits = torch.tensor([3, 1, 12, 2])
    assert words_of(model, net_input, limits) == [row[:n] for row, n in zip(free, limits)]


def test_a_sentence_is_translated_as_it_is_alone(model):
    net_input = batch()
    together = words_of(model, net_input, torch.full((4,), 12))
    for row, expected in enumerate(together):
        length = int(net_input["src_lengths"][row])
        alone = {
            "src_tokens": net_input["src_tokens"][row : row + 1, :length],
            "src_lengths": net_input["src_lengths"][row : row + 1],
        }
        assert words_of(model, alone, torch.tensor([12])) == [expected]


def test_the_choice_is_told_which_sentences_are_left(model):
    """Words that say which sentence and step they are of, with ends at different steps."""
    ends = torch.tensor([4, 1, 6, 2])

    def choose(logits, sentences, step):
        assert torch.isinf(logits[:, toy.PAD]).all()
        return torch.where(ends[sentences] <= step, toy.END, 4 + (sentences + step) % 9)

    translated = words_of(model, batch(), torch.full((4,), 12), choose=choose)
    assert translated == [
        [4 + (row + step) % 9 for step in range(end)] for row, end in enumerate(ends.tolist())
    ]


def test_no_gradient_is_noted(model):
    words, _ = greedy_search.greedy_search(model, batch(), torch.full((4,), 3), 3)
    assert not words.requires_grad and not words.is_inference()
