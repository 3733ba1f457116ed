"""Texts and dictionaries that datasets read as they are."""

import pytest
from common.words import numbered_words

from fairseq_ext.compat.data.data_files import UnreadableFile

WORDS = numbered_words(9)
LINES = ["".join([WORDS[4], " ", WORDS[5]]), f"{WORDS[6]}\x0c{WORDS[7]}\u2028", "", WORDS[8]]


@pytest.fixture
def raw(tmp_path):
    """Function (bytes) -> the text as --dataset-impl raw."""
    from fairseq.data import indexed_dataset

    def raw(content):
        path = tmp_path / "valid.xx-yy.xx"
        path.write_bytes(content)
        return indexed_dataset.make_dataset(str(path), "raw", dictionary=WORDS)

    return raw


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_raw_texts_are_those_that_preprocess_reads(mark, end, raw):
    dataset = raw(f"{mark}{end.join(LINES)}{end}".encode())
    eos = WORDS.eos()
    assert [row.tolist() for row in dataset] == [[4, 5, eos], [6, 7, eos], [eos], [8, eos]]
    assert [dataset.get_original_text(number) for number in range(len(dataset))] == LINES
    assert dataset.sizes.tolist() == [3, 3, 1, 2]


def test_raw_texts_are_checked(raw, caplog):
    with pytest.raises(UnreadableFile, match="xx, line 2: a carriage return within the line"):
        raw(b"a\nb\rc\n")
    with pytest.raises(UnreadableFile, match="xx, line 1: not UTF-8"):
        raw(b"\xff\n")
    raw(b"a </s> b\n")
    assert "line 1: the word </s> is a symbol of fairseq's" in caplog.text


def test_dictionaries_have_no_byte_order_mark(tmp_path):
    from fairseq.data import Dictionary

    path = tmp_path / "dict.xx.txt"
    path.write_bytes("\ufeffan1 5\r\n\ufeffan2 4\r\n".encode())
    dictionary = Dictionary.load(str(path))
    # elsewhere it is a character of the word
    assert dictionary.symbols[dictionary.nspecial :] == ["an1", "\ufeffan2"]
