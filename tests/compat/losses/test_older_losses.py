"""Losses of criteria and tasks for fairseq 0.9 are logged as fairseq 0.9 logged them."""

from argparse import Namespace

import pytest
from fairseq.criterions import FairseqCriterion
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics
from fairseq.tasks import FairseqTask

# (loss of a batch, its sample size, its words)
BATCHES = ((1.0, 1, 30), (4.0, 2, 10))
# by words, 1.75 bits, and 2 to the power of that
MEANS = {"loss": 3.0, "nll_loss": 1.75, "accuracy": 3.0, "share": 2.5, "ppl": 3.36}


def first(logging_outputs):
    """What the only worker has logged."""
    (log,) = logging_outputs
    return dict(log)


class Summing(FairseqCriterion):
    """A criterion for fairseq 0.9."""

    @staticmethod
    def aggregate_logging_outputs(logging_outputs):
        return first(logging_outputs)


class SummingTask(FairseqTask):
    """A task for fairseq 0.9."""

    def aggregate_logging_outputs(self, logging_outputs, criterion):
        assert isinstance(criterion, CrossEntropyCriterion)
        return first(logging_outputs)


class PresentTask(FairseqTask):
    """A task of today."""


def logged(reduce_metrics):
    """What is logged of two batches."""
    with metrics.aggregate() as meters:
        for loss, size, words in BATCHES:
            sizes = {"ntokens": words, "nsentences": 2, "sample_size": size}
            values = dict.fromkeys(("loss", "nll_loss", "accuracy", "share"), loss)
            reduce_metrics([{**values, **sizes}])
    return dict(meters.get_smoothed_values())


def test_older_losses_are_weighed():
    assert logged(Summing.reduce_metrics) == MEANS


def test_a_perplexity_that_is_returned_is_logged():
    with metrics.aggregate(new_root=True) as meters:
        Summing.reduce_metrics([{"loss": 2.0, "ppl": 9.0, "sample_size": 1}])
    assert dict(meters.get_smoothed_values()) == {"loss": 2.0, "ppl": 9.0}


def test_losses_of_older_tasks_are_weighed():
    criterion = CrossEntropyCriterion.__new__(CrossEntropyCriterion)
    task = SummingTask(Namespace())
    values = logged(lambda outputs: task.reduce_metrics(outputs, criterion))
    assert values.pop("wps") > 0
    assert values == {**MEANS, "wpb": 20.0, "bsz": 2.0}


def test_tasks_of_today_log_what_the_criterion_does():
    criterion, task = Summing.__new__(Summing), PresentTask(Namespace())
    values = logged(lambda outputs: task.reduce_metrics(outputs, criterion))
    assert values.pop("wps") > 0
    assert values == {**MEANS, "wpb": 20.0, "bsz": 2.0}


class Sharing(LabelSmoothedCrossEntropyCriterion):
    """A criterion for fairseq 0.9 that derives from a stock one and logs a value more."""

    @staticmethod
    def aggregate_logging_outputs(logging_outputs):
        sums = LabelSmoothedCrossEntropyCriterion.aggregate_logging_outputs(logging_outputs)
        return {**sums, "share": first(logging_outputs)["share"]}


class SharingToo(Sharing):
    """A criterion that derives from that one."""


class Present(Sharing):
    """A criterion of today with what was left from 0.9."""

    @staticmethod
    def reduce_metrics(logging_outputs):
        metrics.log_scalar("mine", 1)


class ForBoth(LabelSmoothedCrossEntropyCriterion):
    """A criterion for fairseq 0.9 and for later ones."""

    aggregate_logging_outputs = staticmethod(Sharing.aggregate_logging_outputs)
    reduce_metrics = staticmethod(Present.reduce_metrics)


@pytest.mark.parametrize("kind", [Sharing, SharingToo])
def test_criteria_that_derive_log_what_they_make_of_the_losses(kind):
    values = logged(kind.reduce_metrics)
    bits = 1 / 0.6931471805599453
    # sums of losses over the sample size, and over the words
    assert values["loss"] == pytest.approx((1 + 4) / 3 * bits)
    assert values["nll_loss"] == pytest.approx((1 + 4) / 40 * bits)
    assert values["share"] == 2.5
    assert values["ppl"] == pytest.approx(2 ** values["nll_loss"], abs=0.01)
    # workers send each log: a sum is not what the method expects
    assert not kind.logging_outputs_can_be_summed()


@pytest.mark.parametrize("kind", [Present, ForBoth])
def test_criteria_with_metrics_log_these(kind):
    assert logged(kind.reduce_metrics) == {"mine": 1}


def test_criteria_of_today_log_as_before():
    assert LabelSmoothedCrossEntropyCriterion.logging_outputs_can_be_summed()
    assert set(logged(LabelSmoothedCrossEntropyCriterion.reduce_metrics)) == {
        "loss",
        "nll_loss",
        "ppl",
    }


def test_a_criterion_without_sums_has_none():
    with pytest.raises(NotImplementedError):
        FairseqCriterion.aggregate_logging_outputs([])
