"""Options of a plugin's add_args reach what was registered with a dataclass."""

import pickle
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, fields

import pytest
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import merge_with_parent, omegaconf_no_object_check
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import OmegaConf

from fairseq_ext.compat.optimizers.added_options import extend_dataclasses, with_added_options


class Weighing(TranslationTask):
    @staticmethod
    def add_args(parser):
        TranslationTask.add_args(parser)
        parser.add_argument("--weight", default=0, type=float, help="of the second loss")
        parser.add_argument("--teacher", metavar="FILE")
        parser.add_argument("--shares", type=int, nargs=2, default=[1, 2])
        parser.add_argument("--halved", action="store_true")


class Plain(TranslationTask):
    pass


class Failing(TranslationTask):
    @staticmethod
    def add_args(parser):
        parser.add_argument("--teacher", choices=parser.no_such_name)


def test_fields_are_added():
    options = with_added_options(TranslationConfig, Weighing)
    assert issubclass(options, TranslationConfig)
    cfg = options()
    assert (cfg.weight, cfg.teacher, cfg.shares, cfg.halved) == (0, None, [1, 2], False)
    added = {field.name for field in fields(options)} - {
        field.name for field in fields(TranslationConfig)
    }
    assert added == {"weight", "teacher", "shares", "halved"}
    assert pickle.loads(pickle.dumps(cfg)).shares == [1, 2]


def test_values_are_taken():
    options = with_added_options(TranslationConfig, Weighing)
    values = OmegaConf.create({"_name": None, "weight": 5, "teacher": "a.pt", "halved": True})
    with omegaconf_no_object_check():
        cfg = merge_with_parent(options(), values)
    assert (cfg.weight, cfg.teacher, cfg.halved, cfg.source_lang) == (5.0, "a.pt", True, None)


@pytest.mark.parametrize("kind", [Plain, Failing, TranslationTask])
def test_others_keep_their_dataclass(kind):
    assert with_added_options(TranslationConfig, kind) is TranslationConfig
    assert with_added_options(None, kind) is None


def test_registered_with_the_fields():
    @dataclass
    class Options(FairseqDataclass):
        weight: float = 1.0

    def register(name, dataclass=None):
        return lambda kind: (name, dataclass, kind)

    name, options, kind = extend_dataclasses(register)("weighing", Options)(Weighing)
    assert (name, kind) == ("weighing", Weighing)
    assert options().weight == 1.0 and options().shares == [1, 2]


def test_a_criterion():
    from fairseq import criterions

    class Regularised(LabelSmoothedCrossEntropyCriterion):
        def __init__(self, task, sentence_avg, label_smoothing, strength=0.0):
            super().__init__(task, sentence_avg, label_smoothing)
            self.strength = strength

        @staticmethod
        def add_args(parser):
            parser.add_argument("--strength", type=float, default=0.0)

    register = criterions.register_criterion
    register("regularised_by_test", LabelSmoothedCrossEntropyCriterionConfig)(Regularised)
    try:
        cfg = OmegaConf.create(
            {"_name": "regularised_by_test", "sentence_avg": False, "strength": 3.0}
        )
        task = Namespace(target_dictionary=None)
        assert criterions.build_criterion(cfg, task).strength == 3.0
    finally:
        del criterions.CRITERION_REGISTRY["regularised_by_test"]
        del criterions.CRITERION_DATACLASS_REGISTRY["regularised_by_test"]


class TestInherited:
    """Classes that are registered by a name alone: `__dataclass` is None."""

    @staticmethod
    def options_of(kind):
        parser = ArgumentParser()
        kind.add_args(parser)
        return parser.parse_args(["data"] if issubclass(kind, TranslationTask) else [])

    def test_a_task(self):
        kind = type("Named", (Plain,), {"__dataclass": None})
        assert self.options_of(kind).truncate_source is False
        # as it was for fairseq's own
        stock = type(
            "Own", (TranslationTask,), {"__dataclass": None, "__module__": "fairseq.tasks"}
        )
        with pytest.raises(SystemExit):
            self.options_of(stock)

    def test_a_criterion(self):
        kind = type("Named", (LabelSmoothedCrossEntropyCriterion,), {"__dataclass": None})
        options = self.options_of(kind)
        assert (options.label_smoothing, options.report_accuracy) == (0.0, False)

    def test_a_model(self):
        from fairseq.models.transformer_lm import TransformerLanguageModel

        kind = type("Named", (TransformerLanguageModel,), {"__dataclass": None})
        parser = ArgumentParser()
        kind.add_args(parser)
        assert parser.parse_args(["--decoder-layers", "2"]).decoder_layers == 2
