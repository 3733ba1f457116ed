"""Names and options are the same in whatever form a checkpoint holds its configuration."""

from argparse import Namespace

import pytest
from omegaconf import OmegaConf

from fairseq_ext.compat.checkpoints.configurations import (
    chosen_name,
    forget_missing_vectors,
    options_of,
    options_of_task,
    registered_model,
    stored_group,
    stored_name,
)


def namespace(values):
    return Namespace(**values)


@pytest.mark.parametrize("kind", [dict, namespace, OmegaConf.create])
def test_options_are_those_of_the_group_itself(kind):
    group = kind({"_name": "translation", "data": "old"})
    assert dict(options_of(group)) == {"_name": "translation", "data": "old"}
    options_of(group)["data"] = "new"
    assert options_of(group)["data"] == "new"


def test_a_group_that_is_not_there_has_no_options():
    assert options_of(None) == {} and chosen_name(None, "task") is None


@pytest.mark.parametrize("attribute", ["cfg", "args"])
def test_options_of_tasks_with_and_without_a_dataclass(attribute):
    task = Namespace(**{attribute: Namespace(source_lang="xx")})
    assert options_of_task(task) == {"source_lang": "xx"}
    assert options_of_task(Namespace()) == {}


@pytest.mark.parametrize("kind", [dict, namespace, OmegaConf.create])
def test_names_of_groups(kind):
    both = kind({"_name": "lstm", "arch": "lstm_tiny", "task": "translation"})
    assert chosen_name(both, "model") == "lstm"
    whole = kind({"arch": "lstm_tiny", "task": "translation", "criterion": None})
    assert chosen_name(whole, "model") == "lstm_tiny"
    assert chosen_name(whole, "task") == "translation"
    assert chosen_name(whole, "criterion") is chosen_name(whole, "optimizer") is None


def test_a_group_may_be_its_bare_name():
    assert chosen_name("bleu", "scoring") == "bleu"


def test_a_configuration_that_takes_no_other_keys():
    group = OmegaConf.create({"_name": None})
    OmegaConf.set_struct(group, True)
    assert chosen_name(group, "model") is None


def test_the_model_behind_an_architecture():
    import fairseq.models  # noqa: F401  # registers them

    assert registered_model({"_name": "transformer_iwslt_de_en"}) == "transformer"
    assert registered_model(Namespace(arch="of_a_plugin")) == "of_a_plugin"
    assert registered_model(None) is None


def test_names_in_checkpoints():
    cfg = {"task": {"_name": "translation"}, "model": Namespace(arch="transformer")}
    assert stored_name({"cfg": cfg}, "task") == "translation"
    assert stored_name({"cfg": cfg}, "model") == "transformer"
    old = {"cfg": None, "args": Namespace(task="translation", arch="lstm")}
    assert (stored_name(old, "task"), stored_name(old, "model")) == ("translation", "lstm")
    assert stored_name({}, "model") is None


@pytest.mark.parametrize("state", [{}, {"cfg": "a text"}, {"cfg": {"model": None}, "args": None}])
def test_files_that_are_no_checkpoints_of_fairseq_have_no_groups(state):
    assert stored_group(state, "model") is None


@pytest.mark.parametrize("kind", [dict, namespace, OmegaConf.create])
def test_files_of_vectors_that_are_gone_are_forgotten(kind, tmp_path):
    file = tmp_path / "vectors.txt"
    file.touch()
    model = kind({"encoder_embed_path": str(file), "decoder_embed_path": "gone.txt"})
    forget_missing_vectors({"cfg": {"model": model}})
    assert options_of(model) == {"encoder_embed_path": str(file), "decoder_embed_path": None}
    forget_missing_vectors({"cfg": {"model": "lstm"}})
