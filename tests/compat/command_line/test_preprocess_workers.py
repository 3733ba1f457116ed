"""Processes of fairseq-preprocess --workers that die, and those that do not."""

import multiprocessing
import os
import signal

import pytest
from fairseq.binarizer import FileBinarizer, VocabularyDatasetBinarizer
from fairseq.data import Dictionary, data_utils
from fairseq.tokenizer import tokenize_line

LINES = [f"word{number} other{number % 3}" for number in range(40)]


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES))
    return tmp_path / "text"


def counted(text, tokenize=tokenize_line, workers=3):
    words = Dictionary()
    Dictionary.add_file_to_dictionary(str(text), words, tokenize, workers)
    words.finalize()
    return words


def killed_at_the_end(line):
    if line.startswith("word39"):
        os.kill(os.getpid(), signal.SIGKILL)
    return tokenize_line(line)


def refused_at_the_end(line):
    if line.startswith("word39"):
        raise ValueError("word39 is refused")
    return tokenize_line(line)


def killed_at_the_start(line):
    if line.startswith("word0 "):
        os._exit(3)
    return tokenize_line(line)


def test_parts_are_the_whole(text):
    words = counted(text)
    assert words.symbols == counted(text, workers=1).symbols
    for workers in (1, 4):
        FileBinarizer.multiprocess_dataset(
            str(text),
            "mmap",
            VocabularyDatasetBinarizer(words),
            str(text.with_name(f"of{workers}")),
            vocab_size=len(words),
            num_workers=workers,
        )
    alone, together = (
        data_utils.load_indexed_dataset(str(text.with_name(name)), words) for name in ("of1", "of4")
    )
    assert len(together) == len(LINES)
    assert all(a.tolist() == b.tolist() for a, b in zip(alone, together))
    assert not list(text.parent.glob("*.pt*"))


@pytest.mark.parametrize(
    "tokenize, part, ended",
    [
        (killed_at_the_end, r"bytes \d+ to \d+ of .*text", "SIGKILL"),
        (killed_at_the_start, r"bytes 0 to \d+ of .*text", "status 3"),
    ],
)
def test_a_process_that_dies_is_named(text, tokenize, part, ended):
    before = multiprocessing.active_children()  # maybe processes that load another test's data
    with pytest.raises(ChildProcessError, match=rf"{part}: the process .* died \({ended}\)"):
        counted(text, tokenize)
    started = [child for child in multiprocessing.active_children() if child not in before]
    for process in started:
        process.join(10)
    assert not any(process.is_alive() for process in started)
    with pytest.raises(ChildProcessError, match=rf"of .*text: the process .* died \({ended}\)"):
        FileBinarizer.multiprocess_dataset(
            str(text),
            "mmap",
            # the first part is read by the process itself
            VocabularyDatasetBinarizer(Dictionary(), tokenize=killed_at_the_end)
            if ended == "SIGKILL"
            else ExitsBehindTheFirst(),
            str(text.with_name("set")),
            vocab_size=3,
            num_workers=3,
        )


class ExitsBehindTheFirst:
    def binarize_line(self, line, summary):
        os._exit(3)


def test_errors_of_a_process_are_raised(text):
    with pytest.raises(ValueError, match="word39 is refused"):
        counted(text, refused_at_the_end)
