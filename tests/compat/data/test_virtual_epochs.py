"""translation_multi_simple_epoch: which sentences an epoch has, also after an interruption."""

import shutil

import pytest
from common import inprocess
from fairseq.data import data_utils
from fairseq.trainer import Trainer

from fairseq_ext.compat.user_errors import OptionError

PAIRS = ("--lang-pairs", "xx-yy,xx-zz", "--langs", "xx,yy,zz", "--decoder-langtok")
TEMPERATURE = ("--sampling-method", "temperature", "--sampling-temperature", 5)


@pytest.fixture
def train(tiny_training, monkeypatch):
    """Function (data, save_dir, options...) -> the sources of each batch, by epoch."""
    epochs = {}
    step, begin = Trainer.train_step, Trainer.begin_epoch

    def begin_epoch(self, epoch):
        epochs[epoch] = []
        begin(self, epoch)

    def train_step(self, samples, *args):
        epochs[self._epoch()] += [sample["net_input"]["src_tokens"].tolist() for sample in samples]
        return step(self, samples, *args)

    monkeypatch.setattr(Trainer, "begin_epoch", begin_epoch)
    monkeypatch.setattr(Trainer, "train_step", train_step)
    monkeypatch.setattr(Trainer, "_epoch", lambda self: max(epochs), raising=False)

    def train(data, folder, *flags):
        epochs.clear()
        task = ("--task", "translation_multi_simple_epoch", *PAIRS, "--disable-validation")
        words = tiny_training[5:]  # without data and languages
        inprocess.train(data, *task, *words, "--save-dir", folder, *flags)
        return dict(epochs)

    return train


@pytest.fixture
def folders(toy_corpus, tmp_path):
    """Two data folders; the second one has 240 sentences of xx-yy and 24 of xx-zz."""
    other = tmp_path / "other"
    shutil.copytree(toy_corpus.three, other)
    for path in other.glob("valid.xx-zz.*"):
        shutil.copy(path, other / path.name.replace("valid", "train"))
    return f"{toy_corpus.three}:{other}"


def resumed(folder, name):
    other = folder.parent / f"from_{name}"
    other.mkdir()
    shutil.copy(folder / name, other / "checkpoint_last.pt")
    return other


def check_resuming(stops, train, data, folder, *flags):
    """Checkpoints go on with the batches of the run, which are returned by epoch."""
    whole = train(data, folder, *flags, "--save-interval-updates", 2)
    for stop in stops:
        name = min(path.name for path in folder.glob(f"checkpoint{stop}.pt"))
        again = train(data, resumed(folder, name), *flags, "--no-epoch-checkpoints")
        assert max(again) == max(whole)
        for epoch, batches in again.items():
            assert batches and batches == whole[epoch][-len(batches) :], (name, epoch)
    return whole


@pytest.mark.parametrize(
    "flags",
    [
        (),
        pytest.param(TEMPERATURE, marks=pytest.mark.slow),
        pytest.param(("--sampling-method", "RoundRobin"), marks=pytest.mark.slow),
    ],
    ids=["concat", "temperature", "round robin"],
)
def test_virtual_epochs_are_resumed(flags, train, toy_corpus, tmp_path):
    """Four epochs of 180 of the 480 sentences: the first three are a pass, as far as it goes."""
    flags = (*flags, "--virtual-epoch-size", 180, "--max-epoch", 4)
    whole = check_resuming(["1", "_2_*", "3"], train, toy_corpus.three, tmp_path / "run", *flags)
    assert [sum(map(len, whole[epoch])) for epoch in whole] == [180, 180, 120, 180]


def test_folders_are_resumed(train, folders, tmp_path):
    flags = (*TEMPERATURE, "--max-epoch", 3)
    check_resuming(["1", "_2_*", "2"], train, folders, tmp_path / "run", *flags)


def test_virtual_epochs_of_folders(train, folders, tmp_path):
    """Epochs 1 and 2 are of the first folder, 3 and 4 of the second one."""
    flags = (*TEMPERATURE, "--virtual-epoch-size", 100, "--virtual-data-size", 200)
    flags = (*flags, "--max-epoch", 4)
    whole = check_resuming(["1", "2", "3"], train, folders, tmp_path / "run", *flags)
    first = data_utils.load_indexed_dataset(folders.split(":")[0] + "/train.xx-yy.xx", None)
    lines = {tuple(line.tolist()) for line in first}
    for epoch, batches in whole.items():
        # padding on the left
        rows = {tuple(word for word in row if word != 1) for batch in batches for row in batch}
        assert (rows <= lines) == (epoch <= 2)


def test_passes_of_folders_have_one_length(train, folders, tmp_path):
    with pytest.raises(OptionError, match="--virtual-epoch-size 100 is not allowed with several"):
        train(folders, tmp_path, "--virtual-epoch-size", 100, "--max-epoch", 1)


def test_the_last_batch_is_skipped(train, toy_corpus, tmp_path):
    """--skip-remainder-batch is for this task too."""
    flags = ("--max-epoch", 1, "--max-sentences", 100)
    lengths = [
        [len(batch) for batch in train(toy_corpus.three, tmp_path / name, *flags, *more)[1]]
        for name, more in (("all", ()), ("whole", ("--skip-remainder-batch",)))
    ]
    assert lengths[1] == lengths[0][:-1] and len(lengths[0]) >= 4
