"""The positions of the training hold for fairseq-generate as for ``load``."""

from argparse import Namespace

import pytest
import torch
from common import inprocess
from inference.stock import ALL

import fairseq_ext
from fairseq_ext.routed.commands import router_usage

POSITIONS = ("max_source_positions", "max_target_positions")
LIMITS = ("--max-source-positions", 7, "--max-target-positions", 6)


def longest(output):
    """The most words of the sources and of the hypotheses that fairseq-generate has printed."""
    rows = [line.split("\t") for line in output.splitlines() if line[:2] in ("S-", "H-")]
    sides = [[len(row[-1].split()) for row in rows if row[0][0] == side] for side in "SH"]
    return tuple(map(max, sides))


@pytest.mark.parametrize("is_older", [False, True])
@pytest.mark.parametrize("name", ["routed_gru", "multiway_gru"])
def test_recurrent_models_keep_the_positions_of_their_training(
    name, is_older, data, sharp, tmp_path
):
    """Also a checkpoint whose model has no such options: the ones of its task are there."""
    system, checkpoint = ALL[name], sharp(name, *LIMITS, "--skip-invalid-size-inputs-valid-test")
    if is_older:
        state = torch.load(checkpoint, weights_only=True)
        for position in POSITIONS:
            del state["cfg"]["model"][position]
        checkpoint = tmp_path / "older.pt"
        torch.save(state, checkpoint)
    folder = data[system.data]
    words = system.inference_words(folder, checkpoint, "--skip-invalid-size-inputs-valid-test")
    assert longest(inprocess.generate(*words))[1] == 5  # the end symbol takes a position
    results = fairseq_ext.load(checkpoint, folder).translate(["an1 av2 an3", "an1 " * 8])
    assert max(len(result.text.split()) for result in results) == 5
    assert "more than the model takes" in results[1].error
    if name == "routed_gru":
        args = Namespace(checkpoint=str(checkpoint), data=str(folder), pairs=None)
        model, _, _ = router_usage.load(args)
        assert model.max_positions() == (7, 6)
    # as docs/multiway.md says
    more = {position: 30 for position in POSITIONS}
    assert longest(inprocess.generate(*words, "--model-overrides", str(more)))[1] == 29
