"""Options of the data in the tasks that read it themselves: classification and captions."""

import shutil

import pytest
from common import inprocess
from options.systems import SYSTEMS

TRIAL = ["--max-epoch", 1, "--batch-size", 8, "--no-save", "--log-interval", 100]


def trained(data, system, folder, *more):
    """Records of a training, without times."""
    records = inprocess.train(*SYSTEMS[system].words(folder), *TRIAL, *more)
    times = ("wps", "ups", "wall")
    return [
        {name: value for name, value in record.items() if not name.endswith(times)}
        for record in records
    ]


@pytest.fixture
def halves(data, tmp_path):
    """The classifier's data, the training and validation sets in two files each."""
    folder = tmp_path / "halves"
    shutil.copytree(data["reviews"], folder)
    for split in ("train", "valid"):
        for path in list(folder.glob("test.text-label.*")):
            shutil.copy(path, folder / path.name.replace("test", f"{split}1"))
    return folder


def test_sets_in_several_files_are_joined(data, halves):
    """As fairseq's translation does with train, train1, train2 and so on."""
    flags = "--ignore-unused-valid-subsets", "--combine-valid-subsets"
    first, joined = (trained(data, "duo_classifier", halves, flag) for flag in flags)
    updates = [record["train_num_updates"] for record in joined if "train_num_updates" in record]
    assert updates == [-(-(120 + 20) // 8)]
    losses = [[r["valid_loss"] for r in run if "valid_loss" in r] for run in (first, joined)]
    assert losses[0] != losses[1]


def test_captions_are_read_from_one_file(data, tmp_path):
    folder = tmp_path / "captions"
    shutil.copytree(data["captions"], folder)
    for ending in ("bin", "idx"):
        shutil.copy(folder / f"valid.{ending}", folder / f"train1.{ending}")
    with pytest.raises(ValueError, match="train1.idx: image_captioning reads one file"):
        trained(data, "twin_caption_lstm", folder)


def test_lengths_in_multiples_change_no_loss_of_labels(data):
    folder = data["reviews"]
    plain = trained(data, "duo_classifier", folder)
    assert trained(data, "duo_classifier", folder, "--required-seq-len-multiple", 8) == plain


@pytest.mark.parametrize(
    "flag",
    [
        "--required-seq-len-multiple",
        pytest.param("--num-batch-buckets", marks=pytest.mark.slow),
    ],
)
def test_wide_batches_change_no_loss_of_an_lstm(data, flag):
    """fairseq's encoder takes none that is wider than the longest source."""
    quiet = "--max-tokens", 90, "--dropout", 0, "--lr", 0
    plain, wide = (
        {**records[0], **records[1]}
        for records in (
            trained(data, "twin_lstm", data["two"], *quiet, *more) for more in ((), (flag, 8))
        )
    )
    for name in ("train_loss", "valid_loss"):
        assert wide[name] == pytest.approx(plain[name], abs=0.002)


def test_the_format_of_the_data_is_the_one_that_is_named(data):
    with pytest.raises(FileNotFoundError, match="no such binarised file"):
        trained(data, "duo_classifier", data["reviews"], "--dataset-impl", "raw")
