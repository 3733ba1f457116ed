"""Tasks of fairseq that do not run as they are in 0.12.2."""

import logging
import shutil
from argparse import Namespace

import numpy as np
import pytest
import torch

from fairseq_ext.compat.data.stock_tasks import take_newer_arguments


def parsed(*words):
    from fairseq import options

    return options.parse_args_and_arch(options.get_training_parser(), list(map(str, words)))


def test_bart_tuning_has_its_options(toy_corpus):
    from fairseq.tasks import setup_task

    words = ["--task", "translation_from_pretrained_bart", "--langs", "xx,yy"]
    words += ["-s", "xx", "-t", "yy", "--arch", "mbart_base"]
    task = setup_task(parsed(toy_corpus.two, *words))
    task.load_dataset("valid")
    source = task.datasets["valid"][0]["source"]
    assert source[-1] == task.source_dictionary.index("[xx]")  # the sentence ends with its language


def test_older_tasks_have_their_options():
    """A task of fairseq 0.10, which derives from `translation` and declares options of its own."""
    from fairseq.tasks.translation import TranslationConfig, TranslationTask

    class OlderTask(TranslationTask):
        """A task without a dataclass."""

    options = Namespace(source_lang="xx", note="x")
    assert OlderTask(options, None, None).args is options
    assert not hasattr(TranslationTask(TranslationConfig(), None, None), "args")


@pytest.mark.parametrize("task", ["translation", "dual_translation"])
@pytest.mark.parametrize("upsampled, times", [([], 1), (["--upsample-primary", 3], 3)])
def test_parts_of_a_training_set_are_read(task, upsampled, times, toy_corpus, tmp_path):
    from fairseq.tasks import setup_task

    data = shutil.copytree(toy_corpus.two, tmp_path / "data")
    for part in list(data.glob("valid.*")):
        shutil.copy(part, data / part.name.replace("valid.", "train1."))
    arch = "transformer" if task == "translation" else "dual_transformer_tiny"
    words = ["--task", task, "-s", "xx", "-t", "yy", "--arch", arch, *upsampled]
    built = setup_task(parsed(data, *words))
    built.load_dataset("train", combine=True)
    first, second = (
        len((toy_corpus.text / f"{split}.xx").read_text(encoding="utf-8").splitlines())
        for split in ("train", "valid")
    )
    dataset = built.datasets["train"]
    dataset = getattr(dataset, "datasets", {"xx-yy": dataset})["xx-yy"]
    assert len(dataset) == times * first + second


# {task: architecture and options}
COMBINING = {
    "translation": ["transformer"],
    "translation_lev": ["levenshtein_transformer"],
    "translation_from_pretrained_bart": ["mbart_base", "--langs", "xx,yy"],
    "multilingual_translation": ["multilingual_transformer", "--lang-pairs", "xx-yy"],
    "translation_multi_simple_epoch": ["transformer", "--langs", "xx,yy", "--lang-pairs", "xx-yy"],
    "dual_translation": ["dual_transformer_tiny"],
}


@pytest.mark.parametrize("task", COMBINING)
def test_combined_validation_sets_are_read_once(task, toy_corpus, tmp_path):
    """--upsample-primary is for training: a score counts each sentence once."""
    from fairseq.tasks import setup_task

    data = shutil.copytree(toy_corpus.two, tmp_path / "data")
    for part in list(data.glob("test.*")):
        shutil.copy(part, data / part.name.replace("test.", "valid1."))
    words = ["--task", task, "-s", "xx", "-t", "yy", "--arch", *COMBINING[task]]
    words += ["--max-source-positions", 99, "--max-target-positions", 99]
    built = setup_task(parsed(data, *words, "--upsample-primary", 3))
    built.load_dataset("valid", combine=True)
    dataset = built.datasets["valid"]
    sets = getattr(dataset, "datasets", [dataset])  # of pairs, by name or one by one
    assert (
        len(sets["xx-yy"] if isinstance(sets, dict) else sets[0])
        == toy_corpus.sizes["valid"] + toy_corpus.sizes["test"]
    )
    assert getattr(built, "args", getattr(built, "cfg", None)).upsample_primary == 3


class Decodes(torch.nn.Module):
    """A model as far as a generator looks at it when it is built."""

    def max_decoder_positions(self):
        return 10


