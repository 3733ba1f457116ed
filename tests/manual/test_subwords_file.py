"""The script of docs/own-data.md that spells text in sub-words."""

import sys

import pages
import pytest

PAGE = pages.REPOSITORY / "docs" / "own-data.md"
WORDS = "ein kleiner Hund läuft schnell durch das hohe Gras und sieht den Ball am Ufer".split()


@pytest.fixture(scope="module")
def pieces(run, tmp_path_factory):
    """Function bytes of both languages -> their lines in sub-words."""
    pytest.importorskip("sentencepiece")
    (block,) = (block for block in pages.blocks(PAGE) if block.name == "mine/subwords.py")

    def spell(normalisation="nfkc", with_others=False, **texts):
        folder = tmp_path_factory.mktemp("mine")
        script = block.text.replace('"nfkc"', f'"{normalisation}"')
        (folder / "subwords.py").write_text(script, encoding="utf-8")
        (folder / "text").mkdir()
        for language, content in texts.items():
            (folder / "text" / f"train.{language}").write_bytes(content)
        if with_others:
            (folder / "text" / "old").mkdir()
            (folder / "text" / ".DS_Store").write_bytes(b"\xff")
        run(sys.executable, folder / "subwords.py", folder, ",".join(texts), "60")
        spelled = (folder / "pieces" / f"train.{language}" for language in texts)
        return [path.read_bytes().decode() for path in spelled]

    return spell


def test_line_n_stays_line_n(pieces):
    """A carriage return within a line of one language, at another place than in the other."""
    lines = [" ".join(WORDS[place % 9 : place % 9 + 6]) for place in range(20)]
    german, english = list(lines), list(lines)
    german[3] = german[3].replace(" ", "\r", 1)
    english[12] = english[12].replace(" ", "\r", 1)
    content = b"\xef\xbb\xbf" + "\r\n".join(german).encode()
    content = content, ("\n".join(english) + "\n").encode()
    left, right = pieces(de=content[0], en=content[1])
    assert left == right
    assert [line.replace(" ", "").replace("▁", " ").strip() for line in left.splitlines()] == lines


def test_white_space_of_other_kinds_is_a_blank(pieces):
    """Also without a normalisation, which a reader may choose."""
    lines = [" ".join(WORDS[place % 9 : place % 9 + 6]) for place in range(20)]
    german = [line.replace(" ", "\u00a0", 1).replace(" ", "\u2028", 1) for line in lines]
    content = ("\n".join(german) + "\n").encode(), ("\n".join(lines) + "\n").encode()
    (left, right) = pieces(normalisation="identity", de=content[0], en=content[1])
    assert left == right


def test_what_is_no_text_of_the_languages_is_left_out(pieces):
    """A folder, and a file of the system that is no UTF-8."""
    content = "".join(f"{' '.join(WORDS[place:])}\n" for place in range(9)).encode()
    left, right = pieces(with_others=True, de=content, en=content)
    assert left == right


def test_a_non_joiner_does_not_end_a_word(pieces):
    """Persian, Kurdish and scripts of India write it within words."""
    lines = [" ".join(WORDS[place % 9 : place % 9 + 6]) for place in range(20)]
    persian = [line.replace("ei", "می\u200cخ").replace("au", "क्\u200dष") for line in lines]
    content = ("\n".join(persian) + "\n").encode(), ("\n".join(lines) + "\n").encode()
    spelled, _ = pieces(fa=content[0], en=content[1])
    words = [line.replace(" ", "").replace("▁", " ").strip() for line in spelled.splitlines()]
    assert words == persian
