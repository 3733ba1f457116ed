"""Tasks that train on several sets at once."""

from argparse import Namespace

import numpy as np
import pytest
import torch
from fairseq.data import (
    Dictionary,
    FairseqDataset,
    LanguagePairDataset,
    PrependTokenDataset,
    RoundRobinZipDatasets,
    TransformEosLangPairDataset,
)
from fairseq.data.noising import NoisingDataset


class Lines(FairseqDataset):
    """Lines of the given lengths, of different words."""

    def __init__(self, *lengths):
        self.sizes = np.array(lengths)
        self.lines = [torch.tensor([*range(4, 3 + length), 2]) for length in lengths]

    def __getitem__(self, index):
        return self.lines[index]

    def __len__(self):
        return len(self.lines)


@pytest.fixture
def words():
    dictionary = Dictionary()
    for number in range(40):
        dictionary.add_symbol(f"w{number}")
    return dictionary


def pairs(words, *lengths):
    lines = Lines(*lengths)
    return LanguagePairDataset(lines, lines.sizes, words, lines, lines.sizes, words, shuffle=False)


def filtered(words, limit, **sets):
    """The sentences of each set in an epoch."""
    zipped = RoundRobinZipDatasets({name: pairs(words, *sizes) for name, sizes in sets.items()})
    indices, _ = zipped.filter_indices_by_size(zipped.ordered_indices(), (limit, limit))
    assert len(indices) == len(zipped)
    items = [zipped[index] for index in indices]
    return {name: [item[name]["id"] for item in items] for name in sets}


def test_each_sentence_is_in_the_epoch(words):
    epoch = filtered(words, 10, de=[3, 30, 4, 30, 30, 30, 30], fr=[4, 5, 6, 7, 40], es=[3])
    assert epoch == {"de": [0, 2, 0, 2], "fr": [0, 1, 2, 3], "es": [0] * 4}
    assert filtered(words, 40, de=[3, 4, 5], fr=[4]) == {"de": [0, 1, 2], "fr": [0] * 3}


def test_a_set_without_short_sentences_is_named(words):
    with pytest.raises(ValueError, match="fr: no sentence is short enough"):
        filtered(words, 10, de=[3], fr=[20, 30])


def test_noise_depends_on_epoch_and_number(words):
    lines = Lines(30, 30)
    noise = {"max_word_shuffle_distance": 3, "word_dropout_prob": 0.2, "word_blanking_prob": 0.2}
    noisy = PrependTokenDataset(NoisingDataset(lines, words, seed=1, **noise), 5)
    denoised = LanguagePairDataset(noisy, noisy.sizes, words, lines, lines.sizes, words)
    denoised = TransformEosLangPairDataset(denoised, 2, 2, 2, 6)
    zipped = RoundRobinZipDatasets({"xx-DENOISE": denoised, "xx-BT": pairs(words, 30, 30)})
    zipped.ordered_indices()

    def sources(epoch):
        zipped.set_epoch(epoch)
        np.random.seed(epoch)  # what is drawn elsewhere has no influence
        return [zipped[index]["xx-DENOISE"]["source"].tolist() for index in range(2)]

    first, second = sources(1), sources(2)
    assert first[0] != first[1] and first[0] != second[0] and first[1] != second[1]
    assert sources(1) == first
    targets = [zipped[index]["xx-DENOISE"]["target"].tolist() for index in range(2)]
    assert targets == [line.tolist() for line in lines.lines]
    assert set(sum(first, [])) - {words.unk(), 5} < set(targets[0])


@pytest.mark.parametrize("seed", [1, 7])
def test_noise_depends_on_the_seed(words, monkeypatch, seed):
    from fairseq.tasks.online_backtranslation import OnlineBackTranslationTask
    from fairseq.tasks.semisupervised_translation import SemisupervisedTranslationTask

    lines = Lines(30, 30)
    monkeypatch.setattr("fairseq.data.data_utils.load_indexed_dataset", lambda *_: lines)
    monkeypatch.setattr("fairseq.data.indexed_dataset.dataset_exists", lambda *_, **__: True)
    noise = {"max_word_shuffle_distance": 3, "word_dropout_prob": 0.2, "word_blanking_prob": 0.2}
    args = Namespace(data="data", seed=seed, dataset_impl=None, left_pad_source=False, **noise)
    args.left_pad_target, args.encoder_langtok, args.decoder_langtok = False, None, False
    task = object.__new__(SemisupervisedTranslationTask)
    task.args, task.dicts, task.lang_pairs = args, {"xx": words, "yy": words}, ["xx-yy"]
    task.datasets, task.training, task.backtranslate_datasets = {}, True, {}
    task.lambda_parallel, task.lambda_otf_bt, task.lambda_denoising = 0.0, 0.0, 1.0
    task.lambda_parallel_steps = task.lambda_otf_bt_steps = task.lambda_denoising_steps = None
    task.load_dataset("train")
    pairs_of_noise = task.datasets["train"].datasets["denoising:xx-yy"]
    assert pairs_of_noise.src.seed == seed
    expected = NoisingDataset(lines, words, seed=seed, **noise)
    assert pairs_of_noise[1]["source"].tolist() == expected[1].tolist()

    task = object.__new__(OnlineBackTranslationTask)
    task.args, task.common_dict = args, words
    monkeypatch.setattr(task, "_langpair_dataset", lambda source, target: source, raising=False)
    monkeypatch.setattr(task, "_prepend_lang_bos_to_target", lambda dataset, lang: dataset)
    assert task.load_denoise_dataset("data", "xx").dataset.seed == seed


@pytest.mark.parametrize("names, sharded", [(["shard10", "shard2", "shard1"], True), ([], False)])
def test_shards_follow_each_other(names, sharded, tmp_path, words, monkeypatch):
    from fairseq.tasks.online_backtranslation import OnlineBackTranslationTask

    for name in names:
        (tmp_path / name).mkdir()
    args = Namespace(data=str(tmp_path), lambda_bt="1", lambda_dae="1")
    task = OnlineBackTranslationTask(args, words, ["xx", "yy"], ["xx-yy"])
    assert task.has_sharded_data("train") is sharded and not task.has_sharded_data("valid")
    read = []
    monkeypatch.setattr(task, "load_train_dataset", read.append)
    for epoch in (1, 2, 3, 4):
        task.load_dataset("train", epoch=epoch)
    folders = [tmp_path / name for name in ("shard1", "shard2", "shard10", "shard1")]
    assert read == [str(folder if sharded else tmp_path) for folder in folders]
