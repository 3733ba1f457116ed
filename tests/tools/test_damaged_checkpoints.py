"""Every sub-command that reads a checkpoint ends in the same way where it cannot."""

import subprocess

import pytest
import torch

from fairseq_ext import __main__ as command

# {sub-command: its words after the checkpoint}
READERS = {
    "average": ["--output", "output.pt"],
    "export": ["-s", "xx", "-t", "yy", "--to", "fairseq", "--output", "output.pt"],
    "pack": [".", "--output", "packed"],
    "back-translate": [".", *"-s xx -t yy --monolingual lines --output pairs".split()],
    "add-language": [".", "--pair", "xx-zz", "--output", "output.pt"],
    "router-usage": ["."],
    "twin-distance": ["."],
    "translate": ["--data", ".", "--input", "lines"],
    "serve": ["--data", ".", "--port", "0"],
}


@pytest.fixture(params=["cut off", "empty", "text", "other object", "code"])
def damaged(request, tmp_path, monkeypatch):
    """The name of a file in the current folder that is no checkpoint."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines").write_text("a b\n")
    path = tmp_path / "model.pt"
    if request.param == "other object":
        torch.save([1, 2], path)
    elif request.param == "code":
        torch.save({"model": subprocess.run}, path)
    else:
        torch.save({"model": {"weight": torch.zeros(100)}}, path)
        whole = path.read_bytes()
        contents = {"cut off": whole[: len(whole) // 2], "empty": b"", "text": b"a line\n"}
        path.write_bytes(contents[request.param])
    return path.name


@pytest.mark.parametrize("name", READERS)
def test_the_exit_status_is_that_of_a_damaged_file(name, damaged, capsys):
    words = [name, *(["--inputs"] if name == "average" else []), damaged, *READERS[name]]
    try:
        status = command.main(words)
    except SystemExit as end:
        status = end.code
    last = capsys.readouterr().err.splitlines()[-1]
    assert status == 2 and last.startswith(f"fairseq-ext {name}: error: ") and damaged in last
