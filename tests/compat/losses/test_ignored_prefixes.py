"""--ignore-prefix-size."""

from types import SimpleNamespace

import pytest
import torch
from fairseq import metrics
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion

PAD = 1
TARGET = torch.tensor([[5, 6, 7, 2], [5, 2, PAD, PAD]])


class Uniform(torch.nn.Module):
    """Gives each of eight words the probability 1/8."""

    def __init__(self, sentences=2):
        super().__init__()
        self.sentences = sentences

    def forward(self, **inputs):
        return (torch.zeros(self.sentences, TARGET.size(1), 8, requires_grad=True),)

    def get_normalized_probs(self, output, log_probs):
        return torch.log_softmax(output[0], dim=-1)

    def get_targets(self, sample, output):
        return sample["target"]


@pytest.mark.parametrize("size, words", [(0, 6), (1, 4), (2, 2), (3, 1)])
@pytest.mark.parametrize("sentence_avg", [False, True])
def test_the_mean_is_that_of_the_words_scored(size, words, sentence_avg):
    task = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD))
    criterion = LabelSmoothedCrossEntropyCriterion(task, sentence_avg, 0.0, size)
    sample = {"net_input": {}, "target": TARGET, "ntokens": 6}
    loss, sample_size, log = criterion(Uniform(), sample)
    assert log["ntokens"] == words and sample["ntokens"] == 6
    assert sample_size == (2 if sentence_avg else words)
    uniform = torch.tensor(8.0).log().item()
    assert loss.item() / words == pytest.approx(uniform)
    assert log["nll_loss"].item() / log["ntokens"] == pytest.approx(uniform)


class UniformSpeech(Uniform):
    """The same, with what criteria of speech ask for."""

    def forward(self, **inputs):
        output = super().forward(**inputs)
        return (output[0], {}) if "tgt_speaker" in inputs else output


@pytest.mark.parametrize("sentence_avg", [False, True])
def test_criteria_of_latency_count_as_the_others(sentence_avg, monkeypatch):
    from fairseq.criterions import label_smoothed_cross_entropy_latency_augmented as augmented

    # an optional package has the measures
    monkeypatch.setattr(augmented, "LATENCY_METRICS", {"differentiable_average_lagging": None})
    kind = augmented.LatencyAugmentedLabelSmoothedCrossEntropyCriterion
    monkeypatch.setattr(kind, "compute_latency_loss", lambda *_: (torch.zeros(()),) * 3)
    task = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD))
    measure = ("differentiable_average_lagging", "variance_delay", "average", 0)
    criterion = kind(task, sentence_avg, 0.0, 1, False, 0.0, 0.0, *measure)
    sample = {"net_input": {}, "target": TARGET, "ntokens": 6}
    _, size, log = criterion(Uniform(), sample)
    assert log["ntokens"] == 4 and size == (2 if sentence_avg else 4)


@pytest.mark.parametrize("sentence_avg", [False, True])
@pytest.mark.parametrize("name", ["ctc", "unit"])
def test_criteria_of_speech_count_as_the_others(name, sentence_avg):
    from fairseq.criterions import label_smoothed_cross_entropy_with_ctc as with_ctc
    from fairseq.criterions import speech_to_speech_criterion

    dictionary = SimpleNamespace(pad=lambda: PAD)
    task = SimpleNamespace(target_dictionary=dictionary, multitask_tasks={})
    arguments = (task, sentence_avg, 0.0, 1, True)
    if name == "ctc":
        criterion = with_ctc.LabelSmoothedCrossEntropyWithCtcCriterion(*arguments, ctc_weight=0.0)
        inputs = {}
    else:
        criterion = speech_to_speech_criterion.SpeechToUnitMultitaskTaskCriterion(*arguments)
        names = ("src_tokens", "src_lengths", "prev_output_tokens", "tgt_speaker")
        inputs = dict.fromkeys(names)
    sample = {"net_input": inputs, "target": TARGET, "ntokens": 6}
    loss, size, log = criterion(UniformSpeech(), sample)
    assert (size, log["ntokens"], log["total"]) == (2 if sentence_avg else 4, 4, 4)
    assert loss.item() / 4 == pytest.approx(torch.tensor(8.0).log().item())


@pytest.mark.parametrize("sentence_avg", [False, True])
def test_a_batch_of_prefixes_has_no_weight(sentence_avg):
    """One batch of two sentences and two batches of one log the same means."""
    task = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD))
    criterion = LabelSmoothedCrossEntropyCriterion(task, sentence_avg, 0.1, 2)

    def logged(*batches):
        with metrics.aggregate(new_root=True) as meters:
            for rows in batches:
                sample = {"net_input": {}, "target": rows, "ntokens": rows.ne(PAD).sum()}
                log = criterion(Uniform(len(rows)), sample)[2]
                criterion.reduce_metrics([log])
        return [meters.get_smoothed_value(name) for name in ("loss", "nll_loss", "ppl")]

    for order in (TARGET, TARGET.flip(0)):
        assert logged(*order.split(1)) == pytest.approx(logged(order))
    assert logged(TARGET[1:]) == [0, 0, 1]
