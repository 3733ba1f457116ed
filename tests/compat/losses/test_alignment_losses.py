"""transformer_align and label_smoothed_cross_entropy_with_alignment."""

import math

import pytest
import torch
from common import inprocess
from fairseq import metrics, options, tasks

SIZES = [
    *("--encoder-embed-dim", 8, "--decoder-embed-dim", 8, "--encoder-ffn-embed-dim", 8),
    *("--decoder-ffn-embed-dim", 8, "--encoder-attention-heads", 2, "--encoder-layers", 1),
    *("--decoder-attention-heads", 2, "--decoder-layers", 2, "--dropout", 0),
]
LAMBDA = 0.3


@pytest.fixture
def build(toy_corpus):
    """Function (options...) -> (model, criterion, a batch with alignments)."""

    def build(*more):
        words = [toy_corpus.two, "--arch", "transformer_align", *SIZES, "--alignment-layer", 1]
        words += ["--criterion", "label_smoothed_cross_entropy_with_alignment", *more]
        words += ["--label-smoothing", 0, "--alignment-lambda", LAMBDA]
        cfg = inprocess.configuration(options.get_training_parser(), words)
        task = tasks.setup_task(cfg.task)
        torch.manual_seed(1)
        model, criterion = task.build_model(cfg.model), task.build_criterion(cfg.criterion)
        task.load_dataset("valid")
        batch = task.dataset("valid").collater([task.dataset("valid")[n] for n in range(4)])
        width, columns = batch["target"].size(1), batch["net_input"]["src_tokens"].size(1)
        # the second word of the first two targets, with the last word of their sources
        batch["alignments"] = torch.tensor([[columns - 2, 1], [columns - 2, width + 1]])
        batch["align_weights"] = torch.ones(2)
        return model, criterion, batch

    return build


@pytest.mark.parametrize("prefix", [0, 1, 2])
@pytest.mark.parametrize("sentence_avg", [False, True])
def test_prefixes_are_ignored_and_accuracy_is_reported(prefix, sentence_avg, build):
    more = ["--sentence-avg"] if sentence_avg else []
    model, criterion, batch = build("--ignore-prefix-size", prefix, "--report-accuracy", *more)
    model.eval()
    loss, size, log = criterion(model, batch)
    output = model(**batch["net_input"])
    scores = torch.log_softmax(output[0].double(), dim=-1)
    nll, right, words = 0.0, 0, 0
    for row, target in enumerate(batch["target"].tolist()):
        for place, word in enumerate(target):
            if place >= prefix and word != criterion.padding_idx:
                nll -= scores[row, place, word].item()
                right += int(scores[row, place].argmax()) == word
                words += 1
    attention = output[1]["attn"][0].flatten(0, 1)  # (B T, S)
    aligned = -sum(
        math.log(attention[target, source]) for source, target in batch["alignments"].tolist()
    )
    assert size == (4 if sentence_avg else words) and log["ntokens"] == words
    assert loss.item() == pytest.approx(nll + LAMBDA * aligned, rel=1e-4)
    assert log["nll_loss"].item() == pytest.approx(nll, rel=1e-4)
    with metrics.aggregate(new_root=True) as meters:
        type(criterion).reduce_metrics([log])
        logged = meters.get_smoothed_values()
    assert logged["accuracy"] == pytest.approx(100 * right / words)
    assert logged["alignment_loss"] == pytest.approx(aligned / int(size) / math.log(2), abs=1e-3)
    assert logged["loss"] == pytest.approx(nll / int(size) / math.log(2), abs=1e-3)


@pytest.mark.parametrize(
    "option, number",
    [("--alignment-layer", 2), ("--alignment-layer", -1), ("--alignment-heads", 0)],
)
def test_what_the_decoder_lacks_is_refused(option, number, build):
    model, criterion, batch = build(option, number)
    with pytest.raises(ValueError, match=f"^{option} {number}: "):
        criterion(model, batch)
    batch.pop("alignments")
    assert criterion(model, batch)[0].isfinite()


def test_a_layer_that_may_be_dropped_is_refused(build):
    model, criterion, batch = build("--decoder-layerdrop", 0.5)
    with pytest.raises(ValueError, match="^--decoder-layerdrop 0.5 is not allowed"):
        criterion(model.train(), batch)
    assert criterion(model.eval(), batch)[0].isfinite()


@pytest.mark.parametrize("extra", [{}, {"attn": None}, {"attn": [None]}, None, torch.ones(2, 3)])
def test_models_without_attention_are_refused(extra, build, monkeypatch):
    """What dual, duo, multi-way and recurrent models return in training."""
    _, criterion, batch = build()

    class Model(torch.nn.Module):
        def forward(self, **net_input):
            return None, extra

    nothing = torch.zeros(())
    monkeypatch.setattr(criterion, "compute_loss", lambda *arguments, **more: (nothing, nothing))
    message = "^--criterion label_smoothed_cross_entropy_with_alignment: Model gives no attention"
    with pytest.raises(ValueError, match=message):
        criterion(Model(), batch)
