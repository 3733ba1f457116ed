"""fairseq-hydra-train: classes without a dataclass have the options that --arch, --task give."""

import logging
import re
from argparse import Namespace

import pytest
import torch
from fairseq import options, tasks
from fairseq.dataclass import initialize
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf

from fairseq_ext.compat.command_line import undeclared_options
from fairseq_ext.compat.user_errors import OptionError

SIZES = {"encoder_embed_dim": 16, "encoder_ffn_embed_dim": 16, "encoder_attention_heads": 2}
ENCODER = {**SIZES, "encoder_layers": 1}
LAYERS = {**ENCODER, **{name.replace("encoder", "decoder"): ENCODER[name] for name in ENCODER}}
# (architecture, task, options of the task, options of the model)
CASES = [
    ("roberta", "masked_lm", {"tokens_per_sample": 24}, ENCODER),
    ("fconv_lm", "language_modeling", {"tokens_per_sample": 24}, {"decoder_layers": "[(8, 3)]"}),
    ("lstm_lm", "language_modeling", {}, {"decoder_embed_dim": 8}),
    ("bart_base", "denoising", {"max_source_positions": 24}, LAYERS),
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "dict.txt").write_text("".join(f"w{number} 1\n" for number in range(20)))
    return tmp_path


def completed(**sections):
    cfg = OmegaConf.create(sections)
    initialize.add_defaults(cfg)
    return cfg


def words_of(values):
    pairs = (("--" + name.replace("_", "-"), str(value)) for name, value in values.items())
    return [word for pair in pairs for word in pair]


def built(cfg):
    torch.manual_seed(1)
    return tasks.setup_task(cfg.task).build_model(cfg.model)


@pytest.mark.parametrize("arch, task, of_task, of_model", CASES, ids=[case[0] for case in CASES])
def test_models_are_those_of_the_command_line(folder, arch, task, of_task, of_model):
    words = [str(folder), "--task", task, "--arch", arch, *words_of({**of_task, **of_model})]
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    stock = convert_namespace_to_omegaconf(args)
    settings = {name: stock[name] for name in undeclared_options.SETTINGS}
    expected = built(stock)
    cfg = completed(
        task={"_name": task, "data": str(folder), **of_task},
        model={"_name": arch, **of_model},
        criterion="cross_entropy",
        **settings,
    )
    model = built(cfg)
    assert str(model) == str(expected)
    assert model.max_positions() == expected.max_positions()
    for (name, value), (_, other) in zip(model.named_parameters(), expected.named_parameters()):
        assert torch.equal(value, other), name


@pytest.mark.parametrize("model", ["lstm", "twin_lstm", {"_name": "lstm_lm", "dropout": 0.3}])
def test_models_know_the_criterion(model):
    """As on the command line: they look whether it is that of an adaptive softmax."""
    for criterion in ("adaptive_loss", {"_name": "adaptive_loss"}):
        cfg = completed(model=model, criterion=criterion, task="translation")
        assert cfg.model.criterion == "adaptive_loss"
        assert getattr(cfg.model, "dropout", None) == (0.3 if isinstance(model, dict) else None)


def test_optimizers_have_the_learning_rate_and_their_defaults():
    cfg = completed(optimizer={"_name": "sgd", "momentum": "0.5"}, optimization={"lr": [0.1]})
    assert isinstance(cfg.optimizer, Namespace)
    assert vars(cfg.optimizer) == {
        **{"_name": "sgd", "optimizer": "sgd", "lr": [0.1]},
        **{"momentum": 0.5, "weight_decay": 0.0},
    }


def test_a_second_call_changes_nothing():
    cfg = completed(task="denoising", model={"_name": "lstm", "dropout": 0.2})
    before = vars(cfg.model).copy()
    initialize.add_defaults(cfg)
    assert vars(cfg.model) == before


