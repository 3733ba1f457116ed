"""Checkpoints of an older commit load, resume and translate with the present code.

``stored_checkpoints.py`` is the recipe that made them; their files are in tests/data/checkpoints.
"""

import io
import json
import lzma
import re
from typing import Dict

import pytest
import torch
from common import inprocess
from compat.stored_checkpoints import (
    MORE_UPDATES,
    PAIRS,
    STORED,
    SYSTEMS,
    UPDATES,
    VECTORS,
    generate_words,
    parameters,
    preprocess_words,
    train_words,
    translations,
)
from fairseq import options
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


def stored(name):
    return torch.load(
        io.BytesIO(lzma.decompress((STORED / name).read_bytes())),
        map_location="cpu",
        weights_only=False,
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
    found = translations(inprocess.generate(*generate_words(system, str(data), str(checkpoint))))
    expected = json.loads((STORED / f"{system}.json").read_text(encoding="utf-8"))
    assert [text for _, text in found] == [text for _, text in expected]
    scores = [score for score, _ in expected]
    # other processors and versions of torch round otherwise
    assert [score for score, _ in found] == pytest.approx(scores, rel=1e-4)


@by_system
def test_resumed_parameters_are_the_same(system, checkpoint, data):
    if system in CHANGED_PARAMETERS:
        pytest.skip(CHANGED_PARAMETERS[system])
    words = [system, str(data), str(STORED / VECTORS), str(checkpoint.parent)]
    inprocess.train(*train_words(*words, UPDATES + MORE_UPDATES))
    resumed = torch.load(checkpoint, map_location="cpu", weights_only=False)
    assert resumed["optimizer_history"][-1]["num_updates"] == UPDATES + MORE_UPDATES
    found, expected = parameters(resumed), stored(f"{system}.resumed.pt.xz")
    before = parameters(stored(f"{system}.pt.xz"))
    moved = 0
    for part in ("model", "criterion"):
        assert list(found[part]) == list(expected[part])
        for name, value in expected[part].items():
            torch.testing.assert_close(
                found[part][name], value, rtol=1e-4, atol=1e-5, msg=f"{part} {name}"
            )
            moved += not torch.equal(before[part][name], value)
    assert moved > len(expected["model"]) / 2


def test_the_files_are_small_and_name_no_folder_of_a_machine():
    files = sorted(STORED.iterdir())
    assert sum(path.stat().st_size for path in files) < MAXIMAL_BYTES
    for path in files:
        if path.name.endswith(".xz"):
            # fairseq's default of --plasma-path is in every configuration
            content = lzma.decompress(path.read_bytes()).replace(b"/tmp/plasma", b"")
            assert not re.search(rb"/(tmp|home|root|Users)/", content), path.name
