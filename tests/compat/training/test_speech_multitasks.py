"""What the criteria of speech_to_speech log."""

from types import SimpleNamespace

import pytest
from fairseq.criterions.speech_to_speech_criterion import (
    SpeechToSpectrogramMultitaskTaskCriterion,
    SpeechToUnitMultitaskTaskCriterion,
)
from fairseq.data import Dictionary
from fairseq.data.audio.data_cfg import SingleTaskConfig
from fairseq.logging import metrics


@pytest.mark.parametrize("decoder", ["ctc", "transformer"])
@pytest.mark.parametrize("sentence_avg", [False, True])
def test_multitasks_average_alike(decoder, sentence_avg):
    config = SingleTaskConfig("letters", {"decoder_type": decoder, "dict": "missing"})
    part = SimpleNamespace(args=config, target_dictionary=Dictionary())
    task = SimpleNamespace(target_dictionary=Dictionary(), multitask_tasks={"letters": part})
    criterion = SpeechToUnitMultitaskTaskCriterion(task, sentence_avg, 0.1)
    assert criterion.multitask_criterion["letters"].sentence_avg is sentence_avg


@pytest.mark.parametrize("divisor", ["targ", "pred", "path"])
def test_distortions_have_one_divisor(divisor):
    frames = {"targ_frames": 10.0, "pred_frames": 20.0, "path_frames": 25.0}
    log = {**frames, "mcd_loss": 50.0, "nins": 5.0, "ndel": 15.0}
    log["norm_frames"] = frames[f"{divisor}_frames"]
    with metrics.aggregate(new_root=True) as meters:
        SpeechToSpectrogramMultitaskTaskCriterion.reduce_metrics([log])
    logged = meters.get_smoothed_values()
    sums = {"mcd_loss": 50.0, "pred_ratio": 20.0, "ins_rate": 5.0, "del_rate": 15.0}
    for name, value in sums.items():
        assert logged[name] == round(value / log["norm_frames"], 3)