def test_values_are_read_as_on_the_command_line():
    """Of left_pad_source, a text there, fairseq makes False if it is a truth value."""
    task = {"_name": "multilingual_translation", "data": "bin", "left_pad_source": True}
    assert completed(task=task).task.left_pad_source == "True"


def test_options_without_a_value_are_truth_values():
    """A text is that of quotes, or of a variable of the environment."""
    options = {"share_all_embeddings": "false", "encoder_bidirectional": "True"}
    model = completed(model={"_name": "lstm", **options}).model
    assert (model.share_all_embeddings, model.encoder_bidirectional) == (False, True)


def test_files_have_values(tmp_path):
    """Of translation_multi_simple_epoch; the pairs may be in a file, as on the command line."""
    (tmp_path / "pairs").write_text("xx-yy,yy-xx\n")
    for pairs in ("xx-yy,yy-xx", str(tmp_path / "pairs")):
        task = {"_name": "translation_multi_simple_epoch", "data": "bin", "lang_pairs": pairs}
        assert completed(task=task).task.lang_pairs == "xx-yy,yy-xx"


def test_declared_sections_refer_to_undeclared():
    """As the Transformer does to the lengths of its task, and recognisers to the folder of it."""
    lengths = {"max_source_positions": 99, "max_target_positions": "77"}
    task = {"_name": "multilingual_translation", "data": "bin", **lengths}
    cfg = completed(model={"_name": "transformer"}, task=task)
    OmegaConf.to_container(cfg, resolve=True)
    assert (cfg.model.max_source_positions, cfg.model.max_target_positions) == (99, 77)


@pytest.mark.parametrize("text", ["${modle.dropout}", "???"])
def test_options_without_a_value_are_refused(text):
    """A typed name of one that does not exist; the option would have its default."""
    with pytest.raises(OptionError, match=re.escape(f"model.dropout {text} has no value")):
        completed(model={"_name": "lstm", "dropout": text})


@pytest.mark.parametrize(
    "sections, text",
    [
        ({"model": {"_name": "lstm", "encoder_bidirectional": "on"}}, "on is .* true or false"),
        ({"model": {"_name": "lstm", "encoder_layers": "two"}}, "model.encoder_layers two is not"),
        ({"task": {"_name": "denoising", "data": "x", "mask_length": "long"}}, "span-poisson"),
    ],
)
def test_other_values_are_refused(sections, text):
    with pytest.raises(OptionError, match=text):
        completed(**sections)


def test_names_that_nobody_declares_are_warned_of(caplog):
    undeclared_options._warn.cache_clear()
    with caplog.at_level(logging.WARNING):
        completed(model={"_name": "lstm", "encoder_layer": 2, "encoder_layers": 2})
    assert [record.message for record in caplog.records] == [
        "model.encoder_layer: lstm declares no such option (did you mean encoder_layers?)"
    ]


def test_added_settings_that_nothing_reads_are_warned_of(caplog):
    undeclared_options._warn.cache_clear()
    cfg = OmegaConf.create({"dataset": {"max_token": 4, "max_tokens": 4}, "modle": {"x": 1}})
    with caplog.at_level(logging.WARNING):
        undeclared_options.warn_of_added(cfg)
    assert [record.message for record in caplog.records] == [
        "dataset.max_token: fairseq reads no such option (did you mean max_tokens?)",
        "modle: fairseq reads no such section (did you mean model?)",
    ]


@pytest.mark.parametrize("group", undeclared_options.GROUPS)
def test_names_of_classes_are_registered(group):
    undeclared_options.check_names({group: {"_name": None}})
    with pytest.raises(OptionError, match=rf"{group}._name nothing is not registered"):
        undeclared_options.check_names(OmegaConf.create({group: {"_name": "nothing"}}))


def test_registered_names_pass():
    undeclared_options.check_names(
        OmegaConf.create({"model": "transformer_tiny", "task": {"_name": "denoising"}})
    )
