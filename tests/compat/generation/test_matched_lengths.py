"""--match-source-len: the n-best list of a sentence, alone and beside longer ones."""

import pytest
import torch
from common.words import numbered_words
from fairseq.search import LengthConstrainedBeamSearch
from fairseq.sequence_generator import SequenceGenerator

from fairseq_ext.common.beam_search import BeamSearchGenerator

PAD, END = 1, 2
ROWS = [[5, 6, 7, 8, END], [9, 4, END, PAD, PAD], [END, PAD, PAD, PAD, PAD]]


class Words(torch.nn.Module):
    """log P of the next word depends on the word before, and one word costs nearly nothing."""

    def __init__(self, words):
        super().__init__()
        torch.manual_seed(2)
        self.table = torch.randn(len(words), len(words))
        self.table[:, 4] += 9

    def forward(self, tokens):
        return self.table[tokens], None

    def get_normalized_probs(self, output, log_probs, sample=None):
        return output[0].log_softmax(2)


def nbest_lists(kind, rows, beam):
    """The n-best lists of the sources, as (tokens, score)."""
    words = numbered_words(20)
    search = LengthConstrainedBeamSearch(words, 1, 0, 1, 0)
    options = dict(beam_size=beam, match_source_len=True, search_strategy=search)
    generator = kind([Words(words)], words, **options)
    tokens = torch.tensor(rows)
    sample = {"net_input": {"src_tokens": tokens, "src_lengths": tokens.ne(PAD).sum(1)}}
    return [
        [(entry["tokens"].tolist(), entry["score"].item()) for entry in nbest]
        for nbest in generator.generate(None, sample)
    ]


@pytest.mark.parametrize("kind", [SequenceGenerator, BeamSearchGenerator])
def test_longer_sentences_take_no_place_of_others(kind):
    together = nbest_lists(kind, ROWS, 4)
    for row, nbest in zip(ROWS[:2], together):
        ((*alone,),) = nbest_lists(kind, [[word for word in row if word != PAD]], 4)
        assert [tokens for tokens, _ in nbest] == [tokens for tokens, _ in alone]
        assert [score for _, score in nbest] == pytest.approx([score for _, score in alone])
        assert {len(tokens) for tokens, _ in nbest} == {row.index(END) + 1}
    # there is one empty translation, and fairseq rules the others out
    assert [score > -torch.inf for _, score in together[2]] == [True, False, False, False]


@pytest.mark.parametrize("kind", [SequenceGenerator, BeamSearchGenerator])
def test_longer_sources_than_positions_are_refused(kind, monkeypatch):
    monkeypatch.setattr(Words, "max_decoder_positions", lambda self: 5, raising=False)
    assert len(nbest_lists(kind, ROWS, 2)) == 3  # four words and the end symbol
    monkeypatch.setattr(Words, "max_decoder_positions", lambda self: 4)
    with pytest.raises(ValueError, match="--match-source-len: a source has 4 words, .* most 3 "):
        nbest_lists(kind, ROWS, 2)
