"""What differs between a checkpoint and a model is named; dictionaries are compared."""

import argparse
from types import SimpleNamespace

import pytest
import torch
from common import inprocess
from common.words import dictionary_with
from fairseq import checkpoint_utils
from options.systems import SYSTEMS

import fairseq_ext
from fairseq_ext.compat.checkpoints.dictionary_digests import digests
from fairseq_ext.compat.checkpoints.refusals import parameters_differ
from fairseq_ext.compat.data.data_files import UnreadableFile


def test_parameters_that_differ():
    import torch

    narrow, wide = torch.nn.ModuleDict(), torch.nn.ModuleDict()
    for name in "abc":
        narrow[name] = torch.nn.Linear(2, 2)
        wide[name] = torch.nn.Linear(3, 2)
    narrow["old"], wide["new"] = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    with pytest.raises(RuntimeError) as raised:
        wide.load_state_dict(narrow.state_dict())
    words = parameters_differ("x.pt", str(raised.value))
    assert words.startswith("x.pt: the checkpoint of another model: 7 parameters do not fit: ")
    assert "new.weight (missing in the file), new.bias" in words and "and 4 more" in words
    only = str(raised.value).splitlines()
    only = "\n".join(line for line in only if "size mismatch" in line)
    assert "a.weight ([2, 2] in the file, [2, 3] in the model)" in parameters_differ("x.pt", only)
    single = "\n".join(only.splitlines()[:1])
    assert ": 1 parameter does not fit: a.weight (" in parameters_differ("x.pt", single)


@pytest.fixture
def of_another_project():
    """Classes of a task for language models and of a model, as another project has them."""
    from fairseq.models import BaseFairseqModel
    from fairseq.tasks.language_modeling import LanguageModelingTask

    class Scoring(LanguageModelingTask):
        def __init__(self):
            pass

    class Pairs(BaseFairseqModel):
        pass

    Scoring.__module__ = Pairs.__module__ = "other_project.parts"
    return Scoring(), Pairs()


def test_kinds_of_other_projects_are_theirs(of_another_project):
    from fairseq_ext.compat.checkpoints.refusals import check_kind

    task, model = of_another_project
    check_kind("x.pt", model, task)
    type(task).__module__ = type(model).__module__ = "fairseq.parts"
    with pytest.raises(ValueError, match="x.pt: no language model"):
        check_kind("x.pt", model, task)


@pytest.mark.parametrize("is_new", [False, True], ids=["resumed", "new"])
def test_parameters_of_another_language(is_new, monkeypatch, caplog):
    """A new training may begin with parameters of another dictionary; a resumed one not."""
    from fairseq_ext.compat.checkpoints.refusals import training_notes_its_dictionaries

    stored = {"dictionaries": digests(SimpleNamespace(source_dictionary=dictionary_with("a", "b")))}

    class Trainer:
        task = SimpleNamespace(source_dictionary=dictionary_with("c", "d"))

        def state_dict(self):
            return {"extra_state": {}}

        def load_checkpoint(self, filename, reset_optimizer=False, reset_lr_scheduler=False):
            return stored

    training_notes_its_dictionaries(argparse.Namespace(Trainer=Trainer))
    if is_new:
        assert Trainer().load_checkpoint("x.pt", True) is stored
        assert "x.pt: trained with another dictionary of source" in caplog.text
    else:
        with pytest.raises(ValueError, match="x.pt: trained with another dictionary of source"):
            Trainer().load_checkpoint("x.pt")


@pytest.mark.parametrize(
    "content, lacking",
    [
        ([1, 2], "parameters"),
        ({"cfg": None}, "parameters"),
        ({"model": {}}, "optimizer_history, no extra_state"),
        ({"model": {}, "optimizer_history": [], "extra_state": {}}, "optimizer_history"),
        ({"model": {}, "optimizer_history": [{}]}, "extra_state"),
    ],
)
def test_entries_that_are_not_there_are_no_damage(content, lacking, tmp_path):
    path = tmp_path / "model.pt"
    torch.save(content, path)
    with pytest.raises(UnreadableFile) as refusal:
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert str(refusal.value) == f"{path}: not a checkpoint of fairseq: it has no {lacking}"


HISTORY = [{"lr_scheduler_state": {}}]


