"""What fairseq-preprocess looks at before it writes anything."""

import pytest

from fairseq_ext.compat.command_line import preprocess_input
from fairseq_ext.compat.data.data_files import UnreadableFile
from fairseq_ext.compat.user_errors import OptionError


@pytest.fixture
def arguments(tmp_path):
    """Function (words...) -> the options of fairseq-preprocess, into an empty folder."""
    from fairseq import options

    parser = options.get_preprocessing_parser()
    return lambda *words: parser.parse_args(["--destdir", str(tmp_path), *map(str, words)])


TWO = ("-s", "xx", "-t", "yy", "--trainpref", "train")


@pytest.mark.parametrize(
    "words, lists",
    [
        (TWO, [("train.xx", "train.yy")]),
        ((*TWO, "--only-source"), [("train.xx",)]),
        (("--trainpref", "train", "--only-source"), [("train",)]),
        (
            (*TWO, "--validpref", "valid,dev", "--testpref", "test"),
            [("train.xx", "train.yy"), ("valid.xx", "valid.yy"), ("dev.xx", "dev.yy")]
            + [("test.xx", "test.yy")],
        ),
        ((*TWO, "--validpref", "valid", "--dict-only"), [("train.xx", "train.yy")]),
    ],
)
def test_files_that_will_be_read(arguments, words, lists):
    assert preprocess_input.corpora(arguments(*words)) == lists


@pytest.mark.parametrize(
    "words, message",
    [
        (("-s", "xx", "--trainpref", "train"), "--target-lang is missing"),
        (("-s", "xx", "-t", "yy", "--validpref", "valid"), "--trainpref is missing"),
        (
            ("-s", "xx", "-t", "yy", "--srcdict", "a", "--tgtdict", "b"),
            "--trainpref, --validpref and --testpref are missing",
        ),
        ((*TWO, "--dataset-impl", "huffman"), "--dataset-impl huffman is not written"),
        ((*TWO, "--dataset-impl", "fasta"), "--dataset-impl fasta is not written"),
        (
            ("-s", "xx", "-t", "xx", "--trainpref", "train", "--nwordssrc", 9),
            "--target-lang xx is also --source-lang",
        ),
        (
            (*TWO, "--joined-dictionary", "--srcdict", "a", "--tgtdict", "b"),
            "--srcdict and --tgtdict exclude each other",
        ),
        (
            (*TWO, "--joined-dictionary", "--thresholdtgt", 5),
            "--thresholdtgt 5 has no effect with --joined-dictionary.*: that of --thresholdsrc, 0",
        ),
        (
            (*TWO, "--joined-dictionary", "--nwordssrc", 9, "--nwordstgt", 8),
            "--nwordstgt 8 has no effect with --joined-dictionary.*: that of --nwordssrc, 9",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments, words, message):
    with pytest.raises(OptionError, match=message):
        preprocess_input.check_options(arguments(*words))


def test_a_joined_dictionary_may_name_its_limits_twice(arguments):
    limits = ("--nwordssrc", 9, "--nwordstgt", 9, "--thresholdsrc", 2, "--thresholdtgt", 2)
    preprocess_input.check_options(arguments(*TWO, "--joined-dictionary", *limits))


def test_files_in_the_way_and_files_that_are_missing(arguments, tmp_path):
    preprocess_input.check_options(arguments(*TWO))
    with pytest.raises(FileNotFoundError, match="named by --srcdict"):
        preprocess_input.check_options(arguments(*TWO, "--srcdict", tmp_path / "dict"))
    (tmp_path / "dict.yy.txt").write_text("a 1\n")
    with pytest.raises(FileExistsError, match="there already; name it with --srcdict or --tgtdict"):
        preprocess_input.check_options(arguments(*TWO))
    preprocess_input.check_options(arguments(*TWO, "--tgtdict", tmp_path / "dict.yy.txt"))


@pytest.mark.parametrize(
    "content, lines", [(b"", 0), (b"a\n", 1), (b"a\n\nb", 3), (b"a\r\nb\r", 2)]
)
def test_lines_end_at_line_feeds(tmp_path, content, lines):
    (tmp_path / "text").write_bytes(content)
    assert preprocess_input.count_lines(str(tmp_path / "text")) == lines


def test_a_line_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "text").write_bytes(b"good\nb\xff\n")
    with pytest.raises(UnreadableFile, match=r"text, line 2: not UTF-8 \(byte 0xff at 1\)"):
        preprocess_input.count_lines(str(tmp_path / "text"))
    with pytest.raises(IsADirectoryError, match="a folder, not a text file"):
        preprocess_input.count_lines(str(tmp_path))


def test_a_carriage_return_within_a_line_is_named(tmp_path):
    """Read as text, it would end a line: the following lines would lose their translations."""
    (tmp_path / "text").write_bytes(b"good\r\nb\rc\n")
    with pytest.raises(UnreadableFile, match="text, line 2: a carriage return within the line"):
        preprocess_input.count_lines(str(tmp_path / "text"))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path, workers):
    """Only at the beginning: elsewhere it is a character of the text."""
    from fairseq.data import Dictionary
    from fairseq.file_chunker_utils import Chunker, find_offsets

    path = tmp_path / "text"
    path.write_bytes("\ufeffa b\r\n\ufeffc\r\n\r\na é".encode())
    offsets = find_offsets(str(path), workers)
    lines = []
    for start, end in zip(offsets, offsets[1:]):
        with Chunker(str(path), start, end) as chunk:
            lines += chunk
    assert lines == ["a b\n", "\ufeffc\n", "\n", "a é"]
    dictionary = Dictionary()
    Dictionary.add_file_to_dictionary(str(path), dictionary, str.split, num_workers=1)
    assert dictionary.count[dictionary.index("a")] == 2


def test_words_that_are_symbols_are_named(tmp_path, caplog):
    (tmp_path / "text").write_bytes("a b\nc </s> d\nx<pad>y\n<pad>\n<unk> e\r\n<s>\r\n".encode())
    assert preprocess_input.count_lines(str(tmp_path / "text")) == 6
    (message,) = caplog.messages
    assert "text, line 2: the word </s> is a symbol" in message and "(3 lines in all)" in message
    caplog.clear()
    (tmp_path / "text").write_bytes(b"a<s> </s>b <unk> < s >\n")
    preprocess_input.count_lines(str(tmp_path / "text"))
    assert not caplog.messages
