"""What the task of several pairs makes of its options and data folders."""

import pytest
from common import inprocess
from fairseq import options, tasks
from streams.folders import random_lines, write_pair

from fairseq_ext.streams.language_pair import LanguagePair

MODEL = ["--arch", "dual_transformer_tiny", "--embed-dim", 8, "--ffn-embed-dim", 8, "--layers", 1]


@pytest.fixture
def cfg(tmp_path):
    """The configuration of a run that names no languages; the data folder has one pair."""
    for split in ("train", "valid"):
        lines = {lang: random_lines(lang, 3) for lang in ("xx", "yy")}
        write_pair(tmp_path, split, "xx-yy", **lines)
    words = [tmp_path, "--task", "dual_translation", *MODEL, "--optimizer", "adam"]
    return inprocess.configuration(options.get_training_parser(), words)


def test_the_pair_of_the_folder_is_trained_and_no_option_changes(cfg):
    task = tasks.setup_task(cfg.task)
    assert task.pairs == ["xx-yy", "yy-xx"] and task.requested == LanguagePair("xx", "yy")
    for written in (task.cfg, cfg.task):
        assert written.source_lang is written.target_lang is written.lang_pairs is None


def test_the_checkpoints_know_the_pairs_of_the_run(cfg):
    task = tasks.setup_task(cfg.task)
    model = task.build_model(cfg.model)
    assert model.pairs == task.pairs and cfg.model.lang_pairs == "xx-yy,yy-xx"
    assert task.pair is None and task.requested is not None


def test_a_checkpoint_translates_what_the_folder_has(cfg):
    tasks.setup_task(cfg.task).build_model(cfg.model)
    task = tasks.setup_task(cfg.task)
    task.build_model(cfg.model, from_checkpoint=True)
    assert task.pair == "xx-yy" and task.tgt_dict is task.dictionaries["yy"]


def test_a_checkpoint_is_validated_in_both_directions_of_the_named_pairs(cfg):
    """fairseq-validate --lang-pairs xx-yy puts this list in the place of the model's."""
    words = [cfg.task.data, "--task", "dual_translation", "--lang-pairs", "xx-yy", *MODEL]
    cfg = inprocess.configuration(options.get_training_parser(), [*words, "--optimizer", "adam"])
    task = tasks.setup_task(cfg.task)
    model = task.build_model(cfg.model, from_checkpoint=True)
    assert cfg.model.lang_pairs == "xx-yy" and task.pair is None
    assert task.pairs == model.pairs == ["xx-yy", "yy-xx"]


def test_training_data_of_a_shard_by_epoch_and_others_from_the_first(tmp_path):
    """colon-separated folders: training walks around them, validation reads the first."""
    for number, count in enumerate((3, 4, 5)):
        for split in ("train", "valid"):
            lines = {lang: random_lines(lang, count) for lang in ("xx", "yy")}
            write_pair(tmp_path / str(number), split, "xx-yy", **lines)
    data = ":".join(str(tmp_path / str(number)) for number in range(3))
    words = [data, "--task", "dual_translation", "--lang-pairs", "xx-yy", *MODEL]
    cfg = inprocess.configuration(options.get_training_parser(), [*words, "--optimizer", "adam"])
    task = tasks.setup_task(cfg.task)
    sizes = []
    for epoch in range(1, 6):
        for split in ("train", "valid"):
            task.load_dataset(split, epoch=epoch, combine=True)
            sizes.append(len(task.dataset(split).datasets["xx-yy"]))
    assert sizes == [3, 3, 4, 3, 5, 3, 3, 3, 4, 3]


@pytest.mark.parametrize(
    "flags",
    [["--synthetic-share", "0.3"], ["--synthetic-tag"], ["--join-at", "xx-yy@bt=2"]],
)
def test_streams_are_asked_for_in_training_alone(flags, cfg, tmp_path):
    """Commands that read a checkpoint name its pairs, and the training's options stay."""
    words = [tmp_path, "--task", "multiway_translation", "--lang-pairs", "xx-yy", *flags]
    sizes = ["--arch", "multiway_gru_tiny", "--optimizer", "adam"]
    cfg = inprocess.configuration(options.get_training_parser(), [*words, *sizes])
    task = tasks.setup_task(cfg.task)
    task.build_model(cfg.model, from_checkpoint=True)
    assert task.synthetic == [] and task.pairs == ["xx-yy"]
    with pytest.raises(ValueError, match=flags[0]):
        tasks.setup_task(cfg.task).build_model(cfg.model)


def test_hooks_of_torch_are_refused_that_would_see_no_gradient(cfg):
    words = [cfg.task.data, "--task", "dual_translation", *MODEL, "--ddp-comm-hook", "fp16"]
    cfg = inprocess.configuration(options.get_training_parser(), words)
    with pytest.raises(ValueError, match="--ddp-comm-hook fp16: .*; allowed: none"):
        tasks.setup_task(cfg.task).build_model(cfg.model)
