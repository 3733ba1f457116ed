"""Tasks that were written for earlier versions of fairseq."""

from argparse import Namespace

import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.tasks import FairseqTask
from fairseq.tasks.sentence_prediction import SentencePredictionTask

from fairseq_ext.compat.data.older_tasks import (
    call_update_step,
    evaluate_language_models,
    give_options_to_model,
    take_newer_arguments,
)


def test_older_tasks_have_their_options():
    """A task of fairseq 0.10, which derives from `translation` and declares options of its own."""
    from fairseq.tasks.translation import TranslationConfig, TranslationTask

    class OlderTask(TranslationTask):
        """A task without a dataclass."""

    options = Namespace(source_lang="xx", note="x")
    assert OlderTask(options, None, None).args is options
    assert "args" not in vars(TranslationTask(TranslationConfig(), None, None))


class OldTask:
    def build_model(self, cfg):
        return ("model", cfg)

    def load_dataset(self, split, epoch=1, combine=False):
        return (split, epoch, combine)

    def train_step(self, sample, model, criterion, optimizer, ignore_grad=False):
        return (sample, ignore_grad)

    def build_generator(self, models, args):
        return (models, args)

    def build_dataset_for_inference(self, src_tokens, src_lengths):
        return (src_tokens, src_lengths)

    def inference_step(self, generator, models, sample, prefix_tokens=None):
        return (sample, prefix_tokens)

    def get_batch_iterator(self, dataset, max_tokens=None, epoch=1):
        return (dataset, max_tokens, epoch)


class OldestTask(OldTask):
    def build_generator(self, args):
        return args


class NewTask:
    def build_model(self, cfg, from_checkpoint=False):
        return from_checkpoint

    def load_dataset(self, split, **options):
        return options

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        return constraints


def test_older_tasks_are_called():
    for task in (OldTask, NewTask):
        take_newer_arguments(task)
    old, new = OldTask(), NewTask()
    assert old.build_model("cfg", from_checkpoint=True) == ("model", "cfg")
    assert old.load_dataset("train", epoch=2, tpu=False, task_cfg={}) == ("train", 2, False)
    with pytest.raises(TypeError, match="typo"):
        old.load_dataset("train", typo=1)
    assert new.build_model("cfg", from_checkpoint=True) is True
    assert new.load_dataset("train", tpu=False) == {"tpu": False}
    assert new.inference_step(None, [], {}, constraints=3) == 3


def test_older_tasks_train_and_generate():
    """They are called as the trainer and fairseq-generate of 0.12.2 do; the base is a plugin's."""
    take_newer_arguments(OldestTask)
    old, oldest = OldTask(), OldestTask()
    step = {"sample": "s", "model": None, "criterion": None, "optimizer": None}
    assert old.train_step(**step, update_num=7, ignore_grad=True) == ("s", True)
    iterator = {"data_buffer_size": 10, "disable_iterator_cache": True}
    iterator.update(skip_remainder_batch=False, grouped_shuffling=False)
    assert old.get_batch_iterator("d", max_tokens=9, **iterator) == ("d", 9, 1)
    no_model = {"lm_model": None, "lm_weight": 0.2}
    assert old.build_generator(["m"], "a", extra_gen_cls_kwargs=no_model) == (["m"], "a")
    assert oldest.build_generator(["m"], "a", extra_gen_cls_kwargs=no_model) == "a"
    assert oldest.build_generator("a") == "a"
    assert old.build_dataset_for_inference("t", "n", constraints=None) == ("t", "n")
    assert old.inference_step(None, [], "s", prefix_tokens=1, constraints=None) == ("s", 1)


def test_what_an_older_task_cannot_do_is_an_error():
    take_newer_arguments(OldTask)
    old, model = OldTask(), {"lm_model": object(), "lm_weight": 0.2}
    with pytest.raises(TypeError, match="extra_gen_cls_kwargs"):
        old.build_generator(["m"], "a", extra_gen_cls_kwargs=model)
    with pytest.raises(TypeError, match="constraints"):
        old.inference_step(None, [], "s", constraints="c")
    with pytest.raises(TypeError, match="grouped_shuffling"):
        old.get_batch_iterator("d", grouped_shuffling=True)


