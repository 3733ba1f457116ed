"""Programs for fairseq 0.9 and 0.10 that load a model and translate with it."""

import argparse
import copy
import pickle
import sys
from types import SimpleNamespace

import pytest
import torch
from common import inprocess
from fairseq.data import Dictionary
from fairseq.models.roberta.hub_interface import RobertaHubInterface
from fairseq.tasks import TASK_REGISTRY
from omegaconf import DictConfig, OmegaConf

SAMPLE = {"net_input": {"src_tokens": torch.tensor([[4, 5, 2]]), "src_lengths": torch.tensor([3])}}


@pytest.fixture(scope="module")
def folder(toy_corpus, tmp_path_factory):
    """Of the checkpoint of a Transformer; the training did not name languages."""
    folder = tmp_path_factory.mktemp("older_programs")
    inprocess.train(
        *(toy_corpus.two, "--arch", "transformer_tiny", "--encoder-embed-dim", 8),
        *("--decoder-embed-dim", 8, "--max-update", 1, "--max-tokens", 800, "--seed", 3),
        *("--lr", 0.25, "--save-dir", folder, "--no-epoch-checkpoints", "--disable-validation"),
    )
    return folder


@pytest.fixture(scope="module")
def interface(toy_corpus, folder):
    """What `from_pretrained` returns for it."""
    from fairseq.models.transformer import TransformerModel

    return TransformerModel.from_pretrained(str(folder), "checkpoint_last.pt", str(toy_corpus.two))


def test_options_of_a_hub_interface(interface, toy_corpus):
    options = interface.args
    assert (options.task, options.arch) == ("translation", "transformer_tiny")
    assert (options.encoder_embed_dim, options.lr, options.seed) == (8, [0.25], 3)
    assert options.data == str(toy_corpus.two)  # not that of the training
    assert options.source_lang == "xx"  # which the task has inferred
    assert not [value for value in vars(options).values() if "${" in str(value)]


def test_options_of_a_hub_interface_are_for_reading(interface):
    with pytest.raises(AttributeError, match="args.beam would change nothing"):
        interface.args.beam = 3
    for copied in (copy.copy(interface.args), copy.deepcopy(interface.args)):
        copied.beam = 3  # as hub interfaces of plugins do
        assert type(copied) is argparse.Namespace
    assert interface.args.beam == 5


def test_options_of_a_loaded_model(folder, toy_corpus, tmp_path):
    from fairseq import checkpoint_utils

    overrides = {"data": str(toy_corpus.two), "beam": 3}
    path = str(folder / "checkpoint_last.pt")
    models, args, task = checkpoint_utils.load_model_ensemble_and_task([path], overrides)
    assert (args.source_lang, args.encoder_embed_dim, args.arch) == ("xx", 8, "transformer_tiny")
    assert (args.common.seed, args.generation.beam) == (3, 3)
    assert getattr(args, "beam", 5) == 3 and not hasattr(args, "beams")
    assert task.build_generator(models, args).beam_size == 3
    with pytest.raises(AttributeError, match="beams"):
        getattr(args, "beams")  # noqa: B009
    for copied in (copy.copy(args), copy.deepcopy(args), pickle.loads(pickle.dumps(args))):
        assert type(copied) is DictConfig and copied == args and "_task" not in vars(copied)
    assert checkpoint_utils.load_model_ensemble([path], overrides)[1].source_lang == "xx"
    state = checkpoint_utils.load_checkpoint_to_cpu(path)
    torch.save({**state, "cfg": args}, tmp_path / "stored.pt")
    stored = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "stored.pt"))
    assert stored["cfg"].model == args.model
    args.beam = 4
    assert args.beam == 4 and task.build_generator(models, args).beam_size == 4


