"""BART and mBART: several inputs at once, and noise that is the same in a resumed training."""

import shutil

import numpy as np
import pytest
import torch
from common import inprocess
from common.checkpoints import compared, differences

from fairseq_ext.compat.data.denoising import stripped_sizes

SIZES = ("--encoder-layers", 1, "--encoder-embed-dim", 8, "--encoder-ffn-embed-dim", 8)
SIZES += ("--decoder-layers", 1, "--decoder-embed-dim", 8, "--decoder-ffn-embed-dim", 8)
SIZES += ("--encoder-attention-heads", 2, "--decoder-attention-heads", 2)
NOISE = ("--mask", 0.4, "--mask-random", 0.3, "--mask-length", "span-poisson")
NOISE += ("--replace-length", 1, "--insert", 0.3, "--rotate", 0.5, "--permute-sentences", 0.5)
INPUTS = ["<s> an1 <mask> an2 </s>", "<s> an3 <mask> </s>", "<s> an1 av1 </s> an2 <mask> </s>"]


@pytest.fixture(scope="module")
def data(toy_corpus, tmp_path_factory):
    """Lines of text in the folder itself, for `denoising`, and in one of a language."""
    folder = tmp_path_factory.mktemp("denoising")
    shutil.copy(toy_corpus.dictionary, folder / "dict.txt")
    (folder / "xx").mkdir()
    for split, number in (("train", 40), ("valid", 8)):
        lines = "".join(line + "\n" for line in toy_corpus.lines["xx"][:number])
        for place in (folder, folder / "xx"):
            (place / split).write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture
def words(data):
    """Function (task, options...) -> the arguments of a training."""
    fixed = ("--dataset-impl", "raw", "--arch", "bart_base", *SIZES, "--share-all-embeddings")
    fixed += ("--layernorm-embedding", "--tokens-per-sample", 32, "--max-tokens", 60, *NOISE)
    return lambda task, *options: [data, "--task", task, *fixed, *options]


@pytest.fixture
def configured(words):
    """Function (task, options...) -> (configuration, task)."""
    from fairseq import options, tasks

    def configured(*arguments):
        parser = options.get_training_parser()
        cfg = inprocess.configuration(parser, [*words(*arguments), "--cpu"])
        return cfg, tasks.setup_task(cfg.task)

    return configured


TASKS = pytest.mark.parametrize("task", ["denoising", "multilingual_denoising"])


@TASKS
@pytest.mark.parametrize("mode", ["complete_doc", "complete", "none", "eos"])
def test_each_input_is_an_item(mode, task, configured):
    _, built = configured(task, "--sample-break-mode", mode)
    encode = built.source_dictionary.encode_line
    inputs = [encode(line, append_eos=False).long() for line in INPUTS]
    items = built.build_dataset_for_inference(inputs, [len(item) for item in inputs])
    batch = items.collater([items[index] for index in range(len(items))])
    pad = built.source_dictionary.pad()
    rows = [row[row.ne(pad)].tolist() for row in batch["net_input"]["src_tokens"]]
    assert rows == [item.tolist() for item in inputs]
    assert built.args.sample_break_mode == mode  # that of the training remains


class Words:
    """A sub-word coder whose sub-words are words."""

    def encode(self, text):
        return text

    def decode(self, text):
        return text


def test_masks_are_filled_in_each_input(configured):
    from fairseq.models.bart.hub_interface import BARTHubInterface

    cfg, task = configured("denoising")
    torch.manual_seed(1)
    hub = BARTHubInterface(cfg, task, task.build_model(cfg.model).eval()).eval()
    hub.bpe = Words()
    inputs = ["an1 <mask> an2", "an3 <mask>", "<mask> an4 av1 an5"]
    together = hub.fill_mask(inputs, topk=2)
    alone = [hub.fill_mask([text], topk=2)[0] for text in inputs]
    assert [[text for text, _ in row] for row in together] == [
        [text for text, _ in row] for row in alone
    ]


def test_noise_depends_on_seed_epoch_and_number(configured):
    _, task = configured("denoising")
    task.load_dataset("train")
    dataset = task.datasets["train"]

    def items(epoch):
        dataset.set_epoch(epoch)
        return [dataset[index]["source"].tolist() for index in range(len(dataset))]

    torch.manual_seed(1)
    before = torch.get_rng_state()
    first, second = items(1), items(2)
    assert torch.equal(torch.get_rng_state(), before)  # dropout goes on as without noise
    torch.manual_seed(2)
    assert items(1) == first and items(2) == second and first != second
    dataset.seed += 1
    assert items(1) != first


