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


@pytest.mark.parametrize("only_source", [False, True])
def test_what_was_there_before_stays(only_source, tmp_path):
    of_pair = "" if only_source else ".xx-yy"
    names = [f"valid{of_pair}.idx", f"train1{of_pair}.xx", f"test.align{of_pair}.bin"]
    for name in names:
        (tmp_path / name).write_text("whole")
    args = Namespace(
        source_lang="xx", target_lang="yy", only_source=only_source, destdir=str(tmp_path)
    )
    with pytest.raises(ValueError, match="^of the block$"), whole_or_nothing(args):
        (tmp_path / names[1]).write_text("anything else")
        (tmp_path / "dict.xx.txt").write_text("a part")
        (tmp_path / "notes").write_text("of the user")
        raise ValueError("of the block")
    assert {path.name for path in tmp_path.iterdir()} == {names[0], names[2], "notes"}
