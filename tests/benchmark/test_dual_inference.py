"""The script that measures dual inference, on a tiny model."""

import json
from argparse import Namespace

import pytest
from speed.translation import Translator

from benchmarks import dual_inference
from fairseq_ext.tools import UsageError


@pytest.fixture
def words(dual_checkpoint, toy_corpus, tmp_path):
    sizes = ["--gen-subset", "valid", "--sentences", "1", "4", "--repeats", "1", "--longest", "20"]
    files = [str(dual_checkpoint), str(toy_corpus.two), "--output", str(tmp_path / "found")]
    return [*files, "-s", "xx", "-t", "yy", "--limit", "8", *sizes]


@pytest.mark.slow
def test_figures_of_every_batch_size(words, tmp_path):
    dual_inference.main(words)
    results = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["results"]
    assert len(results) == 4
    for number in (1, 4):
        search = results[f"{number} at a time, search"]
        both = results[f"{number} at a time, search and re-ranking"]
        assert search["time ratio"] == search["operations ratio"] == 1
        assert both["operations ratio"] > 1 and both["sentences/s"] > 0
        assert 0 < both["share of the limit"] < 1 and len(both["turns"]) == 1
    assert "| 4 at a time, search and" in (tmp_path / "found.md").read_text(encoding="utf-8")


def test_some_of_the_batches(dual_checkpoint, toy_corpus):
    args = Namespace(data=toy_corpus.two, source_lang="xx", target_lang="yy", beam=2, longest=20)
    args.gen_subset = "valid"
    member = Translator(args, dual_checkpoint, "dual_translation", 4)
    ids = member.batches[1]["id"].tolist()
    assert list(member.translate(member.batches[1:2])) == ids and len(ids) <= 4
    assert len(member.translate()) == sum(len(batch["id"]) for batch in member.batches)


def test_plain_search_is_not_what_is_measured(words):
    with pytest.raises(UsageError, match="--alpha 1.0: must be at least 0 and less than 1"):
        dual_inference.main([*words, "--alpha", "1"])


@pytest.mark.parametrize(
    "sizes, limit, firsts",
    [
        ([1] * 10, 4, [1, 3, 6, 8]),
        ([4, 4, 4, 2], 4, [2]),
        ([4, 4, 4, 2], 1, [2]),
        ([4, 4, 4, 2], 100, [0, 1, 2, 3]),
    ],
)
def test_batches_are_evenly_spaced(sizes, limit, firsts):
    batches = [{"id": [number] * size} for number, size in enumerate(sizes)]
    some = dual_inference.some(batches, limit)
    assert [batch["id"][0] for batch in some] == firsts