def test_older_tasks_pad_as_asked(tmp_path):
    from fairseq.tasks.translation import TranslationTask

    class PaddedTask(TranslationTask):
        """A task that inherits setup_task and declares the options as texts, as in 0.10."""

    for language in ("xx", "yy"):
        (tmp_path / f"dict.{language}.txt").write_text("a 1\n")
    options = Namespace(data=str(tmp_path), source_lang="xx", target_lang="yy")
    options.left_pad_source, options.left_pad_target = "True", "False"
    task = PaddedTask.setup_task(options)
    assert (task.cfg.left_pad_source, task.args.left_pad_target) == (True, False)


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


def test_older_tasks_share_their_positions_with_the_model():
    """As in fairseq 0.10, where models had no such options: both, one task of a dataclass too."""
    import argparse

    from fairseq.tasks import TASK_CLASS_NAMES, TASK_REGISTRY, LegacyFairseqTask, register_task
    from fairseq.tasks.translation import TranslationTask

    class PositionsTask(LegacyFairseqTask):
        @staticmethod
        def add_args(parser):
            parser.add_argument("data")
            parser.add_argument("--max-source-positions", type=int, default=512)
            parser.add_argument("--note", default="x")

    class PlainTask(LegacyFairseqTask):
        def add_args(parser):  # noqa: N805  # without @staticmethod
            PositionsTask.add_args(parser)

    class DataclassTask(TranslationTask):
        @classmethod
        def add_args(cls, parser):
            TranslationTask.add_args(parser)
            parser.add_argument_group("more").add_argument("--note", default="y")

    # of a named architecture: None is what it has, which the architecture fills in
    expected = {PlainTask: ("x", 512), PositionsTask: ("x", 512), DataclassTask: ("y", None)}
    try:
        for task, values in expected.items():
            register_task("positions_task")(task)
            parser = argparse.ArgumentParser()
            model = parser.add_argument_group(argument_default=argparse.SUPPRESS)
            model.add_argument("--max-source-positions", type=int)
            task.add_args(parser)
            read = parser.parse_args(["bin"])
            assert (read.note, getattr(read, "max_source_positions", None)) == values
            TASK_REGISTRY.pop("positions_task")
            TASK_CLASS_NAMES.discard(task.__name__)
            assert parser.parse_args(["d", "--max-source-positions", "9"]).max_source_positions == 9
    finally:
        TASK_REGISTRY.pop("positions_task", None)


@pytest.mark.parametrize("takes_origin", [True, False])
def test_models_have_the_options_that_a_task_has_set(takes_origin):
    from fairseq.tasks import LegacyFairseqTask

    class SettingTask(LegacyFairseqTask):
        """A task that counts languages in its making, for its model."""

        def build_model(self, args):
            return Namespace(**vars(args))

    class PresentTask(SettingTask):
        def build_model(self, args, from_checkpoint=False):
            return Namespace(**vars(args))

    kind = PresentTask if takes_origin else SettingTask
    take_newer_arguments(kind)
    give_options_to_model(kind)
    parsed = Namespace(langs="a,b", width=3)
    task = kind(Namespace(**vars(parsed), _name="task"))
    task.args.langs, task.args.count = task.args.langs.split(","), 2
    # a model that is loaded has those of its checkpoint
    loaded = task.build_model(Namespace(**vars(parsed)), from_checkpoint=True)
    assert loaded == parsed
    assert task.build_model(parsed) == Namespace(langs=["a", "b"], count=2, width=3)


def test_models_are_built_with_arguments_of_the_plugin():
    """As DA-Transformer builds its models: with an argument of its own, and by its names."""

    class Task(FairseqTask):
        def build_model(self, model_cfg, from_checkpoint=False, reload_task=False):
            return model_cfg, from_checkpoint, reload_task

    give_options_to_model(Task)
    task = Task(Namespace())
    assert task.build_model(5, from_checkpoint=True, reload_task=True) == (5, True, True)
    assert task.build_model(5, True, True) == (5, True, True)
    assert task.build_model(model_cfg=5) == (5, False, False)


