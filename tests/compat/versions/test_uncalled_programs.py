"""Methods of models, hub interfaces and samplers for fairseq 0.10 are called as there."""

from collections import OrderedDict
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from common.words import dictionary_with
from fairseq import hub_utils
from fairseq.data import LanguagePairDataset, data_utils
from fairseq.data.multi_corpus_dataset import MultiCorpusDataset
from fairseq.models.bart.hub_interface import BARTHubInterface
from fairseq.models.roberta import RobertaModel
from fairseq.models.transformer import TransformerModel
from omegaconf import OmegaConf

WORDS = dictionary_with("a", "b")


def corpus(count):
    tokens = [torch.tensor([4 + index % 2, WORDS.eos()]) for index in range(count)]
    return LanguagePairDataset(tokens, np.full(count, 2), WORDS)


class Alternating(MultiCorpusDataset):
    """Sentences of the first and the second corpus in turn."""

    turn = 1

    def _sample(self, indices, counters):
        self.turn = 1 - self.turn
        counters[self.turn] += 1
        return self.dataset_offsets[self.turn] + indices[self.turn][counters[self.turn] - 1]


class Inherited(MultiCorpusDataset):
    """Samples as fairseq 0.10 did."""

    def _sample(self, indices, counters):
        return super()._sample(indices, counters)


def mixture(kind, *shares, sizes=(3, 3)):
    names = OrderedDict((str(place), corpus(size)) for place, size in enumerate(sizes))
    drawn = kind(names, list(shares), seed=1)
    drawn.set_epoch(1)
    return drawn


def test_corpora_are_sampled_by_their_method():
    """In stock, by shares, whatever `_sample` says."""
    order = mixture(Alternating, 0.5, 0.5).ordered_indices()
    assert [index // 3 for index in order] == [0, 1, 0, 1, 0, 1]
    assert sorted(order) == list(range(6)) and order.dtype == np.int64


def test_corpora_are_sampled_as_in_0_10():
    """One draw for each sentence; a corpus that is used up is permuted again."""
    order = mixture(Inherited, 0.75, 0.25, sizes=(2, 200)).ordered_indices()
    with data_utils.numpy_seed(1, 1):
        first, second = np.random.permutation(2), np.random.permutation(200)
        choice = np.random.choice(2, p=[0.75, 0.25])
    assert order[0] == (first[0], 2 + second[0])[choice]
    of_first = [index for index in order if index < 2]
    assert len(order) == 202 and 130 < len(of_first) < 172
    pairs = zip(of_first[::2], of_first[1::2])
    assert all(sorted(pair) == [0, 1] for pair in pairs)
    stock = mixture(MultiCorpusDataset, 0.75, 0.25, sizes=(2, 200)).ordered_indices()
    assert sum(index < 2 for index in stock) == 151


class ReversedInputs(BARTHubInterface):
    """A hub interface for 0.10 that reads its inputs from the right to the left."""

    def _build_sample(self, src_tokens):
        rows = [(place, row.flip(0)) for place, row in enumerate(src_tokens)]
        rows = rows[::-1]  # as a collater that orders them by length
        tokens = data_utils.collate_tokens([row for _, row in rows], WORDS.pad())
        return {
            "id": torch.tensor([place for place, _ in rows]),
            "net_input": {"src_tokens": tokens, "src_lengths": tokens.ne(WORDS.pad()).sum(1)},
        }


class Echo:
    """A task whose search returns its input behind the prefix."""

    source_dictionary = target_dictionary = WORDS
    cfg = None

    def max_positions(self):
        return None

    def build_generator(self, models, options, **more):
        return options

    def inference_step(self, generator, models, sample, prefix_tokens):
        tokens = torch.cat([prefix_tokens, sample["net_input"]["src_tokens"]], dim=1)
        return [[{"tokens": row, "score": generator.beam}] for row in tokens]


def test_hub_interfaces_build_their_samples():
    """In stock, the model reads the inputs as they are."""
    groups = {"generation": {"beam": 5, "replace_unk": None}, "tokenizer": None, "bpe": None}
    groups.update(task={"_name": "denoising"}, model={"_name": "bart_base"})
    model = torch.nn.Linear(1, 1)
    model.prepare_for_inference_, model.max_positions = (lambda cfg: None), (lambda: None)
    hub = ReversedInputs(OmegaConf.create(groups), Echo(), model)
    answers = hub.generate([torch.tensor([4, 5, 2]), torch.tensor([5, 2])], beam=3)
    tokens = [answer[0]["tokens"].tolist() for answer in answers]
    assert tokens == [[0, 2, 5, 4], [0, 2, 5, 1]] and answers[0][0]["score"] == 3


@pytest.mark.parametrize("base", [TransformerModel, RobertaModel])
def test_models_upgrade_their_options(base, monkeypatch):
    class Older(base):
        @classmethod
        def upgrade_args(cls, args):
            super().upgrade_args(args)
            args.beam, args.share_heads = args.nbest + 1, True

        @classmethod
        def hub_models(cls):
            return {}

    groups = {"task": {"_name": "translation"}, "model": {"_name": "older"}}
    groups["generation"] = {"nbest": 3, "beam": 5}
    cfg = OmegaConf.create(groups)
    OmegaConf.set_struct(cfg, True)
    task = SimpleNamespace(cfg=None)
    read = "fairseq.checkpoint_utils.load_model_ensemble_and_task"
    monkeypatch.setattr(read, lambda *args, **options: (["model"], cfg, task))
    monkeypatch.setattr("fairseq.file_utils.load_archive_file", lambda path: path)
    monkeypatch.setattr(hub_utils, "GeneratorHubInterface", lambda cfg, *more: cfg)
    monkeypatch.setattr("fairseq.models.roberta.model.RobertaHubInterface", lambda cfg, *more: cfg)
    upgraded = Older.from_pretrained("folder")
    assert (upgraded.generation.beam, upgraded.model.share_heads) == (4, True)
    cfg.generation.beam = 5
    assert base.from_pretrained("folder").generation.beam == 5
