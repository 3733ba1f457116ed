"""criss (fairseq_ext/compat/examples/sentence_mining.py)."""

import runpy
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

CRISS = "examples.criss"


@pytest.fixture
def script(monkeypatch):
    """Function: run a script of criss as `python -m` does; gives what it defines."""
    present = set(sys.modules)

    def run(name, *arguments, as_main=True):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        run_name = "__main__" if as_main else name
        return runpy.run_module(f"{CRISS}.{name}", run_name=run_name, alter_sys=False)

    yield run
    for name in set(sys.modules) - present:
        if name.partition(".")[0] == "examples":
            del sys.modules[name]


def test_means_leave_out_the_tag(script, monkeypatch):
    names = script("save_encoder", as_main=False)
    states = torch.arange(12.0).view(3, 2, 2)  # (T, B, D)
    padding = torch.tensor([[False, False, False], [True, False, False]])
    output = {"encoder_out": [states], "encoder_padding_mask": [padding]}
    module = sys.modules[f"{CRISS}.save_encoder"]
    ensemble = SimpleNamespace(forward_encoder=lambda inputs: [output])
    monkeypatch.setattr(module, "EnsembleModel", lambda models: ensemble)
    sample = {"net_input": {"src_tokens": None, "prev_output_tokens": None}}
    means = names["get_avg_pool"]([None], sample, None, None, None, has_langtok=True)
    np.testing.assert_allclose(means, [[6, 7], [10, 11]])
    assert means.dtype == np.float32


def test_neighbours_are_found(script, tmp_path):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(4, 1024)).astype("float32")
    for language, order in (("xx", [0, 1, 2, 3]), ("yy", [3, 1, 0, 2])):
        folder = tmp_path / language
        folder.mkdir()
        vectors[order].tofile(folder / f"all_avg_pool.{language}.0")
        lines = [f"{number}\tw{number}\n" for number in order]
        (folder / f"sentences.{language}.0").write_text("".join(lines), encoding="utf-8")
    script("sentence_retrieval.encoder_analysis", tmp_path, "--langs", "xx,yy")
    table = (tmp_path / "accuracy").read_text(encoding="utf-8").split()
    assert table == ["xx", "yy", "xx", "1.0", "1.0", "yy", "1.0", "1.0"]


def normalize(rows):
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)


class Index:
    """An exact search, as faiss.IndexFlatIP."""

    def __init__(self, size):
        self.size = size

    def add(self, rows):
        self.rows = rows

    def search(self, queries, count):
        similarities = queries @ self.rows.T
        order = np.argsort(-similarities, axis=1)[:, :count]
        return np.take_along_axis(similarities, order, axis=1), order


def test_pairs_are_mined_without_a_gpu(script, tmp_path, monkeypatch):
    faiss = ModuleType("faiss")  # as faiss-cpu
    faiss.normalize_L2, faiss.IndexFlatIP, faiss.get_num_gpus = normalize, Index, lambda: 0
    monkeypatch.setitem(sys.modules, "faiss", faiss)
    vectors = np.random.default_rng(0).normal(size=(6, 8)).astype("float32")
    for language, order in (("xx", range(6)), ("yy", [5, 3, 1, 0, 2, 4])):
        vectors[list(order)].tofile(tmp_path / f"all_avg_pool.{language}.0")
        lines = [f"{place}\t{language}{number}\n" for place, number in enumerate(order)]
        (tmp_path / f"sentences.{language}.0").write_text("".join(lines), encoding="utf-8")
    options = {"dim": 8, "neighborhood": 4, "valid-size": 1, "min-count": 1, "output": tmp_path}
    options.update({"src-lang": "xx", "tgt-lang": "yy", "src-dir": tmp_path, "tgt-dir": tmp_path})
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    script("mining.mine", *words)
    pairs = set()
    for split in ("train", "valid"):
        sides = [
            (tmp_path / f"{split}.{language}").read_text().split() for language in ("xx", "yy")
        ]
        pairs |= set(zip(*sides))
    assert pairs == {(f"xx{number}", f"yy{number}") for number in range(6)}
