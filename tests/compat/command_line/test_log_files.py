"""The log files of commands: each line once, and closed at the end of the command."""

import logging

import pytest
from common import inprocess
from fairseq import options
from fairseq_cli import preprocess

from fairseq_ext.compat.command_line import log_files

LOGGERS = ("fairseq_cli.preprocess", "fairseq_cli.train", "fairseq.logging.progress_bar")
TINY = ["--arch", "transformer_tiny", "--task", "translation", "-s", "xx", "-t", "yy"]


def open_files():
    """The files that the loggers write to."""
    handlers = (handler for name in LOGGERS for handler in logging.getLogger(name).handlers)
    return [opened.baseFilename for opened in handlers if isinstance(opened, logging.FileHandler)]


@pytest.fixture
def binarise(tmp_path):
    """Function (name of a folder) -> the folder, with the binarised data of eight lines."""
    for lang in ("xx", "yy"):
        lines = [f"{lang[0]}{number} {lang[0]}{number % 3}\n" for number in range(8)]
        (tmp_path / f"text.{lang}").write_text("".join(lines), encoding="utf-8")

    def run(name):
        text, folder = str(tmp_path / "text"), tmp_path / name
        words = ["-s", "xx", "-t", "yy", "--trainpref", text, "--validpref", text]
        words += ["--destdir", str(folder)]
        preprocess.main(options.get_preprocessing_parser().parse_args(words))
        return folder

    return run


def test_folders_of_one_process_have_logs_of_their_own(binarise, caplog):
    caplog.set_level(logging.INFO)
    before = open_files()
    logs = [binarise(name) / "preprocess.log" for name in ("first", "second")]
    first, second = (log.read_text(encoding="utf-8") for log in logs)
    assert "first" in first and "second" not in first
    assert "second" in second and "first" not in second
    assert open_files() == before


def test_log_file_of_a_training_has_each_line_once(binarise, tmp_path):
    folder, log, before = binarise("bin"), tmp_path / "log", open_files()
    inprocess.train(
        folder, *TINY, "--max-epoch", 3, "--batch-size", 4, "--lr", "1e-3", "--log-file", log,
        "--log-interval", 1, "--no-save",
    )  # fmt: skip
    lines = inprocess.records(log.read_text(encoding="utf-8").splitlines())
    ends = [line["epoch"] for line in lines if "train_loss" in line]
    assert ends == [1, 2, 3]
    steps = [line["num_updates"] for line in lines if "num_updates" in line and "epoch" in line]
    assert len(steps) == len({int(step) for step in steps}) == 6
    assert open_files() == before


def test_files_of_others_stay_open(tmp_path):
    logger = logging.getLogger("of this test")
    outer = logging.FileHandler(tmp_path / "outer")
    logger.addHandler(outer)
    with pytest.raises(KeyError), log_files.new_handlers_are_closed(logger):
        logger.addHandler(logging.NullHandler())
        logger.addHandler(logging.FileHandler(tmp_path / "inner"))
        assert log_files.is_open(logger, str(tmp_path / "inner"))
        raise KeyError
    assert log_files.is_open(logger, str(tmp_path / "outer"))
    assert not log_files.is_open(logger, str(tmp_path / "inner"))
    assert [type(handler) for handler in logger.handlers] == [
        logging.FileHandler,
        logging.NullHandler,
    ]
    logger.handlers.clear()
    outer.close()