@pytest.mark.parametrize(
    "options, strategy",
    [
        ({}, "BeamSearch"),
        ({"sampling": True, "sampling_topk": 3}, "Sampling"),
        ({"diverse_beam_groups": 2}, "DiverseBeamSearch"),
        ({"diversity_rate": 0.5}, "DiverseSiblingsSearch"),
    ],
)
def test_bart_searches_as_asked(options, strategy, toy_corpus):
    from fairseq.tasks import setup_task

    words = ["--task", "translation_from_pretrained_bart", "--langs", "xx,yy"]
    words += ["-s", "xx", "-t", "yy", "--arch", "mbart_base"]
    task = setup_task(parsed(toy_corpus.two, *words))
    more = {"lm_model": None, "lm_weight": 0.25}
    generator = task.build_generator([Decodes()], Namespace(**options), extra_gen_cls_kwargs=more)
    assert type(generator.search).__name__ == strategy and generator.lm_weight == 0.25
    assert generator.eos == task.target_dictionary.index("[yy]") != task.target_dictionary.eos()
    assert "eos" not in more
    scorer = task.build_generator([Decodes()], Namespace(score_reference=True))
    assert scorer.eos == generator.eos


@pytest.mark.parametrize("task, arch", [("denoising", "bart_base"), ("denoising", "transformer")])
def test_denoising_shares_options_with_the_model(task, arch):
    options = parsed("data", "--task", task, "--arch", arch, "--max-source-positions", 77)
    assert (options.max_source_positions, options.max_target_positions) == (77, 1024)


def test_denoising_keeps_its_options_where_the_model_has_none():
    for task in ("denoising", "multilingual_denoising"):
        options = parsed("data", "--task", task, "--arch", "lstm", "--max-target-positions", 5)
        assert (options.max_source_positions, options.max_target_positions) == (1024, 5)


def test_data_may_be_resampled_whole():
    from fairseq.data import ListDataset, ResamplingDataset

    data = ListDataset(list(range(30)), np.ones(30))
    draws = [ResamplingDataset(data, size_ratio=1.0, replace=False, epoch=e) for e in (1, 2)]
    orders = [[draw[index] for index in range(len(draw))] for draw in draws]
    assert all(sorted(order) == list(range(30)) for order in orders) and orders[0] != orders[1]
    assert len(ResamplingDataset(data, size_ratio=0.5, replace=False)) == 15
    with pytest.raises(AssertionError):
        ResamplingDataset(data, size_ratio=1.5, replace=False)


def test_blocks_are_cut_from_lines():
    from fairseq.data import ListDataset
    from fairseq.data.legacy import BertDictionary
    from fairseq.data.legacy.block_pair_dataset import BlockPairDataset

    sizes = np.array([4, 1, 9, 2, 6, 3])
    text = torch.arange(sizes.sum())
    lines = ListDataset(list(text.split(sizes.tolist())), sizes)
    pairs = BlockPairDataset(lines, BertDictionary(), sizes, block_size=11, break_mode="none")
    # blocks of (11 - 3) / 2 tokens
    starts = [pairs[index][0] for index in range(len(pairs))]
    assert [block.tolist() for block in starts] == [part.tolist() for part in text.split(4)]
    followers = [pairs[index][1] for index in range(len(pairs)) if pairs[index][2]]
    assert all(len(block) in (1, 4) for block in followers)


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


def test_folders_are_logged(caplog):
    from fairseq.tasks import legacy_masked_lm

    with caplog.at_level(logging.INFO):
        legacy_masked_lm.logger.info("data_path", "folder")
        legacy_masked_lm.logger.info("%s examples", 3)
    assert [record.getMessage() for record in caplog.records] == ["data_path", "3 examples"]


def coder_of(name):
    """The sub-word coder that a command builds for --bpe."""
    from fairseq import options
    from fairseq.data.encoders import build_bpe
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    words = ["data", "--path", "model.pt", "--bpe", name]
    parsed = options.parse_args_and_arch(options.get_generation_parser(), words)
    return build_bpe(convert_namespace_to_omegaconf(parsed).bpe)


@pytest.mark.parametrize("bpe, coded", [("characters", "a b \u2581 c"), ("bytes", None)])
def test_coders_have_configurations(bpe, coded):
    coder = coder_of(bpe)
    assert coder.decode(coder.encode("ab c")) == "ab c"
    assert coded is None or coder.encode("ab c") == coded


def test_coders_of_plugins_have_configurations():
    from fairseq.data.encoders import BPE_REGISTRY, build_bpe, register_bpe

    class Marking:
        def __init__(self, args):
            self.mark = getattr(args, "mark", "@")

        def encode(self, text):
            return text.replace(" ", f" {self.mark} ")

    name = "marking"
    if name not in BPE_REGISTRY:
        register_bpe(name)(Marking)
    assert coder_of(name).encode("a b") == "a @ b"
    # a task that builds it of its own options still gives them to it
    assert build_bpe(Namespace(bpe=name, mark="#")).encode("a b") == "a # b"
