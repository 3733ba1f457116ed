"""Lengths that the search gives routed sentences: the task's token is no word."""

from types import SimpleNamespace

import pytest
import torch
from streams.directions import randomise

from properties import collate

PAD, END = 1, 2
SOURCES = [[5, 6, 7, 8], [9], [10, 11], [6, 6, 7], [8, 9, 10, 5, 5, 6]]


@pytest.mark.parametrize("left", [False, True], ids=["right-padded", "left-padded"])
def test_all_hypotheses_match_the_source(routed_task, left):
    """Also where a hypothesis that is one word longer has the better score."""
    task, model = routed_task()
    task.pair = "xx-zz"
    task.tgt_dict = task.dictionaries["zz"]
    model = randomise(model).float().eval()
    with torch.no_grad():
        model.targets["zz"].output.bias[4] += 12  # this word costs nearly nothing
    token = task.task_token("xx-zz")
    rows = [torch.tensor([token, *words, END]) for words in SOURCES]
    lengths = torch.tensor([len(row) for row in rows])
    sample = {"net_input": {"src_tokens": collate(rows, PAD, left=left), "src_lengths": lengths}}
    args = SimpleNamespace(beam=3, match_source_len=True)
    generator = task.build_generator([model], args)
    for words, nbest in zip(SOURCES, task.inference_step(generator, [model], sample)):
        finite = [hypothesis for hypothesis in nbest if hypothesis["score"] > -float("inf")]
        assert {len(hypothesis["tokens"]) for hypothesis in finite} == {len(words) + 1}


@pytest.mark.parametrize("search", [{}, {"no_repeat_ngram_size": 9}], ids=["own", "fairseq"])
def test_the_longest_hypothesis_counts_words(routed_task, search):
    """--max-len-a 2 allows 2 (S + 1) + b words, where S + 1 counts the end symbol as in fairseq."""
    task, model = routed_task()
    task.pair = "xx-zz"
    task.tgt_dict = task.dictionaries["zz"]
    model = randomise(model).float().eval()
    with torch.no_grad():
        model.targets["zz"].output.bias[END] -= 50
    token = task.task_token("xx-zz")
    sample = {
        "net_input": {
            "src_tokens": torch.tensor([[token, 5, 6, 7, END]]),
            "src_lengths": torch.tensor([5]),
        }
    }
    args = SimpleNamespace(beam=2, max_len_a=2, max_len_b=3, **search)
    generator = task.build_generator([model], args)
    (nbest,) = task.inference_step(generator, [model], sample)
    assert {len(hypothesis["tokens"]) for hypothesis in nbest} == {2 * 4 + 3 + 1}
