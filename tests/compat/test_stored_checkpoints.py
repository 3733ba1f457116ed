"""Checkpoints of an older commit load, resume and translate with the present code.

``stored_checkpoints.py`` is the recipe that made them; their files are in tests/data/checkpoints.
"""

import io
import json
import lzma
import re
import subprocess
from typing import Dict

import pytest
import torch
from common import inprocess
from compat.stored_checkpoints import (
    COMMIT,
    MORE_UPDATES,
    PAIRS,
    REPOSITORY,
    STORED,
    SYSTEMS,
    UPDATES,
    VECTORS,
    begin,
    generate_words,
    parameters,
    preprocess_words,
    train_words,
    translations,
)
from fairseq import checkpoint_utils, options
from fairseq_cli import preprocess

MAXIMAL_BYTES = 300_000
# {system: the correction since that commit which changes these outputs}; none so far
CHANGED_TRANSLATIONS: Dict[str, str] = {}
CHANGED_PARAMETERS: Dict[str, str] = {}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored") / "data-bin"
    for pair in PAIRS:
        words = preprocess_words(pair, STORED, str(folder))
        preprocess.main(options.get_preprocessing_parser().parse_args(words))
    return folder


def stored(name, folder=STORED):
    return checkpoint_utils.torch.load(
        io.BytesIO(lzma.decompress((folder / name).read_bytes())),
        map_location="cpu",
        weights_only=True,
    )


@pytest.fixture
def checkpoint(request, tmp_path):
    """The checkpoint of a system, where a run of ``train_words`` resumes."""
    path = tmp_path / "checkpoint_last.pt"
    path.write_bytes(lzma.decompress((STORED / f"{request.param}.pt.xz").read_bytes()))
    return path


by_system = pytest.mark.parametrize(
    "system, checkpoint", [(s, s) for s in SYSTEMS], indirect=["checkpoint"]
)


@by_system
def test_translations_are_the_same(system, checkpoint, data):
    if system in CHANGED_TRANSLATIONS:
        pytest.skip(CHANGED_TRANSLATIONS[system])
    hypotheses = translations(
        inprocess.generate(*generate_words(system, str(data), str(checkpoint)))
    )
    expected = json.loads((STORED / f"{system}.json").read_text(encoding="utf-8"))
    assert [text for _, text in hypotheses] == [text for _, text in expected]
    scores = [score for score, _ in expected]
    # other processors and versions of torch round otherwise
    assert [score for score, _ in hypotheses] == pytest.approx(scores, rel=1e-4)


def dropout_by_uniform_numbers(values, p=0.5, training=True, inplace=False):
    """Drop values with the same masks in all versions of torch and on all processors.

    torch.nn.functional.dropout draws by ``Tensor.bernoulli_``, whose numbers of a seed differ: on
    one machine, torch 2.5 and 2.6 draw others than 1.13, 2.13 and 2.15. Those of ``torch.rand``
    are the same, and the stored files were made with masks that follow from them so.
    """
    assert not inplace
    if not training or p == 0:
        return values
    numbers = torch.rand(values.shape, dtype=torch.float64)
    return values * ((numbers < 1 - p).to(values.dtype) / (1 - p))


def resume(system, data, checkpoint):
    """The parameters of a stored checkpoint after ``MORE_UPDATES`` by the present code."""
    words = [system, str(data), str(STORED / VECTORS), str(checkpoint.parent)]
    inprocess.train(*train_words(*words, UPDATES + MORE_UPDATES))
    resumed = checkpoint_utils.torch.load(checkpoint, map_location="cpu", weights_only=True)
    assert resumed["optimizer_history"][-1]["num_updates"] == UPDATES + MORE_UPDATES
    return parameters(resumed)


def with_gradient(name, value):
    """A parameter without the biases of attention keys.

    No loss depends on them: Adam scales what rounding makes of their gradient to full steps.
    """
    if name.endswith("qkv.bias"):
        queries, _, values = value.chunk(3)
        return torch.cat([queries, values])
    if name.endswith("key_value.bias"):
        return value.chunk(2)[1]
    return value[:0] if name.endswith("k_proj.bias") else value


def check_parameters(system, resumed, folder, **tolerance):
    """Compare with what the older commit has resumed; most parameters must have moved."""
    expected = parameters(stored(f"{system}.resumed.pt.xz", folder))
    before = parameters(stored(f"{system}.pt.xz", folder))
    moved = 0
    for part in ("model", "criterion"):
        assert list(resumed[part]) == list(expected[part])
        for name, value in expected[part].items():
            tensor = resumed[part][name]
            if tolerance["rtol"]:
                tensor, value = with_gradient(name, tensor), with_gradient(name, value)
            torch.testing.assert_close(
                tensor, value, **tolerance, msg=lambda message, name=name: f"{name}: {message}"
            )
            moved += not torch.equal(before[part][name], expected[part][name])
    assert moved > len(expected["model"]) / 2


@by_system
def test_resumed_parameters_are_the_same(system, checkpoint, data, monkeypatch):
    """Up to rounding: the files were made on another machine."""
    monkeypatch.setattr(torch.nn.functional, "dropout", dropout_by_uniform_numbers)
    if system in CHANGED_PARAMETERS:
        pytest.skip(CHANGED_PARAMETERS[system])
    resumed = resume(system, data, checkpoint)
    check_parameters(system, resumed, STORED, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def made_here(tmp_path_factory):
    """The files of the recipe, made by the older commit on this machine."""
    git = ["git", "-C", str(REPOSITORY), "cat-file", "-e", f"{COMMIT}^{{commit}}"]
    if subprocess.run(git, capture_output=True).returncode:
        pytest.skip(f"the repository has no commit {COMMIT}")
    folder = tmp_path_factory.mktemp("made_here")
    begin(COMMIT, list(SYSTEMS), folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_resumed_to_the_same_bits(system, made_here, data, tmp_path):
    if system in CHANGED_PARAMETERS:
        pytest.skip(CHANGED_PARAMETERS[system])
    checkpoint = tmp_path / "checkpoint_last.pt"
    checkpoint.write_bytes(lzma.decompress((made_here / f"{system}.pt.xz").read_bytes()))
    check_parameters(system, resume(system, data, checkpoint), made_here, rtol=0, atol=0)


def test_the_files_are_small_and_name_no_folder_of_a_machine():
    files = sorted(STORED.iterdir())
    assert sum(path.stat().st_size for path in files) < MAXIMAL_BYTES
    for path in files:
        if path.name.endswith(".xz"):
            # fairseq's default of --plasma-path is in every configuration
            content = lzma.decompress(path.read_bytes()).replace(b"/tmp/plasma", b"")
            assert not re.search(rb"/(tmp|home|root|Users)/", content), path.name
