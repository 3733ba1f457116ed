"""Tasks that draw sentences of several languages anew in each epoch."""

import shutil

import numpy as np
import pytest
from common import inprocess

SIZES = ("--encoder-layers", 1, "--encoder-embed-dim", 8, "--encoder-ffn-embed-dim", 8)
SIZES += ("--encoder-attention-heads", 2)
DECODER = ("--decoder-layers", 1, "--decoder-embed-dim", 8, "--decoder-ffn-embed-dim", 8)
DECODER += ("--decoder-attention-heads", 2)
MASKED = ("--task", "multilingual_masked_lm", "--arch", "roberta_base", *SIZES)
DENOISED = ("--task", "multilingual_denoising", "--arch", "bart_base", *SIZES)
DENOISED += ("--mask-length", "span-poisson", "--replace-length", 1)
DENOISED += DECODER
MODELLED = ("--task", "multilingual_language_modeling", "--arch", "transformer_lm", *DECODER)
TASKS = pytest.mark.parametrize("words", [MASKED, DENOISED, MODELLED], ids=lambda w: w[1])


@pytest.fixture(scope="module")
def folder(toy_corpus, tmp_path_factory):
    """40 lines of one language and 10 of another."""
    folder = tmp_path_factory.mktemp("languages")
    shutil.copy(toy_corpus.dictionary, folder / "dict.txt")
    for language, number in (("xx", 40), ("yy", 10)):
        (folder / language).mkdir()
        lines = "".join(line + "\n" for line in toy_corpus.lines["xx"][:number])
        for split in ("train", "valid"):
            (folder / language / split).write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture
def loaded(folder):
    """Function (epoch, options...) -> a task that has read its training set."""
    from fairseq import options, tasks

    def loaded(epoch, *words):
        fixed = ("--dataset-impl", "raw", "--tokens-per-sample", 32, "--cpu")
        parser = options.get_training_parser()
        cfg = inprocess.configuration(
            parser, [folder, *words, *fixed, "--sample-break-mode", "eos"]
        )
        task = tasks.setup_task(cfg.task)
        task.load_dataset("train", epoch=epoch)
        return task

    return loaded


def batches(task, epoch):
    """The items of each batch of an epoch, in the order of their lengths."""
    iterator = task.get_batch_iterator(
        task.datasets["train"], max_tokens=60, max_positions=512, epoch=epoch
    )
    return [list(batch) for batch in iterator.frozen_batches]


@TASKS
def test_batches_depend_on_the_epoch_alone(words, loaded):
    """A run that goes on reads its set in that epoch."""
    alpha = ("--multilang-sampling-alpha", 0.5)
    uninterrupted = loaded(1, *words, *alpha)
    batches(uninterrupted, 1)
    later = batches(uninterrupted, 2)
    assert later == batches(loaded(2, *words, *alpha), 2)
    lengths = [uninterrupted.datasets["train"].size(item) for batch in later for item in batch]
    assert lengths == sorted(lengths) and len(set(lengths)) > 1


@TASKS
def test_everything_is_seen_unless_it_is_resampled(words, loaded):
    """With --multilang-sampling-alpha 1.0, the default."""
    dataset = loaded(1, *words).datasets["train"]
    for epoch in (1, 2):
        dataset.set_epoch(epoch)
        seen = [part._cur_indices.array for part in dataset.dataset.datasets]
        assert [sorted(numbers) for numbers in seen] == [list(range(40)), list(range(10))]


def test_data_may_be_resampled_whole():
    from fairseq.data import ListDataset, ResamplingDataset

    data = ListDataset(list(range(30)), np.ones(30))
    draws = [ResamplingDataset(data, size_ratio=1.0, replace=False, epoch=e) for e in (1, 2)]
    orders = [[draw[index] for index in range(len(draw))] for draw in draws]
    assert all(sorted(order) == list(range(30)) for order in orders) and orders[0] != orders[1]
    assert len(ResamplingDataset(data, size_ratio=0.5, replace=False)) == 15
    with pytest.raises(AssertionError):
        ResamplingDataset(data, size_ratio=1.5, replace=False)


LENGTHS = [3, 9, 4, 9, 3, 9, 3, 4, 3, 4]


@pytest.fixture
def drawn(toy_corpus):
    """Function (class of a set, options...) -> 20 items drawn from 10 of LENGTHS."""
    import torch
    from fairseq import data
    from fairseq.data.list_dataset import ListDataset
    from fairseq.data.resampling_dataset import ResamplingDataset

    words = data.Dictionary.load(str(toy_corpus.dictionary))
    lengths = np.array(LENGTHS)
    lines = ListDataset([torch.full((length,), 9) for length in LENGTHS], lengths)
    texts = (lines, lengths, words)

    def drawn(name, **options):
        whole = data.LanguagePairDataset(*texts, *texts) if name == "pairs" else None
        whole = whole or data.MonolingualDataset(*texts, shuffle=False)
        return ResamplingDataset(whole, size_ratio=2.0, **options)

    return drawn


def epoch_of(task, dataset, number, state=None):
    """The batches of an epoch as fairseq-train makes them, and what is left of them in a state."""
    iterator = task.get_batch_iterator(
        dataset, max_tokens=18, max_positions=(4, 4), ignore_invalid_inputs=True, epoch=number
    )
    if state is not None:
        iterator.load_state_dict(state)
    batches = iterator.next_epoch_itr(shuffle=False)
    first = next(batches)
    state = iterator.state_dict()
    return [first["id"].tolist(), *(batch["id"].tolist() for batch in batches)], state


@pytest.mark.parametrize("name", ["pairs", "lines"])
def test_a_set_of_drawn_items_is_trained_on(name, drawn):
    """As the outermost set: items have their lengths, epochs their draws, also when resumed."""
    from fairseq.tasks import FairseqTask

    dataset = drawn(name)
    assert dataset.sizes.reshape(20, -1).max() == 9
    first, _ = epoch_of(FairseqTask(None), dataset, 1)
    second, state = epoch_of(FairseqTask(None), dataset, 2)
    assert len(second) > 2 and second != first
    dataset.set_epoch(2)
    short, left_out = dataset.filter_indices_by_size(dataset.ordered_indices(), 4)
    assert max(dataset.num_tokens(item) for item in short) == 4
    assert {dataset.num_tokens(item) for item in left_out} == {9}
    assert len(short) == sum(map(len, second))
    lengths = [dataset.num_tokens(item) for item in dataset.ordered_indices()]
    assert lengths == sorted(lengths)
    # the numbers of the whole set, which the items themselves hold
    originals = dataset._cur_indices.array[short].tolist()
    assert sorted(sum(second, [])) == sorted(originals)
    resumed, _ = epoch_of(FairseqTask(None), drawn(name), 2, state)
    assert resumed == second[1:]


def test_items_may_keep_the_order_of_their_draw(drawn):
    dataset = drawn("lines", batch_by_size=False)
    assert dataset.ordered_indices().tolist() == list(range(20))
    assert not dataset.batch_by_size and drawn("lines").batch_by_size
    assert sum(len(batch) for batch in dataset.batch_by_size(range(20), max_tokens=18)) == 20