def test_update_step_is_called_once_for_each_update():
    from fairseq.tasks import LegacyFairseqTask

    class SteppingTask(LegacyFairseqTask):
        """A task with a schedule of its own."""

        steps: list = []

        def update_step(self, num_updates):
            self.steps.append(num_updates)

        def train_step(self, sample, model, criterion, optimizer, ignore_grad=False):
            return sample

    class CallingTask(SteppingTask):
        def train_step(self, sample, update_num=0):
            self.update_step(update_num)

    take_newer_arguments(SteppingTask)
    call_update_step(SteppingTask)
    task = SteppingTask(Namespace())
    for number in (0, 1, 1, 2):
        assert task.train_step("s", None, None, None, update_num=number, ignore_grad=False) == "s"
    assert task.steps == [1, 2]
    step = CallingTask.train_step
    call_update_step(CallingTask)
    assert CallingTask.train_step is step


def test_registered_tasks_have_both():
    from fairseq.tasks import LegacyFairseqTask, register_task

    class RegisteredTask(LegacyFairseqTask):
        """A task of a plugin."""

        def update_step(self, num_updates):
            """Do nothing."""

    register_task("registered_older_task")(RegisteredTask)
    for name in ("build_model", "train_step"):
        assert name in vars(RegisteredTask)


def test_language_models_are_evaluated():
    class OldTask:
        def get_batch_iterator(self, dataset, max_tokens=None, ignore_invalid_inputs=False, **more):
            return Namespace(next_epoch_itr=lambda shuffle: (dataset, max_tokens, shuffle))

    class OwnTask(OldTask):
        def eval_lm_dataloader(self, dataset):
            return dataset

    for task in (OldTask, OwnTask):
        evaluate_language_models(task)
    assert OldTask().eval_lm_dataloader("set", max_tokens=9) == ("set", 9, False)
    assert OwnTask().eval_lm_dataloader("set") == "set"


class OwnTask(FairseqTask):
    """A task for fairseq 0.10 with a copy of LegacyFairseqTask's constructor."""

    def __init__(self, args):
        self.args = args
        self.datasets = {}
        self.dataset_to_epoch_iter = {}


def test_tasks_may_set_their_attributes():
    task, other = OwnTask(Namespace(data="x")), OwnTask(Namespace(data="y"))
    task.load_state_dict({"step": 3})
    assert task.state_dict() == {"step": 3} and other.state_dict() == {}
    assert task.cfg is None and task.args.data == "x"  # cfg as LegacyFairseqTask has it
    assert not task.has_sharded_data("train")
    data = LanguagePairDataset([torch.tensor([4, 2])] * 3, [2] * 3, Dictionary())
    batches = task.get_batch_iterator(data, max_sentences=2).next_epoch_itr(shuffle=False)
    assert len(list(batches)) == 2
    task.cfg = task.args
    assert task.cfg is task.args


def test_classes_are_read_with_options(tmp_path):
    (tmp_path / "dict.txt").write_text("a 1\n")
    path, load = str(tmp_path / "dict.txt"), SentencePredictionTask.load_dictionary
    for words in (
        load(path),
        load(Namespace(), path, source=False),
        load(Namespace(), path, True),
        load(Namespace(), filename=path),
        load(args=Namespace(), filename=path),
    ):
        assert "<mask>" in words


@pytest.mark.parametrize("side", [True, False])
def test_sides_of_padding_are_evaluated_twice(side):
    """As by tasks for 0.10, whose options are bools today, and from a checkpoint by others."""
    from fairseq import utils

    assert utils.eval_bool(utils.eval_bool(str(side))) is side
    assert utils.eval_bool(None) is False and utils.eval_bool([], default=True) is True


def test_masking_tasks_have_their_seed():
    from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask

    class OwnSeed(MaskedLMTask):
        def __init__(self, cfg, dictionary):
            super().__init__(cfg, dictionary)
            self.seed = self.seed + 1

    words = Dictionary()
    assert MaskedLMTask(MaskedLMConfig(seed=7), words).seed == 7
    assert OwnSeed(MaskedLMConfig(seed=7), words).seed == 8
    assert MaskedLMTask(Namespace(seed=9), words).seed == 9
