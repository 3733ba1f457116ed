"""Which files are checkpoints for the tools, and what they say of others."""

from pathlib import Path

import pytest
import torch

from fairseq_ext.tools import UsageError
from fairseq_ext.tools.checkpoint.reading import contents, model_of, read

MODEL = {"model": {"_name": "duo_transformer"}}


def test_a_checkpoint_of_the_models_is_read(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"cfg": MODEL, "model": {"weight": torch.ones(2)}}, path)
    state = read(path, "dual_transformer", "duo_transformer")
    assert model_of(state) == "duo_transformer"
    assert state["model"]["weight"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ([1, 2], "an object of type list"),
        ({"b": 1, "a": 2}, "the entries a, b, not a model of fairseq"),
        ({"cfg": MODEL}, "the entries cfg, not a model of fairseq"),
        ({"cfg": MODEL, "model": {}}, "a model of the architecture 'duo_transformer'"),
    ],
)
def test_other_files_are_named_by_what_they_hold(state, words, tmp_path):
    assert contents(state, ["dual_transformer"]) == words
    torch.save(state, tmp_path / "a.pt")
    with pytest.raises(UsageError) as caught:
        read(tmp_path / "a.pt", "dual_transformer", "twin_lstm")
    allowed = "a checkpoint of dual_transformer or twin_lstm"
    assert str(caught.value) == f"CHECKPOINT {tmp_path / 'a.pt'} holds {words}; allowed: {allowed}"


@pytest.mark.parametrize("content", [b"", b"some text\n", b"0", b"PK\x03\x04torn"])
def test_what_torch_cannot_read_is_no_checkpoint(content, tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"a\.pt cannot be read as a checkpoint: damaged, or"):
        read(path, "dual_transformer")


def test_a_pickled_object_is_not_made(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"file": Path("a")}, path)
    with pytest.raises(UsageError, match=r"a\.pt cannot be read as a checkpoint: "):
        read(path, "dual_transformer")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"none\.pt is not a file"):
        read(tmp_path / "none.pt", "dual_transformer")
