"""The shards of fairseq-generate, which are together the whole set, and its files of results."""

import errno

import pytest
from common import inprocess
from common.full_disk import largest_file
from options.systems import SYSTEMS, Data


@pytest.fixture(scope="module")
def words(toy_corpus, tmp_path_factory):
    system, data = SYSTEMS["dual_transformer"], Data(toy_corpus, tmp_path_factory.mktemp)
    folder = tmp_path_factory.mktemp("trained")
    trial = ["--max-update", 1, "--batch-size", 8, "--disable-validation", "--save-dir", folder]
    inprocess.train(*system.words(data["two"], *trial))
    last = folder / "checkpoint_last.pt"
    return system.inference_words(data["two"], last, "--batch-size", 5, "--max-len-b", 4)


def test_the_shards_are_the_whole_set(words):
    whole = inprocess.hypotheses(inprocess.generate(*words))
    shards = [
        inprocess.hypotheses(inprocess.generate(*words, "--num-shards", 2, "--shard-id", number))
        for number in range(2)
    ]
    assert all(shards) and not shards[0].keys() & shards[1].keys()
    assert {**shards[0], **shards[1]} == whole


def test_one_part_of_several_says_so(words):
    printed = inprocess.generate(*words, "--distributed-world-size", 2)
    assert "--distributed-world-size 2: this process translates one of 2 parts" in printed


def test_the_shards_write_to_folders_of_their_own(words, tmp_path):
    printed = {}
    for number in range(2):
        shard = ["--num-shards", 2, "--shard-id", number]
        printed[number] = inprocess.hypotheses(inprocess.generate(*words, *shard))
        inprocess.generate(*words, *shard, "--results-path", tmp_path)
    for number, hypotheses in printed.items():
        text = (tmp_path / f"shard{number}" / "generate-valid.txt").read_text(encoding="utf-8")
        assert hypotheses and inprocess.hypotheses(text) == hypotheses


def test_an_interrupted_generation_leaves_no_file_of_results(words, tmp_path, monkeypatch):
    from fairseq_cli import generate

    inprocess.generate(*words, "--results-path", tmp_path)
    file = tmp_path / "generate-valid.txt"
    whole = file.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert "Generate valid with beam=5" in whole

    def interrupted(**_arguments):
        raise KeyboardInterrupt

    file.unlink()
    monkeypatch.setattr(generate.utils, "post_process_prediction", interrupted)
    with pytest.raises(KeyboardInterrupt):
        inprocess.generate(*words, "--results-path", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{file.name}.part"]


def test_a_full_disk_is_named_with_the_file_of_results(words, tmp_path):
    with largest_file(300), pytest.raises(OSError) as caught:
        inprocess.generate(*words, "--results-path", tmp_path)
    assert caught.value.filename == str(tmp_path / "generate-valid.txt")
    assert caught.value.errno == errno.EFBIG
    assert [path.name for path in tmp_path.iterdir()] == ["generate-valid.txt.part"]


def test_a_generation_that_cannot_begin_leaves_nothing(words, tmp_path):
    with pytest.raises((OSError, ValueError), match="missing.pt"):
        inprocess.generate(*words, "--path", "missing.pt", "--results-path", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("scorer", ["bleu", "sacrebleu", "chrf"])
def test_a_shard_without_batches_says_so(words, scorer):
    shard = ["--num-shards", 100, "--shard-id", 99]
    output = inprocess.generate(*words, *shard, "--scoring", scorer)
    assert not inprocess.hypotheses(output)
    assert "Translated 0 sentences (0 tokens) in 0.0s (0.00 sentences/s, 0.00 tokens/s)" in output
    assert "Generate valid with beam=5: no sentence to score" in output
