"""Tasks and criteria of programs that make their options themselves."""

import os

import pytest
from fairseq.criterions import build_criterion
from fairseq.criterions.adaptive_loss import AdaptiveLoss, AdaptiveLossConfig
from fairseq.criterions.cross_entropy import CrossEntropyCriterion, CrossEntropyCriterionConfig
from fairseq.tasks import translation
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import OmegaConf

from fairseq_ext.compat.training.uncomposed_options import fill_references


@pytest.fixture
def options(toy_corpus):
    data = os.pathsep.join([str(toy_corpus.two)] * 2)
    return TranslationConfig(data=data, source_lang="xx", target_lang="yy")


def test_a_task_reads_its_data(options):
    task = TranslationTask.setup_task(options)
    task.load_dataset("train")
    assert len(task.dataset("train")) > 0
    assert not [name for name, value in vars(task.cfg).items() if "${" in str(value)]
    assert (task.cfg.required_seq_len_multiple, task.cfg.train_subset) == (1, "train")


def test_a_task_reads_another_folder_in_each_epoch(options, monkeypatch):
    options.dataset_impl, options.required_seq_len_multiple = "mmap", 1
    task = TranslationTask.setup_task(options)
    folders = []
    monkeypatch.setattr(
        translation, "load_langpair_dataset", lambda path, *args, **named: folders.append(path)
    )
    task.cfg.data = os.pathsep.join("ab")
    for epoch in (1, 2, 3):
        task.load_dataset("train", epoch=epoch)
    assert folders == ["a", "b", "a"]


def test_criteria_divide_by_words(options):
    task = TranslationTask.setup_task(options)
    criteria = (
        build_criterion("cross_entropy", task),
        CrossEntropyCriterion.build_criterion(CrossEntropyCriterionConfig(), task),
        AdaptiveLoss.build_criterion(AdaptiveLossConfig(ddp_backend="no_c10d"), task),
    )
    assert [criterion.sentence_avg for criterion in criteria] == [False] * 3
    averaged = CrossEntropyCriterionConfig(sentence_avg=True)
    assert CrossEntropyCriterion.build_criterion(averaged, task).sentence_avg is True


def test_composed_options_keep_their_references():
    for cfg in (OmegaConf.structured(TranslationConfig()), TranslationConfig, None):
        fill_references(cfg)
    assert TranslationConfig().train_subset == "${dataset.train_subset}"
    options = TranslationConfig(data="${task.data}")
    fill_references(options)
    assert options.data == "${task.data}"  # of a task without a name
