"""Tasks that were written for earlier versions of fairseq."""

from argparse import Namespace

import pytest

from fairseq_ext.compat.data.older_tasks import take_newer_arguments


def test_older_tasks_have_their_options():
    """A task of fairseq 0.10, which derives from `translation` and declares options of its own."""
    from fairseq.tasks.translation import TranslationConfig, TranslationTask

    class OlderTask(TranslationTask):
        """A task without a dataclass."""

    options = Namespace(source_lang="xx", note="x")
    assert OlderTask(options, None, None).args is options
    assert not hasattr(TranslationTask(TranslationConfig(), None, None), "args")


class OldTask:
    def build_model(self, cfg):
        return ("model", cfg)

    def load_dataset(self, split, epoch=1, combine=False):
        return (split, epoch, combine)


class NewTask:
    def build_model(self, cfg, from_checkpoint=False):
        return from_checkpoint

    def load_dataset(self, split, **options):
        return options


def test_older_tasks_are_called():
    for task in (OldTask, NewTask):
        take_newer_arguments(task)
    old, new = OldTask(), NewTask()
    assert old.build_model("cfg", from_checkpoint=True) == ("model", "cfg")
    assert old.load_dataset("train", epoch=2, data_selector=None, tpu=False) == ("train", 2, False)
    with pytest.raises(TypeError, match="typo"):
        old.load_dataset("train", typo=1)
    assert new.build_model("cfg", from_checkpoint=True) is True
    assert new.load_dataset("train", tpu=False) == {"tpu": False}


def test_registered_tasks_take_the_newer_arguments():
    import inspect

    from fairseq.tasks import TASK_REGISTRY, FairseqTask, register_task

    assert register_task.__name__ == "register_task" and TASK_REGISTRY
    for task in TASK_REGISTRY.values():
        build = inspect.unwrap(task.build_model)
        if build is not task.build_model:
            continue  # wrapped
        assert "from_checkpoint" in inspect.signature(build).parameters, task

    class PluginTask(FairseqTask):
        def build_model(self, cfg):
            return cfg

    try:
        register_task("older_plugin_task")(PluginTask)
        assert PluginTask(Namespace()).build_model(5, from_checkpoint=True) == 5
    finally:
        TASK_REGISTRY.pop("older_plugin_task", None)
