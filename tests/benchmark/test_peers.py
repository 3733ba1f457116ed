"""The script that trains and translates beside other toolkits; and what it says without them."""

import json
import sys

import pytest
import torch

from benchmarks import peers
from fairseq_ext.tools import UsageError


@pytest.fixture
def words(tmp_path):
    sizes = "--updates 1 --repeats 1 --max-tokens 100 --vocab 50 --train-sentences 60 --length 6"
    sizes += " --embed-dim 16 --layers 1 --ffn-embed-dim 16 --heads 2"
    return [*sizes.split(), "--sentences", "4", "--output", str(tmp_path / "found")]


def test_all_programs_work(words, tmp_path):
    for name in ("joeynmt", "transformers"):
        pytest.importorskip(name, reason=f"{name} is not installed (optional)")
    peers.main(words)
    results = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["results"]
    assert list(results) == [peers.STOCK, peers.SUITE, peers.JOEY, peers.MARIAN]
    for figures in results.values():
        assert figures["tokens/s"] > 0 and figures["sentences/s"] > 0


def test_without_joey_nmt(words, monkeypatch):
    monkeypatch.setitem(sys.modules, "joeynmt", None)
    monkeypatch.setitem(sys.modules, "joeynmt.model", None)
    with pytest.raises(UsageError, match="pip install joeynmt transformers"):
        peers.main(words)


def test_padding_goes_to_the_end():
    tokens = torch.tensor([[1, 1, 5, 6, 2], [4, 7, 8, 9, 2]])
    assert peers.left_aligned(tokens).tolist() == [[5, 6, 2, 1, 1], [4, 7, 8, 9, 2]]


def test_an_update_is_counted_in_target_tokens(words):
    """Padding is no target token."""

    class Plain(peers.Other):
        def __init__(self):
            self.pairs = [(torch.tensor([[4, 2]]), torch.tensor([[4, 2, 1], [5, 6, 2]]))]
            self._start(torch.nn.Linear(1, 1))

        def loss(self, source, target):
            return self.model(torch.ones(1, 1)).sum()

        def search(self, source):
            return source

    before = Plain()
    weight = before.model.weight.clone()
    assert before.train() == 5
    assert not torch.equal(weight, before.model.weight)  # and the model has moved
