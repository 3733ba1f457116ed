"""Several data folders of a training must number their words alike."""

import os
import re
import shutil

import pytest
from common import inprocess
from options.systems import SYSTEMS, Data

from fairseq_ext.compat.command_line.option_checks import check
from fairseq_ext.compat.user_errors import OptionError

TRAINING = {"update_freq": [1]}


@pytest.fixture
def folders(tmp_path):
    """Function (first dictionary, second) -> the option, of dict.xx.txt in two folders."""

    def write(*texts):
        for number, text in enumerate(texts):
            (tmp_path / str(number)).mkdir()
            if text is not None:
                (tmp_path / str(number) / "dict.xx.txt").write_text(text, encoding="utf-8")
        return os.pathsep.join(str(tmp_path / str(number)) for number in range(len(texts)))

    return write


@pytest.mark.parametrize(
    "second",
    ["a 3\nb 2\nc 1\n", "a 9\nb 8\nc 7\n", "a 3\nb 2\n", "a 3\nb 2\nc 1\nd 1\n", None],
    ids=["equal", "other counts", "fewer words", "more words", "no dictionary"],
)
def test_the_same_numbers(folders, second):
    check({**TRAINING, "data": folders("a 3\nb 2\nc 1\n", second)})


@pytest.mark.parametrize(
    "second, line", [("a 3\nc 2\nb 1\n", 2), ("ä 3\n", 1), ("a 3\nb c 2\n", 2)]
)
def test_other_numbers(folders, second, line):
    data = folders("a 3\nb 2\nc 1\n", "a 3\nb 2\nc 1\n", second)
    theirs = os.path.join(data.split(os.pathsep)[2], "dict.xx.txt")
    with pytest.raises(OptionError, match=f"^{re.escape(theirs)}, line {line}: .*--srcdict"):
        check({**TRAINING, "data": data})
    # fairseq-generate reads the first folder alone
    check({"data": data})


@pytest.mark.parametrize("system", ["transformer", "multiway_gru", "gru_lm"])
def test_no_training_begins(system, toy_corpus, tmp_path, tmp_path_factory):
    """It trained on other words in every second epoch and said nothing."""
    entry = SYSTEMS[system]
    data = Data(toy_corpus, tmp_path_factory.mktemp)[entry.data]
    other = tmp_path / "other"
    shutil.copytree(data, other)
    for path in other.glob("dict.*txt"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join([lines[1], lines[0], *lines[2:]]), encoding="utf-8")
    words = entry.words(f"{data}{os.pathsep}{other}", "--max-epoch", 2, "--batch-size", 80)
    with pytest.raises(OptionError, match=r"line 1: .* in place of"):
        inprocess.train(*words, "--save-dir", tmp_path / "run")
