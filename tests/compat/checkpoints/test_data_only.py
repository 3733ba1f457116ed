"""Checkpoints are data: what fairseq writes loads, everything else is refused by name."""

import argparse
import collections
import concurrent.futures
import functools
import io
import os
import pickle

import numpy
import pytest
import torch

from fairseq_ext.compat import checkpoints
from fairseq_ext.compat.checkpoints import data_only
from fairseq_ext.compat.patch_registry import since


class Acts:
    """Unpickling an object of this class makes a folder."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


class Stranger:
    """Something harmless that is not on the list."""


def load_restricted(path):
    return data_only.load_restricted(torch, path, "cpu", {})


def load_fairseq(path):
    from fairseq import checkpoint_utils

    with open(path, "rb") as file:  # as load_checkpoint_to_cpu does
        return checkpoint_utils.torch.load(file, map_location="cpu")


HAS_LIST = data_only._list_takes_names()
LOADERS = [load_fairseq, load_restricted]


@pytest.fixture(params=LOADERS, ids=lambda load: load.__name__)
def load(request):
    import fairseq.checkpoint_utils  # noqa: F401  (fills the list)

    return request.param


@pytest.fixture(params=[True, False], ids=["zip", "legacy"])
def save(request, tmp_path):
    """Function: write an object with torch.save in both formats, with names replaced in it."""

    def save(content, renamed=()):
        path = tmp_path / "checkpoint.pt"
        torch.save(content, path, _use_new_zipfile_serialization=request.param)
        if renamed:
            buffer = io.BytesIO()
            torch.save(content, buffer, _use_new_zipfile_serialization=False)
            raw = buffer.getvalue()
            for new, old in renamed:
                assert new in raw
                raw = raw.replace(new, old)
            path.write_bytes(raw)
        return path

    return save


def meters():
    from fairseq.logging.meters import AverageMeter, StopwatchMeter, TimeMeter

    average, rate = AverageMeter(), TimeMeter()
    average.update(3, 1)
    rate.update(3)
    return {"average": average, "rate": rate, "watch": StopwatchMeter()}


def dictionary():
    from fairseq.data import Dictionary

    dictionary = Dictionary()
    dictionary.add_symbol("word")
    return dictionary


def configuration():
    import omegaconf

    content = {"a": 1, "b": ["x", None, 2.5, True], "c": {"d": "${a}"}}
    # as load_checkpoint_to_cpu makes it, by version
    new = since("omegaconf", 2, 2)() is None
    flags = {"flags": {"allow_objects": True}} if new else {}
    return omegaconf.OmegaConf.create(content, **flags)


WRITTEN = {
    "options": lambda: argparse.Namespace(lr=[1e-3], arch="transformer", nested={"a": None}),
    "ordered": lambda: collections.OrderedDict(a=1),
    "meters": meters,
    "dictionary": lambda: {"task_state": {"target_dictionary": dictionary()}},
    "configuration": configuration,
    "half": lambda: torch.zeros(3, dtype=torch.float16),
    "bfloat16": lambda: torch.ones(3, dtype=torch.bfloat16),
    "sets": lambda: {"langs": {"de", "en"}, "frozen": frozenset((1, 2))},
    "parameter": lambda: torch.nn.Parameter(torch.ones(2, 2)),
    "betas": lambda: {"param_groups": [{"betas": (0.9, 0.98), "params": [0, 1]}]},
    **{
        f"numpy {code}": lambda code=code: {
            "array": numpy.ones(3, code),
            "scalar": numpy.ones(3, code)[0],
        }
        for code in ("f2", "f4", "f8", "i4", "i8", "u1", "u2", "b1")
    },
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_fairseq_writes_loads(name, save, load):
    written = WRITTEN[name]()
    loaded = load(save({"state": written}))["state"]
    assert type(loaded) is type(written)
    if name == "sets":  # their order in print depends on their history
        assert loaded == written
    elif name not in ("meters", "dictionary"):
        assert str(loaded) == str(written)


def test_numbers_as_numpy_1_and_2_wrote_them(save, load):
    new, old = b"numpy._core.multiarray", b"numpy.core.multiarray"
    present = new if int(numpy.__version__.split(".")[0]) >= 2 else old
    for name in (new, old):
        # protocol 2 stores a global as a line of text: any length will do
        path = save({"x": numpy.arange(3)}, renamed=[(present, name)])
        assert load(path)["x"].tolist() == [0, 1, 2]


def test_meters_of_fairseq_before_0_10(save, load):
    renamed = [(b"fairseq.logging.meters", b"fairseq.meters")]
    assert load(save(meters(), renamed))["average"].avg == 3


def test_malicious_pickle_does_not_run(save, load, tmp_path):
    trace = tmp_path / "made"
    path = save({"model": {}, "extra": Acts(trace)})
    with pytest.raises(pickle.UnpicklingError, match=r"mkdir"):
        load(path)
    assert not trace.exists()
    # the file is what it is meant to be: loaded in the old way, it does run
    torch.load(path, weights_only=False)
    assert trace.is_dir()


def test_fairseq_refuses_a_malicious_checkpoint(tmp_path):
    from fairseq import checkpoint_utils

    path, trace = tmp_path / "checkpoint_last.pt", tmp_path / "made"
    torch.save({"model": {}, "extra_state": Acts(trace)}, path)
    with pytest.raises(data_only.RefusedCheckpoint) as caught:
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert str(path) in str(caught.value) and "mkdir" in str(caught.value)
    assert not trace.exists()


def test_error_names_class_and_file(save, load):
    path = save({"state": Stranger()})
    with pytest.raises(data_only.RefusedCheckpoint) as caught:
        load(path)
    assert f"{path}: refused" in str(caught.value)
    assert f"{Stranger.__module__}.Stranger" in str(caught.value)


def test_callers_cannot_weaken_it(tmp_path):
    from fairseq import checkpoint_utils

    path, trace = tmp_path / "checkpoint.pt", tmp_path / "made"
    torch.save(Acts(trace), path)
    with pytest.raises(pickle.UnpicklingError):
        checkpoint_utils.torch.load(str(path), weights_only=False, pickle_module=pickle)
    assert not trace.exists()


def test_environment_cannot_weaken_it(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    test_callers_cannot_weaken_it(tmp_path)


def test_every_caller_of_torch_load_is_covered():
    import importlib.util
    from pathlib import Path

    root = Path(importlib.util.find_spec("fairseq").origin).parent
    callers = set()
    for path in root.rglob("*.py"):
        inside = path.relative_to(root.parent).with_suffix("")
        if "torch.load(" in path.read_text(encoding="utf-8"):
            callers.add(".".join(inside.parts).removesuffix(".__init__"))
    assert callers == {
        *data_only.LOADERS,
        "fairseq.models.speech_to_text.xm_transformer",  # has a patch of its own
        *(f"fairseq.examples.{name}" for name in data_only.EXAMPLE_LOADERS),
    }


def test_pretrained_decoders_are_read_in_the_same_way(tmp_path):
    """xm_transformer: its layers are scripted, so that its `torch` must remain the module."""
    from fairseq.models.speech_to_text import xm_transformer

    assert xm_transformer.torch is torch
    path, trace = tmp_path / "decoder.pt", tmp_path / "made"
    torch.save({"cfg": Acts(trace)}, path)
    args = argparse.Namespace(load_pretrained_decoder_from=str(path))
    with pytest.raises(data_only.RefusedCheckpoint, match=r"mkdir"):
        xm_transformer.XMTransformerModel.build_model(args, None)
    assert not trace.exists()


@pytest.mark.parametrize("add", [checkpoints.add_safe_globals, checkpoints.allow])
def test_plugins_add_their_classes(save, load, monkeypatch, add):
    """`allow` is the old name."""
    monkeypatch.setattr(data_only, "_added", [])
    path = save({"state": Stranger()})
    add(Stranger)
    try:
        assert isinstance(load(path)["state"], Stranger)
    finally:
        if HAS_LIST:
            listed = torch.serialization.get_safe_globals()
            torch.serialization.clear_safe_globals()
            torch.serialization.add_safe_globals([x for x in listed if x is not Stranger])


def test_broken_file_keeps_its_own_error(tmp_path, load):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(b"no checkpoint")
    with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError)) as caught:
        load(path)
    assert not isinstance(caught.value, data_only.RefusedCheckpoint) or not HAS_LIST


def test_threads_load_beside_each_other(tmp_path):
    """Also beside a thread that reads with torch's own function."""
    path, plain = tmp_path / "checkpoint.pt", tmp_path / "plain.pt"
    torch.save({"cfg": argparse.Namespace(a=1), "model": {"w": torch.ones(3)}}, path)
    torch.save({"w": torch.ones(3)}, plain)
    reads = [functools.partial(load_restricted, path)] * 3
    reads.append(functools.partial(torch.load, plain, weights_only=True))
    with concurrent.futures.ThreadPoolExecutor(len(reads)) as pool:
        for _ in range(30):
            for future in [pool.submit(read) for read in reads]:
                assert future.result()
    assert torch.serialization._weights_only_unpickler.__name__.startswith("torch.")


def test_another_thread_sees_the_unpickler_of_torch():
    of_torch = torch.serialization._weights_only_unpickler
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with data_only._unpickled_by(torch.serialization, "unpickler", "load"):
            seen = torch.serialization._weights_only_unpickler
            assert (seen.Unpickler, seen.load) == ("unpickler", "load")
            assert pool.submit(lambda: seen.Unpickler).result() is of_torch.Unpickler
    assert torch.serialization._weights_only_unpickler is of_torch
