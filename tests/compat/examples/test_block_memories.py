"""truncated_bptt and adaptive_span (fairseq_ext/compat/examples/block_memories.py)."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import fairseq.models
import pytest
import torch
from common.words import numbered_words

from fairseq_ext.compat.examples import block_memories

PARENTS = ("transformers", "transformers.models", "transformers.models.deprecated")
NAMES = (*PARENTS, block_memories.DEPRECATED, block_memories.TRANSFORMER_XL)


class Model(torch.nn.Module):
    """A model whose memory is the list of the blocks that it has read."""

    def __init__(self):
        super().__init__()
        self.decoder = SimpleNamespace(_mems=None)
        self.seen = []

    def set_num_updates(self, updates):
        pass

    def forward(self, block):
        self.seen.append(self.decoder._mems)
        self.decoder._mems = [*(self.decoder._mems or []), block]


def test_training_and_validation_remember_their_own_text(example):
    task_class = example("adaptive_span", "truncated_bptt_lm_task").TruncatedBPTTLMTask
    task = task_class.__new__(task_class)
    task.dictionary = numbered_words(46)
    model, optimizer = Model(), SimpleNamespace(backward=lambda loss: None)

    def criterion(model, sample):
        model(int(sample["net_input"]["src_tokens"][0, 0]))
        return torch.zeros(1), 1, {}

    def batch(block, word):
        return task._collate_fn([(block, [torch.tensor([word, 4])])])

    def train(block):
        task.train_step(batch(block, 10 + block), model, criterion, optimizer, 0)

    def validate(block):
        task.valid_step(batch(block, 20 + block), model, criterion)

    for step, block in ((train, 0), (train, 1), (validate, 0), (validate, 1), (train, 2)):
        step(block)
    for step in (validate, train):
        step(0)  # a later validation, and the next epoch
    assert model.seen == [None, [10], None, [20], [10, 11], None, None]


@pytest.fixture
def packages(monkeypatch):
    """Function: a package transformers that has Transformer-XL under one of the names, or none."""

    def install(name):
        for present in NAMES:
            monkeypatch.setitem(sys.modules, present, None)  # cannot be imported
        for present in {*PARENTS, name} - {None}:
            module = ModuleType(present)
            module.__path__ = []
            monkeypatch.setitem(sys.modules, present, module)
        if name is not None:
            sys.modules[name].TransfoXLConfig = lambda **options: SimpleNamespace(**options)
            sys.modules[name].TransfoXLLMHeadModel = Recurrent
            return
        for gone in (block_memories.TRANSFORMER_XL, block_memories.DEPRECATED):
            monkeypatch.delitem(sys.modules, gone)

    return install


class Recurrent(torch.nn.Module):
    """A model with the interface of transformers: its memory is the last word, [1, B, 1]."""

    def __init__(self, config):
        super().__init__()
        self.embedding = torch.nn.Embedding(config.vocab_size, config.vocab_size)

    def forward(self, input_ids, mems, return_dict):
        return self.embedding(input_ids), [input_ids[:, -1:].T[:, :, None].float()]


@pytest.fixture
def transformer_xl(monkeypatch):
    """The module of the model alone: the example's task has the name of that of adaptive_span."""
    monkeypatch.setattr(fairseq.models, "register_model", lambda *args, **options: lambda cls: cls)
    path = Path(fairseq.__file__).parent / "examples" / "truncated_bptt" / "transformer_xl_model.py"
    spec = importlib.util.spec_from_file_location("transformer_xl_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    block_memories.transformer_xl_is_found(module)
    return module


@pytest.mark.parametrize("name", [block_memories.TRANSFORMER_XL, block_memories.DEPRECATED])
def test_transformer_xl_is_where_transformers_has_it(transformer_xl, packages, name):
    module = transformer_xl
    packages(name)
    task = SimpleNamespace(target_dictionary=numbered_words(20))
    cfg = module.TransformerXLConfig(max_target_positions=8)
    decoder = module.TransformerXLDecoder(cfg, task)
    (scores,) = decoder(torch.tensor([[4, 5]]))
    assert scores.shape == (1, 2, 20)
    assert decoder._mems[0].tolist() == [[[5.0]]]


def test_the_error_names_the_versions(transformer_xl, packages):
    packages(None)
    with pytest.raises(ImportError, match="allowed: a version before 5"):
        transformer_xl.TransformerXLDecoder(transformer_xl.TransformerXLConfig(), None)
