"""What the criteria of speech_to_speech log, and which batches they take."""

import math
from types import SimpleNamespace

import pytest
import torch
from common.words import dictionary_with
from fairseq.criterions.speech_to_speech_criterion import (
    SpeechToSpectrogramMultitaskTaskCriterion,
    SpeechToUnitMultitaskTaskCriterion,
)
from fairseq.data import Dictionary
from fairseq.data.audio.data_cfg import MultitaskConfig, SingleTaskConfig
from fairseq.logging import metrics
from fairseq.models import FairseqEncoderModel
from fairseq.models.speech_to_speech.modules import CTCDecoder
from fairseq.models.speech_to_text.s2t_transformer import Conv1dSubsampler


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


@pytest.mark.parametrize("weight", [None, 2.0])
def test_multitasks_need_no_padding(weight):
    words = dictionary_with("a", "b")
    config = SingleTaskConfig(
        "letters", {"decoder_type": "ctc", "dict": "missing", "loss_weight": 3.0}
    )
    part = SimpleNamespace(args=config, target_dictionary=words)
    task = SimpleNamespace(target_dictionary=words, multitask_tasks={"letters": part})
    criterion = SpeechToUnitMultitaskTaskCriterion(task, False, 0.1)
    if weight is not None:
        criterion.set_multitask_loss_weight("letters", weight)
    torch.manual_seed(1)
    states = torch.randn(5, 2, 4)  # (T, B, C)
    decoder = CTCDecoder(words, 4)
    target = torch.tensor([[4, 5], [5, 1]])
    sample = {"id": torch.arange(2), "net_input": {"src_lengths": torch.tensor([20, 20])}}
    sample["multitask"] = {
        "letters": {"target": target, "target_lengths": torch.tensor([2, 1]), "ntokens": 3}
    }
    encoded = {"encoder_states": [states], "encoder_padding_mask": []}
    model = SimpleNamespace(multitask_decoders={"letters": FairseqEncoderModel(decoder)})
    loss, logged = criterion.get_multitask_loss(model, sample, encoded)
    expected = torch.nn.functional.ctc_loss(
        decoder.proj(states).log_softmax(2), target, [5, 5], [2, 1], reduction="sum"
    )
    torch.testing.assert_close(loss, (weight or 3.0) * expected)
    assert logged["letters"]["loss_weight"] == (weight or 3.0)
    assert encoded["encoder_padding_mask"] == []


def test_attention_is_guided_among_states():
    torch.manual_seed(1)
    task = SimpleNamespace(target_dictionary=Dictionary(), multitask_tasks={})
    criterion = SpeechToSpectrogramMultitaskTaskCriterion(task, False, True, 0.4, 1.0, 0.0)
    encoder = SimpleNamespace(subsample=Conv1dSubsampler(4, 4, 4, [3, 3]))
    attention = torch.rand(2, 10, 6)  # (B, S, T)
    features, ends = torch.randn(2, 6, 3), torch.randn(2, 6, 1)

    def model(**_inputs):
        return features, ends, {"attn": attention, "feature_out": features}

    model.encoder = encoder
    inputs = {"src_tokens": None, "src_lengths": torch.tensor([40, 30])}
    inputs.update(prev_output_tokens=None, tgt_speaker=None)
    sample = {"target": features, "target_lengths": torch.tensor([6, 4]), "net_input": inputs}
    sample.update(nsentences=2, ntokens=10)
    logged = criterion.forward(model, sample)[2]["attn_loss"]
    penalties = [
        float(attention[row, state, frame])
        * (1 - math.exp(-((state / states - frame / frames) ** 2) / (2 * 0.4**2)))
        for row, (states, frames) in enumerate([(10, 6), (8, 4)])
        for state in range(states)
        for frame in range(frames)
    ]
    assert logged == pytest.approx(sum(penalties) / len(penalties), rel=1e-5)


@pytest.mark.parametrize("path", [None, "nowhere.txt"])
def test_multitasks_have_dictionaries(path, tmp_path):
    file = tmp_path / "tasks.yaml"
    file.write_text("letters:\n  decoder_type: ctc\n" + (f"  dict: {path}\n" if path else ""))
    with pytest.raises(ValueError, match=f"letters: dict: '{path or ''}' is not there"):
        MultitaskConfig(file)
    (tmp_path / "dict.txt").write_text("a 1\n")
    file.write_text(f"letters:\n  dict: {tmp_path}/dict.txt\n")
    assert "a" in MultitaskConfig(file).get_single_task("letters").tgt_dict
