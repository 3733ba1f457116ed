"""Tasks with a dataclass have `args`, as those of fairseq 0.9 and 0.10 did."""

import argparse
import copy
import pickle

import pytest


@pytest.fixture
def options(tmp_path):
    """The Namespace of a training on an empty folder."""
    from fairseq import options

    for language in ("xx", "yy"):
        (tmp_path / f"dict.{language}.txt").write_text("a 1\n")
    parser = options.get_training_parser()
    command = [str(tmp_path), "-s", "xx", "-t", "yy", "--arch", "transformer_tiny"]
    return options.parse_args_and_arch(parser, [*command, "--max-tokens", "99"])


@pytest.fixture
def run(options):
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    return convert_namespace_to_omegaconf(options)


@pytest.fixture
def task(run):
    from fairseq import tasks

    return tasks.setup_task(run.task)


def test_args_have_the_options_of_the_task_and_of_its_run(task, run):
    args = task.args
    assert (args.source_lang, args.max_tokens, args.encoder_embed_dim) == ("xx", 99, 64)
    assert (args.task, args.arch, args.criterion) == (
        "translation",
        "transformer_tiny",
        "cross_entropy",
    )
    assert type(args.lr) is list and type(args.ddp_backend) is str
    assert (args.bpe, getattr(args, "sentencepiece_model", None)) == (None, None)
    assert "max_tokens" in args and not hasattr(args, "typo")
    task.cfg.source_lang, run.dataset.max_tokens = "zz", 7
    assert (args.source_lang, args.max_tokens) == ("zz", 7)


def test_args_are_those_of_one_namespace(task, run):
    from fairseq_ext.compat.generation.older_programs import options_in_one

    in_one = vars(options_in_one(run, task))
    assert len(in_one) > 200
    assert vars(task.args) == in_one
    plain = argparse.Namespace(**in_one)
    copies = (copy.copy(task.args), copy.deepcopy(task.args), pickle.loads(pickle.dumps(task.args)))
    assert all(type(copied) is argparse.Namespace and copied == plain for copied in copies)


def test_args_may_be_changed_where_that_has_an_effect(task):
    task.args.source_lang = "zz"
    task.args.new_option = 3
    task.args.new_option += 1
    assert (task.cfg.source_lang, task.args.new_option) == ("zz", 4)
    with pytest.raises(AttributeError, match="max_tokens is an option of another part of the run"):
        task.args.max_tokens = 5


def test_a_task_of_a_namespace_knows_all_of_it(options):
    from fairseq import tasks

    options.own_option = "x"
    args = tasks.setup_task(options).args
    assert (args.source_lang, args.max_tokens, args.own_option) == ("xx", 99, "x")
    args.max_tokens = 5
    assert options.max_tokens == 5


def test_a_task_by_itself_has_its_own_options():
    from fairseq.tasks.translation import TranslationConfig, TranslationTask

    task = TranslationTask(TranslationConfig(source_lang="xx"), None, None)
    assert task.args.source_lang == "xx" and not hasattr(task.args, "max_tokens")
    assert vars(copy.copy(task)) == vars(task)


def test_tasks_without_options_or_with_their_own_args():
    from fairseq.tasks import FairseqTask, LegacyFairseqTask

    class TaskWithProperty(FairseqTask):
        args = property(lambda self: "mine")

    options = argparse.Namespace(x=1)
    assert not hasattr(FairseqTask(None), "args")
    assert LegacyFairseqTask(options).args is options and FairseqTask(options).args is options
    assert TaskWithProperty(options).args == "mine"
    task = FairseqTask(None)
    task.args = 5
    assert task.args == 5


def test_a_criterion_reads_the_options_of_its_task(task):
    from fairseq.criterions import FairseqCriterion

    class Criterion(FairseqCriterion):
        def __init__(self, task):
            super().__init__(task)
            self.limit = self.task.args.max_tokens

    assert Criterion(task).limit == 99
