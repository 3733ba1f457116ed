"""A program may create tensors elsewhere by default: our models compute where they are."""

import pytest
import torch
from options.systems import SYSTEMS

import fairseq_ext

OURS = (
    "dual_transformer",
    "duo_transformer",
    "multiway_gru",
    "routed_gru",
    "dual_lstm_classifier",
    "duo_classifier",
)
# a device whose tensors hold nothing: whatever is created there ends in an error
ELSEWHERE = "meta"


@pytest.mark.skipif(
    not hasattr(torch, "set_default_device"), reason="torch before 2.0 has no default device"
)
@pytest.mark.parametrize("name", OURS)
def test_models_are_used_where_they_are(name, data, checkpoint_of):
    """One sentence, whose search takes steps of its own, and several."""
    model = fairseq_ext.load(checkpoint_of(name), data[SYSTEMS[name].data])
    texts = list(SYSTEMS[name].lines)

    def scores():
        results = [*model.translate(texts, max_len_b=7), *model.translate(texts[:1], max_len_b=7)]
        return [(result.text, result.hypotheses[0].score) for result in results]

    expected = scores()
    model = fairseq_ext.load(checkpoint_of(name), data[SYSTEMS[name].data])
    with torch.device(ELSEWHERE):
        assert scores() == expected
