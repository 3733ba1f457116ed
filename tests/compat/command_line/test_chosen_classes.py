"""The registered classes that the options of a command name."""

import fairseq.models
import fairseq.tasks  # noqa: F401
import pytest
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.models.lstm import LSTMModel
from fairseq.models.transformer_lm import TransformerLanguageModel
from fairseq.tasks.translation import TranslationTask

from fairseq_ext.compat.command_line import chosen_classes


class PluginModel(LSTMModel):
    """A model of another project, with an option of a name of fairseq's."""

    @staticmethod
    def add_args(parser):
        """Declare an option, once more than it can be."""
        parser.add_argument("--my-width", type=int)
        parser.add_argument("--dropout", type=str)
        parser.add_argument("--dropout", type=str)


@pytest.fixture
def plugin(monkeypatch):
    """Name of an architecture of another project."""
    monkeypatch.setitem(ARCH_MODEL_REGISTRY, "plugin_lstm", PluginModel)
    return "plugin_lstm"


def test_the_classes_of_all_registries_are_found():
    values = {"task": "translation", "arch": "lstm", "optimizer": "adam", "criterion": "no_such"}
    names = {entry.__name__ for entry in chosen_classes.chosen_classes(values)}
    assert names == {"TranslationTask", "LSTMModel", "FairseqAdam"}


def test_the_model_is_that_of_arch():
    assert chosen_classes.chosen_model({"arch": "lstm", "task": "translation"}) is LSTMModel
    for values in ({}, {"arch": None}, {"arch": "no_such"}, {"task": "translation"}):
        assert chosen_classes.chosen_model(values) is None


def test_language_models_are_told_from_others():
    assert chosen_classes.is_language_model(TransformerLanguageModel)
    assert not chosen_classes.is_language_model(LSTMModel)
    assert "LSTMModel" in chosen_classes.names_of_bases(PluginModel)


def test_options_of_another_project_are_foreign(plugin):
    assert not chosen_classes.is_stock(PluginModel)
    assert chosen_classes.is_stock(TranslationTask)
    assert chosen_classes.foreign_options({"arch": plugin}) == {"my_width", "dropout"}
    assert chosen_classes.foreign_options({"arch": "lstm"}) == set()
