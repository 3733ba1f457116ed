"""The pairs of a checkpoint's model, as whatever its configuration is."""

from argparse import Namespace

import pytest
from omegaconf import OmegaConf

from fairseq_ext.streams.stored_pairs import store_pairs, stored_pairs


@pytest.mark.parametrize("kind", [lambda **values: Namespace(**values), OmegaConf.create, dict])
def test_pairs_are_read_from_any_configuration(kind):
    def model(**values):
        return kind(values) if kind is OmegaConf.create else kind(**values)

    assert stored_pairs(model(lang_pairs="de-en,en-de")) == ["de-en", "en-de"]
    assert stored_pairs(model(lang_pairs=None)) == stored_pairs(model(layers=2)) == []


@pytest.mark.parametrize("model", [{"lang_pairs": None}, {"layers": 2}])
def test_a_run_stores_its_pairs(model):
    run = OmegaConf.create({"model": model})
    OmegaConf.set_struct(run, True)
    store_pairs(run.model, ["de-en", "en-de"])
    assert run.model.lang_pairs == "de-en,en-de" and stored_pairs(run.model) == ["de-en", "en-de"]


def test_options_of_a_model_without_a_dataclass_are_written_as_they_are():
    args = Namespace(layers=2)
    store_pairs(args, ["de-en"])
    assert vars(args) == {"layers": 2, "lang_pairs": "de-en"}
