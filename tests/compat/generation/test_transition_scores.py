"""nacrf_transformer: the scores of words are those of the path that is written."""

import itertools

import torch
from fairseq.modules import DynamicCRF


def test_each_word_has_its_score_on_the_best_path():
    torch.manual_seed(1)
    crf = DynamicCRF(5, low_rank=3, beam_size=5)
    emissions = torch.randn(2, 4, 5)
    lengths = [4, 2]
    is_word = torch.arange(4) < torch.tensor(lengths)[:, None]
    with torch.no_grad():
        scores, words = crf.forward_decoder(emissions, is_word)
        transitions = crf.E1.weight @ crf.E2.weight.T
    for row, length in enumerate(lengths):
        paths = {}
        for path in itertools.product(range(5), repeat=length):
            steps = [emissions[row, 0, path[0]]] + [
                emissions[row, step, path[step]] + transitions[path[step - 1], path[step]]
                for step in range(1, length)
            ]
            paths[path] = torch.stack(steps)
        best = max(paths, key=lambda path: paths[path].sum())
        assert words[row, :length].tolist() == list(best)
        torch.testing.assert_close(scores[row, :length], paths[best])
        assert not scores[row, length:].any()
