"""Decoders of examples/speech_recognition (fairseq_ext/compat/examples/speech_decoding.py)."""

import importlib
import itertools
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace

import fairseq
import numpy as np
import pytest
import torch

from fairseq_ext.compat.examples import speech_decoding

NAME = "examples.speech_recognition.w2l_decoder"


@pytest.fixture
def decoders(monkeypatch):
    """The module of the decoders, without flashlight."""
    present = set(sys.modules)
    monkeypatch.setitem(sys.modules, "flashlight", None)
    # without the package's own code, which registers tasks and criteria
    package = ModuleType("examples.speech_recognition")
    package.__path__ = [str(Path(fairseq.__file__).parent / "examples" / "speech_recognition")]
    monkeypatch.setitem(sys.modules, package.__name__, package)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that flashlight is missing
        yield importlib.import_module(NAME)
    for name in set(sys.modules) - present:
        if name.partition(".")[0] == "examples" and name != "examples.speech_recognition":
            del sys.modules[name]


def best_text(emissions, blank):
    """Symbols of the best of all paths, by trying each."""
    frames, symbols = emissions.shape
    paths = itertools.product(range(symbols), repeat=frames)
    best = max(paths, key=lambda path: sum(emissions[t, s] for t, s in enumerate(path)))
    return [symbol for symbol, _ in itertools.groupby(best) if symbol != blank]


def test_the_best_path(decoders):
    from fairseq.data import Dictionary

    dictionary = Dictionary()  # four special symbols
    decoder = decoders.W2lViterbiDecoder(SimpleNamespace(nbest=1), dictionary)
    emissions = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(2))  # (B, T, V)
    hypotheses = decoder.decode(emissions)
    expected = [best_text(row.numpy(), dictionary.bos()) for row in emissions]
    assert [hypothesis[0]["tokens"].tolist() for hypothesis in hypotheses] == expected


def test_installed_bindings_decode():
    module = SimpleNamespace(CpuViterbiPath=object())
    speech_decoding.best_paths_need_no_flashlight(module)
    assert list(vars(module)) == ["CpuViterbiPath"]


def test_emissions_of_different_lengths_are_written(tmp_path):
    module = SimpleNamespace(np=np)
    speech_decoding.emissions_of_any_length_are_written(module)
    rows = [np.ones((2, 3)), np.zeros((4, 3))]
    module.np.save(tmp_path / "different.npy", rows)
    written = np.load(tmp_path / "different.npy", allow_pickle=True)
    for row, expected in zip(written, rows):
        np.testing.assert_array_equal(row, expected)
    module.np.save(tmp_path / "same.npy", rows[:1] * 2)
    assert np.load(tmp_path / "same.npy").shape == (2, 2, 3)


def programs_main(folder, calls):
    """hydra.main as patched, and a function of a program in the folder examples/a/b."""
    program = folder / "examples" / "a" / "b" / "program.py"
    program.parent.mkdir(parents=True)

    def main(config_path=None, config_name=None):
        calls.append((config_path, config_name))
        return lambda function: function

    module = SimpleNamespace(main=main)
    speech_decoding.configurations_of_an_installation_are_found(module)
    namespace = {"__file__": str(program)}
    exec("def function(cfg):\n    return cfg\n", namespace)
    return module.main, namespace["function"]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("fairseq/config", "../../../fairseq/config"),  # a clone
        ("config", "../../../config"),  # an installation, whose examples are in the package
        ("nowhere", "../../../fairseq/config"),
    ],
)
def test_folders_of_configurations(tmp_path, place, expected):
    folder = tmp_path / "fairseq"
    (folder / place).mkdir(parents=True)
    calls = []
    main, function = programs_main(folder, calls)
    for decorator in (
        main("../../../fairseq/config", config_name="x"),
        main(config_path="../../../fairseq/config", config_name="x"),
        main("conf", "x"),  # another folder
        main(config_name="x"),
    ):
        assert decorator(function)(5) == 5
    # where a path is looked for, hydra is called when the function is there
    assert sorted(calls, key=str) == sorted(
        [(expected, "x"), (expected, "x"), ("conf", "x"), (None, "x")], key=str
    )