@pytest.fixture
def documents(data, tmp_path):
    """Function () -> (folder with binarised documents that empty lines separate, their tokens)."""
    from fairseq.data import Dictionary
    from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

    shutil.copy(data / "dict.txt", tmp_path / "dict.txt")
    words = Dictionary.load(str(tmp_path / "dict.txt"))
    draw = np.random.RandomState(1)
    lengths = [5, 4, 0, 4, 7, 1, 0, 0, 3, 6, 2]
    lines = [draw.randint(words.nspecial, len(words), size=length).tolist() for length in lengths]
    builder = MMapIndexedDatasetBuilder(str(tmp_path / "train.bin"), dtype=np.uint16)
    for line in lines:
        builder.add_item(torch.tensor([*line, words.eos()]))
    builder.finalize(str(tmp_path / "train.idx"))
    return tmp_path, [sum(lines[first:last], []) for first, last in ((0, 2), (3, 6), (8, 11))]


@pytest.mark.parametrize("mode", ["none", "complete", "complete_doc", "eos"])
def test_each_word_is_in_one_block(mode, documents, configured):
    folder, texts = documents
    options = ("--sample-break-mode", mode, "--tokens-per-sample", 11, "--dataset-impl", "mmap")
    _, task = configured("denoising", *options)
    task.args.data = str(folder)
    task.load_dataset("train")
    dataset = task.datasets["train"].dataset
    blocks = [dataset[index].tolist() for index in range(len(dataset))]
    assert dataset.sizes.tolist() == [len(block) for block in blocks]
    bos, eos = task.source_dictionary.bos(), task.source_dictionary.eos()
    assert all(block[0] == bos and block[-1] == eos for block in blocks)
    blocks = [block[1:-1] for block in blocks]
    assert sum(blocks, []) == sum(texts, [])
    ends, block_ends = (np.cumsum([len(part) for part in parts]) for parts in (texts, blocks))
    if mode == "none":
        assert [len(block) for block in blocks] == [9, 9, 9, 5]
    if mode == "complete_doc":
        assert set(ends) <= set(block_ends)


def test_symbols_are_removed_however_many_they_are(tmp_path):
    from fairseq.data import ConcatDataset, MMapIndexedDataset
    from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

    builder = MMapIndexedDatasetBuilder(str(tmp_path / "x.bin"), dtype=np.int32)
    for line in ([2, 5, 2, 6, 2, 2], [2], [5], [2, 2], [5, 2], [2, 5], [6, 6, 2, 2]):
        builder.add_item(torch.tensor(line))
    builder.finalize(str(tmp_path / "x.idx"))
    lines = MMapIndexedDataset(str(tmp_path / "x"))
    assert stripped_sizes(lines, 2).tolist() == [3, 0, 1, 0, 1, 1, 2]
    assert stripped_sizes(ConcatDataset([lines, lines]), 2).tolist() == [3, 0, 1, 0, 1, 1, 2] * 2


@TASKS
@pytest.mark.parametrize("position, workers", [(0, 0), (3, 0), (0, 1), (3, 1)])
def test_a_resumed_epoch_has_the_same_batches(position, workers, task, configured):
    _, built = configured(task, "--sample-break-mode", "eos")
    built.load_dataset("train")

    def iterator():
        return built.get_batch_iterator(
            built.datasets["train"],
            max_tokens=60,
            num_workers=workers,
            disable_iterator_cache=True,
        )

    def sources(batches):
        rows = []
        for batch in batches:
            rows.append(batch["net_input"]["src_tokens"].tolist())
            torch.rand(3)  # as dropout does
        return rows

    whole, again = iterator(), iterator()
    torch.manual_seed(1)
    sources(whole.next_epoch_itr())
    state = whole.state_dict()
    second = whole.next_epoch_itr()
    batches = sources(next(second) for _ in range(position))
    if position:
        state = whole.state_dict()
    batches += sources(second)
    again.load_state_dict(state)
    torch.manual_seed(5)
    assert sources(again.next_epoch_itr()) == batches[position:] and len(batches) > position
    for batches in (whole, again):  # the processes end now, not at some time
        batches._cur_epoch_itr = batches.dataloader = None
    del second


def test_a_resumed_training_is_the_uninterrupted_one(words, tmp_path):
    limits = ("--max-epoch", 2, "--seed", 1, "--sample-break-mode", "eos", "--lr", 0.01)
    command = [*words("denoising", *limits), "--criterion", "cross_entropy"]
    whole = inprocess.train(*command, "--save-dir", tmp_path / "whole")
    (tmp_path / "again").mkdir()
    shutil.copy(tmp_path / "whole" / "checkpoint1.pt", tmp_path / "again" / "checkpoint_last.pt")
    again = inprocess.train(*command, "--save-dir", tmp_path / "again")
    ends = [compared(tmp_path / name / "checkpoint_last.pt") for name in ("whole", "again")]
    assert differences(*ends) == []
    losses = [[row["valid_loss"] for row in rows if "valid_loss" in row] for rows in (whole, again)]
    assert losses[0][1:] == losses[1] and len(losses[1]) == 1
