"""A fairseq-preprocess that ends in an error leaves nothing that looks like a set."""

from argparse import Namespace

import pytest
from common.full_disk import largest_file
from fairseq import options
from fairseq_cli import preprocess

from fairseq_ext.compat.command_line.preprocess_output import whole_or_nothing


@pytest.mark.parametrize("kind", ["mmap", "raw"])
def test_a_full_disk_leaves_no_part_of_a_set(kind, tmp_path):
    for lang in ("xx", "yy"):
        lines = "".join(f"{lang}{number % 9} {lang}\n" for number in range(2000))
        (tmp_path / f"train.{lang}").write_text(lines, encoding="utf-8")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "train.xx-zz.xx.bin").write_bytes(b"of another pair")
    words = ["-s", "xx", "-t", "yy", "--trainpref", tmp_path / "train", "--destdir", folder]
    args = options.get_preprocessing_parser().parse_args([*map(str, words), "--dataset-impl", kind])
    with largest_file(8000), pytest.raises(OSError) as caught:
        preprocess.main(args)
    assert caught.value.filename == str(folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {"train.xx-zz.xx.bin", "preprocess.log"}
    preprocess.main(args)  # the same command, with room
    assert (folder / "dict.yy.txt").is_file()


@pytest.mark.parametrize(
    ("langs", "of_pair", "of_others"),
    [
        (("xx", "yy"), ".xx-yy", ".xx-zz.xx"),
        (("xx", None), ".xx-None", ".zz-None.zz"),
        ((None, None), "", ".zz-None.zz"),
    ],
)
def test_what_the_command_has_not_written_stays(langs, of_pair, of_others, tmp_path):
    names = [f"valid{of_pair}.idx", f"train1{of_pair}.bin", f"test.align{of_pair}.bin"]
    for name in names:
        (tmp_path / name).write_text("whole")
    dictionary = tmp_path / f"dict.{langs[0]}.txt"
    dictionary.write_text("given")
    args = Namespace(
        source_lang=langs[0],
        target_lang=langs[1],
        srcdict=str(dictionary),
        tgtdict=None,
        destdir=str(tmp_path),
    )
    others = ["notes", f"train{of_others}.bin", "dict.zz.txt"]
    with pytest.raises(ValueError, match="^of the block$"), whole_or_nothing(args):
        (tmp_path / names[1]).write_text("anything else")
        (tmp_path / "dict.txt").write_text("a part")
        (tmp_path / f"train{of_pair}.pt1.bin").write_text("what a process of --workers has made")
        dictionary.write_text("given, and written once more")
        for name in others:
            (tmp_path / name).write_text("of the user or another process")
        raise ValueError("of the block")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {names[0], names[2], dictionary.name, *others}
