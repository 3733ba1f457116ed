"""`fairseq-ext pack`: the folder translates as the checkpoint does, and needs nothing else."""

import json
import os
import shutil
from pathlib import Path

import pytest
from inference.printed import check_same  # noqa: F401
from options.systems import SYSTEMS

import fairseq_ext
from fairseq_ext.inference.packing import PackOptions, pack

LINES = ["an1 av2 an3", "an4 av5 an6 at1", "unknown av1 an8 at2", ""]
SEARCH = {"beam": 2, "nbest": 2, "max_len_b": 6}


def plain(results):
    return [
        [(h.text, h.tokens, pytest.approx(h.score, abs=1e-5)) for h in result.hypotheses]
        for result in results
    ]


@pytest.mark.parametrize("name", [name for name, system in SYSTEMS.items() if system.lines])
def test_every_system_translates_from_its_folder(name, data, checkpoint_of, tmp_path):
    system = SYSTEMS[name]
    texts = LINES if "an1 av2 an3" in system.lines else list(system.lines)
    model = fairseq_ext.load(checkpoint_of(name), data[system.data])
    folder = pack([checkpoint_of(name)], data[system.data], tmp_path / "packed")
    moved = tmp_path / "elsewhere" / "model"
    moved.parent.mkdir()
    folder.rename(moved)
    other = fairseq_ext.load(moved)
    assert (other.kind, other.directions) == (model.kind, model.directions)
    first, again = model.translate(texts, **SEARCH), other.translate(texts, **SEARCH)
    assert plain(again) == plain(first)
    assert [h.extras.keys() for r in again for h in r.hypotheses] == [
        h.extras.keys() for r in first for h in r.hypotheses
    ]
