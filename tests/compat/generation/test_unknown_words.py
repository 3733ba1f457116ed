"""Unknown words are replaced by way of the alignment."""

import pytest
from fairseq import utils
from fairseq.data import Dictionary

from fairseq_ext.compat.data.data_files import UnreadableFile
from fairseq_ext.compat.generation.unknown_words import text_with_unknown_replaced


def test_replacing_by_hand():
    dictionary = Dictionary()
    word, unknown, end = dictionary.add_symbol("b"), dictionary.unk(), dictionary.eos()
    tokens = [unknown, word, dictionary.bos(), unknown, unknown, end]
    alignment = [(1, 0), (0, 1), (0, 2), (0, 3)]

    def text(alignment, source):
        return text_with_unknown_replaced(tokens, dictionary, {end}, source, alignment, {"q": "Q"})

    assert text(alignment, ["p", "q"]) == "Q b p <unk>"
    with pytest.raises(ValueError, match="--replace-unk: word 1 is aligned to source word 2 of 1"):
        text(alignment, ["p"])


def test_the_file_of_translations_holds_pairs(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("an1 x\nan2\ty\nan1 z\n", encoding="utf-8")
    assert utils.load_align_dict(str(path)) == {"an1": "z", "an2": "y"}
    assert utils.load_align_dict("") == {} and utils.load_align_dict(None) is None
    for line, count in (("an1 x y", 3), ("an1", 1), ("", 0)):
        path.write_text(f"an1 x\n{line}\n", encoding="utf-8")
        with pytest.raises(UnreadableFile, match=f"pairs.txt, line 2: {count} words; allowed"):
            utils.load_align_dict(str(path))