def test_options_of_roberta():
    """Groups with a dataclass; the interface of a plugin may have options of its own."""
    cfg = OmegaConf.create(
        {
            "common": {"seed": 7},
            "task": {"_name": "sentence_prediction", "seed": "${common.seed}", "max_positions": 9},
            "model": {"_name": "roberta", "max_positions": 5},
            "bpe": None,
        }
    )
    roberta = RobertaHubInterface(cfg, SimpleNamespace(), torch.nn.Linear(1, 1))
    expected = {"task": "sentence_prediction", "arch": "roberta", "bpe": None}
    assert vars(roberta.args) == {**expected, "seed": 7, "max_positions": 5}

    class OfPlugin(RobertaHubInterface):
        args = "its own"

    assert OfPlugin(cfg, SimpleNamespace(), torch.nn.Linear(1, 1)).args == "its own"


def test_searches_are_built_without_models(interface):
    """Of 0.9: task.build_generator(args), then the models; another model has another search."""
    task, models = interface.task, list(interface.models)
    options = argparse.Namespace(beam=3, max_len_a=0, max_len_b=4)
    older = task.build_generator(options)
    assert not hasattr(older, "beam_size")  # before it knows the models
    for present in (models, [copy.deepcopy(models[0])] * 2, models):
        expected = task.inference_step(task.build_generator(present, options), present, SAMPLE)
        for hypothesis, other in zip(task.inference_step(older, present, SAMPLE)[0], expected[0]):
            assert torch.equal(hypothesis["tokens"], other["tokens"])
            assert torch.equal(hypothesis["score"], other["score"])
        assert older.beam_size == 3
        assert older.model.models_size == len(present)


def test_tasks_of_plugins_build_searches_as_in_0_9(interface):
    class OfPlugin(type(interface.task)):
        def build_generator(self, args):
            args.beam = 2
            return super().build_generator(args)

    task = OfPlugin(interface.task.cfg, interface.task.src_dict, interface.task.tgt_dict)
    search = task.build_generator(argparse.Namespace(beam=5))
    assert len(search.generate(list(interface.models), SAMPLE)[0]) == 2


def test_models_alone_are_a_mistake(interface):
    with pytest.raises(TypeError, match="'args'"):
        interface.task.build_generator(list(interface.models))


def test_all_tasks_take_options_alone():
    task = object.__new__(TASK_REGISTRY["translation_lev"])
    task.tgt_dict = Dictionary()
    search = task.build_generator(argparse.Namespace(iter_decode_max_iter=4))
    assert type(search.build([])).__name__ == "IterativeRefinementGenerator"
    assert search.build([]).max_iter == 4


def test_tokenizers_with_former_options(monkeypatch):
    from fairseq.data.encoders.moses_tokenizer import MosesTokenizer

    def tokenizer(language):
        return SimpleNamespace(language=language, tokenize=lambda text, **options: options)

    sacremoses = SimpleNamespace(MosesTokenizer=tokenizer, MosesDetokenizer=tokenizer)
    monkeypatch.setitem(sys.modules, "sacremoses", sacremoses)
    options = {"moses_source_lang": "fr", "moses_target_lang": "en", "moses_no_escape": True}
    coder = MosesTokenizer(argparse.Namespace(**options))  # moses_no_dash_splits is missing
    assert (coder.tok.language, coder.detok.language) == ("fr", "en")
    words = {"aggressive_dash_splits": True, "return_str": True, "escape": False}
    assert coder.encode("a") == words
    named = argparse.Namespace(
        **options, moses_no_dash_splits=False, source_lang="de", target_lang="cs"
    )
    assert MosesTokenizer(named).tok.language == "de"


def test_pieces_with_former_options(tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE

    lines = iter(["a b c ab", "c b a ba"] * 20)
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=lines, model_prefix=str(tmp_path / "m"), vocab_size=9, minloglevel=2
    )
    coder = SentencepieceBPE(argparse.Namespace(sentencepiece_model=str(tmp_path / "m.model")))
    assert coder.encode("ab c").replace(" ", "") == "\u2581ab\u2581c"
    assert not coder.enable_sampling
