"""A name in --model-overrides that is no option is refused."""

import argparse
import contextlib

import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_ext.compat.checkpoints.model_overrides import (
    CommandOverrides,
    check_override_names,
    command_overrides,
    overrides_of,
    warn_beside_task,
)
from fairseq_ext.compat.context_values import holding


def of_command(*names, command="fairseq-generate"):
    """A block in which a command has these names in --model-overrides."""
    task = {"_name": "translation", "data": "/data", "source_lang": "xx", "target_lang": "yy"}
    cfg = {"task": task, "generation": {"beam": 5}}
    return holding(command_overrides, CommandOverrides(names, command, cfg))


def checkpoint(folder, is_old=False):
    """Path of a Transformer; of fairseq before 0.10 its options have no groups."""
    task = {"data": "/data", "source_lang": "xx", "left_pad_source": True}
    model = argparse.Namespace(
        arch="transformer", decoder_attention_heads=2, activation_fn="relu", dropout=0.1, beam=5
    )
    history = [{"criterion_name": "x", "num_updates": 1, "lr_scheduler_state": {}}]
    extra = {"train_iterator": {"epoch": 1}}
    state = {"model": {}, "optimizer_history": history, "extra_state": extra}
    if is_old:
        state["args"] = argparse.Namespace(task="translation", **task, **vars(model))
    else:
        cfg = {"task": {"_name": "translation", **task}, "model": model}
        state.update(cfg={**cfg, "generation": {"beam": 5, "print_alignment": None}}, args=None)
    path = str(folder / "stored.pt")
    torch.save(state, path)
    return path


@pytest.fixture
def stored(tmp_path):
    """Path of a checkpoint of a Transformer."""
    return checkpoint(tmp_path)


@pytest.fixture
def overrides():
    """A function: the names in --model-overrides are looked up in a configuration."""

    def check(cfg, *names):
        with of_command(*names):
            check_override_names("x.pt", cfg)

    return check


def test_override_that_is_younger_than_the_checkpoint(overrides):
    """An option that the class declares today may be set where the checkpoint has none."""
    model = argparse.Namespace(arch="lstm", dropout=0.1)
    cfg = {"task": {"_name": "translation"}, "model": model}
    overrides(cfg, "dropout", "encoder_bidirectional")
    with pytest.raises(ValueError, match="'droput' is no option .*did you mean dropout"):
        overrides(cfg, "droput")


def test_overrides_of_other_projects_are_theirs(overrides, monkeypatch):
    from fairseq.models import ARCH_MODEL_REGISTRY

    class Other:
        pass

    monkeypatch.setitem(ARCH_MODEL_REGISTRY, "other_arch", Other)
    overrides({"model": argparse.Namespace(arch="other_arch")}, "own_option")


def test_a_checkpoint_is_read_once(tmp_path, monkeypatch, overrides):
    """Names in --model-overrides are looked up without a second reading."""
    path = str(tmp_path / "x.pt")
    cfg = {"task": {"_name": "translation"}, "model": {"_name": "lstm", "dropout": 0.1}}
    history = [{"criterion_name": "x", "num_updates": 1}]
    state = {"cfg": cfg, "model": {}, "optimizer_history": history, "extra_state": {}}
    torch.save({**state, "args": None}, path)
    reads, load = [], torch.load
    monkeypatch.setattr(
        torch, "load", lambda *args, **named: reads.append(1) or load(*args, **named)
    )
    with (
        of_command("droput"),
        pytest.raises(ValueError, match="'droput' is no option in the configuration of .*x.pt"),
    ):
        checkpoint_utils.load_checkpoint_to_cpu(path, {"droput": 0.2})
    assert len(reads) == 1


def test_options_without_groups_are_compared_too(tmp_path):
    stored = checkpoint(tmp_path, is_old=True)
    with of_command("data"), pytest.raises(ValueError, match="'data' is no option of the model"):
        checkpoint_utils.load_checkpoint_to_cpu(stored, {"data": "/other"})


@pytest.mark.parametrize(
    "name, value, allowed",
    [
        ("data", "/other", "fairseq-generate /other"),
        ("source_lang", "yy", "--source-lang yy"),
        ("task", "language_modeling", "--task language_modeling"),
        ("beam", 1, "--beam 1"),
        ("arch", "lstm", "leave it out"),
    ],
)
def test_options_that_the_command_reads_itself_are_refused(stored, name, value, allowed):
    """They did nothing: fairseq-generate builds its task from its own command line."""
    expected = f"'{name}' is no option of the model in .*, and does nothing in fairseq-generate; "
    with of_command(name), pytest.raises(ValueError, match=f"{expected}allowed: {allowed}$"):
        checkpoint_utils.load_checkpoint_to_cpu(stored, {name: value})


@pytest.mark.parametrize("overrides", [{"data": "/data"}, {"beam": 5}, {"task": "translation"}])
def test_values_of_the_command_line_may_be_repeated(stored, overrides):
    with of_command(*overrides):
        checkpoint_utils.load_checkpoint_to_cpu(stored, overrides)


def test_validation_reads_the_task_of_the_checkpoint(stored):
    with of_command("left_pad_source", command="fairseq-validate"):
        checkpoint_utils.load_checkpoint_to_cpu(stored, {"left_pad_source": False})


@pytest.mark.parametrize("is_old, is_command", [(False, False), (False, True), (True, True)])
def test_another_function_of_the_same_parameters_is_named(tmp_path, is_old, is_command, caplog):
    """As many heads of another width fit, and translate otherwise."""
    stored = checkpoint(tmp_path, is_old)
    overrides = {"decoder_attention_heads": 4, "dropout": 0.3, "activation_fn": "relu"}
    with of_command(*overrides) if is_command else contextlib.nullcontext():
        checkpoint_utils.load_checkpoint_to_cpu(stored, overrides)
    (record,) = caplog.records
    assert record.getMessage() == (
        f"{stored}: decoder_attention_heads is 4 and was 2 when it was trained: the model "
        "computes other numbers than the trained one"
    )


def test_a_folder_beside_a_task_is_named(caplog):
    task = argparse.Namespace(args=argparse.Namespace(data="/data", source_lang="xx"))
    warn_beside_task({"data": "/data", "source_lang": "yy"}, task)
    (record,) = caplog.records
    assert "source_lang yy does nothing beside a task, which has xx" in record.getMessage()


def test_a_missing_checkpoint_is_named_with_its_option():
    cfg = argparse.Namespace(path="a.pt:b.pt", model_overrides="{}")
    with pytest.raises(FileNotFoundError, match="--path b.pt"), overrides_of(cfg, "generate"):
        raise FileNotFoundError(2, "no such checkpoint", "b.pt")
