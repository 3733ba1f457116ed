"""What a file says about itself before it is read."""

import io
import warnings
import zipfile

import pytest
import torch
from compat.payloads import state, write

from fairseq_ext.compat.checkpoints.files import inspect_container


@pytest.mark.parametrize("new", [True, False])
def test_good_files(new, tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"x": torch.zeros(4)}, path, _use_new_zipfile_serialization=new)
    container = inspect_container(path)
    assert container.refusal is None and container.size == path.stat().st_size
    assert container.storages == ({"0": 16} if new else None)
    with open(path, "rb") as stream:
        assert inspect_container(stream) == container and stream.tell() == 0


def test_other_formats_are_refused(tmp_path):
    path = tmp_path / "model.pt"
    assert "tar" in inspect_container(write(path, state(b"N"), "tar")).refusal
    torch.jit.save(torch.jit.trace(torch.nn.Linear(1, 1), torch.zeros(1, 1)), str(path))
    assert "TorchScript" in inspect_container(path).refusal
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("archive/data.pkl", b"N.")
        archive.writestr("archive/data.pkl", b"N.")
    assert "same name" in inspect_container(buffer).refusal
    assert inspect_container(io.BytesIO(b"")).refusal is None
