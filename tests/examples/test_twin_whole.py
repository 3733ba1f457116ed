"""The whole recipe on small strips of digits: prepare, train, evaluate, report, curves."""

import gzip
import json
import struct

import numpy as np
import pytest
from twin_recipe.settings import FOLDER

CHANGES = {
    "strips = 4000 500 1000": "strips = 60 10 10",
    "components = 48": "components = 0",
    "--feature-size 61 --embed-dim 64 --hidden-size 128": "--feature-size 125 --hidden-size 16",
    "updates = 2000": "updates = 6",
    "validations = 10": "validations = 2",
}


@pytest.mark.slow
def test_recipe(run, tmp_path):
    text = (FOLDER / "captions.cfg").read_text(encoding="utf-8")
    for old, new in CHANGES.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "small.cfg").write_text(text, encoding="utf-8")
    (tmp_path / "raw" / "mnist").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for stem, size in (("train", 60), ("t10k", 20)):
        for kind, array in (
            ("images-idx3", rng.integers(256, size=(size, 28, 28))),
            ("labels-idx1", np.arange(size) % 10),
        ):
            header = bytes([0, 0, 8, array.ndim])
            header += struct.pack(f">{array.ndim}I", *array.shape)
            content = gzip.compress(header + array.astype(np.uint8).tobytes())
            (tmp_path / "raw" / "mnist" / f"{stem}-{kind}-ubyte.gz").write_bytes(content)

    def step(name, *words):
        words = (*words, "--recipe", tmp_path / "small.cfg")
        return run("python", FOLDER / f"{name}.py", *words, cwd=tmp_path)

    data, runs = tmp_path / "my data", tmp_path / "my runs"
    step("prepare", tmp_path / "raw", data)
    for system in ("baseline", "zeros", "learnt"):
        assert f"trained: {runs / system}.1" in step("train", data, runs, system, 1)
        assert "right" in step("evaluate", data, runs, system, 1)
        result = json.loads((runs / f"{system}.1" / "scores.json").read_text(encoding="utf-8"))
        assert result["updates"] == 6 and set(result["scores"]) == {"valid", "test"}
        assert bool(result["parameters"]["criterion"]) == (system == "learnt")
    assert (runs / "learnt.1" / "distance.png").is_file()
    report = step("report", data, runs, 1)
    assert "+ TwinNet, learnt g" in report and "not evaluated: noise.1" in report
    step("curves", runs, 1, "--output", tmp_path / "curves.png")