@pytest.mark.parametrize(
    "parts, message",
    [
        ({"extra_state": None}, "its extra_state is 'None' (NoneType), which must be a mapping"),
        ({"extra_state": [1]}, "its extra_state is '[1]' (list), which must be a mapping"),
        ({"optimizer_history": "x"}, "its optimizer_history is 'x' (str), which must be a list"),
        ({"optimizer_history": [3]}, "its optimizer_history ends with '3' (int), which must be a"),
        ({"optimizer_history": [{}]}, "it has no lr_scheduler_state in the last entry of its opt"),
        (
            {"extra_state": {"train_iterator": [1]}, "args": argparse.Namespace()},
            "train_iterator in its extra_state is '[1]' (list), which must be a mapping",
        ),
        ({"extra_state": ..., "epoch": 3}, "it has no batch_offset, no val_loss"),
        ({"optimizer_history": ..., "best_loss": 3.0}, "it has no optimizer"),
    ],
)
def test_entries_of_another_form_are_named(parts, message, tmp_path):
    path = tmp_path / "model.pt"
    content = {"model": {}, "optimizer_history": HISTORY, "extra_state": {}, **parts}
    torch.save({name: part for name, part in content.items() if part is not ...}, path)
    with pytest.raises(UnreadableFile) as refusal:
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert str(refusal.value).startswith(f"{path}: not a checkpoint of fairseq: {message}")


@pytest.mark.parametrize("entry", ["epoch", "criterion_name"])
def test_what_a_training_goes_on_from_is_named(toy_corpus, tmp_path, entry):
    kind = SYSTEMS["transformer"]
    words = ["--max-tokens", 200, "--disable-validation", "--save-dir", tmp_path]
    inprocess.train(*kind.words(toy_corpus.two, *words, "--max-update", 1))
    path = tmp_path / "checkpoint_last.pt"
    state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    if entry == "epoch":
        del state["extra_state"]["train_iterator"]["epoch"]
    else:
        del state["optimizer_history"][-1]["criterion_name"]
    torch.save(state, path)
    with pytest.raises(
        ValueError, match=f"{path}: '{entry}' is missing where a training goes on from it"
    ):
        inprocess.train(*kind.words(toy_corpus.two, *words, "--max-update", 2))


@pytest.mark.parametrize(
    "configuration, kind",
    [
        ({}, "task"),
        ({"cfg": None, "args": None}, "task"),
        ({"cfg": {"model": {"_name": "transformer"}}}, "task"),
        ({"cfg": {"task": {"_name": "translation"}}}, "model"),
    ],
)
def test_a_checkpoint_without_configuration_is_named(configuration, kind, tmp_path):
    path = tmp_path / "model.pt"
    history = [{"lr_scheduler_state": {}}]
    parts = {"model": {}, "optimizer_history": history, "extra_state": {}}
    torch.save({**parts, **configuration}, path)
    for load in (checkpoint_utils.load_model_ensemble_and_task, fairseq_ext.load):
        with pytest.raises(UnreadableFile, match=f"{path}: no configuration of the {kind} in it"):
            load([str(path)])


@pytest.mark.parametrize("content", [{"model": {}, "extra_state": {}}, {"model": {}}, [1, 2]])
def test_a_seed_without_averages(tmp_path, content):
    """--ema-seed-model with the checkpoint of a training without averages."""
    path = tmp_path / "plain.pt"
    torch.save(content, path)
    with pytest.raises(UnreadableFile, match=f"--ema-seed-model {path}: it holds no averages"):
        checkpoint_utils.load_ema_from_checkpoint(str(path))


def test_a_seed_with_averages(tmp_path):
    path = tmp_path / "averaged.pt"
    torch.save({"model": {}, "extra_state": {"ema": {"weight": torch.ones(2)}}}, path)
    state = checkpoint_utils.load_ema_from_checkpoint(str(path))
    assert state["model"]["weight"].tolist() == [1, 1]


@pytest.mark.parametrize("is_named", [True, False])
def test_a_model_of_the_other_direction(is_named, toy_corpus, tmp_path):
    """With a joined dictionary its parameters fit."""
    kind, path = SYSTEMS["transformer"], tmp_path / "checkpoint_last.pt"
    words = ["--max-tokens", 200, "--disable-validation", "--save-dir", tmp_path]
    inprocess.train(*kind.words(toy_corpus.two, *words, "--max-update", 1))
    if not is_named:  # the training had no -s and no -t
        state = torch.load(path, weights_only=True)
        state["cfg"]["task"].update(source_lang=None, target_lang=None)
        torch.save(state, path)
    words = [toy_corpus.two, "--path", path, "--gen-subset", "valid", "--beam", 1]
    warning = f"{path}: trained for xx-yy, and -s and -t ask for yy-xx, which it translates only"
    assert warning in inprocess.generate(*words, "-s", "yy", "-t", "xx")
    assert "trained for" not in inprocess.generate(*words, "-s", "xx", "-t", "yy")
