"""Files that a program leaves open (fairseq_ext/compat/command_line/open_files.py)."""

import sys

from fairseq_ext.compat.command_line.open_files import flush_open_files

# as textless_nlp/gslm/ulm/sample: an error that was caught holds the frame, and so the file
PROGRAM = """
from fairseq import options
from omegaconf import OmegaConf


def main():
    output = open("output.txt", "w", encoding="utf-8")
    cfg = OmegaConf.create({"beam": 5})
    OmegaConf.set_struct(cfg, True)
    getattr(cfg, "prefix_allowed_tokens_fn", None)
    print("a text", file=output)


main()
"""


def test_an_open_file_is_written(run, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    run(sys.executable, "program.py", cwd=tmp_path)
    assert (tmp_path / "output.txt").read_text(encoding="utf-8") == "a text\n"


def test_other_files_stay_open(tmp_path):
    output = (tmp_path / "output.txt").open("w", encoding="utf-8")
    with (tmp_path / "output.txt").open(encoding="utf-8") as reading:
        output.write("a")
        flush_open_files()
        assert reading.read() == "a"
    assert not output.closed
    output.close()
