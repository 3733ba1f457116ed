"""Methods that plugins for fairseq 0.10 replace are called, as fairseq 0.10 called them."""

import shutil

import numpy as np
import pytest
import torch
from common import inprocess
from fairseq import options
from fairseq.data import Dictionary, MonolingualDataset
from fairseq.data.audio.data_cfg import S2TDataConfig
from fairseq.data.audio.speech_to_text_dataset import (
    SpeechToTextDataset,
    SpeechToTextDatasetCreator,
)
from fairseq.models import BaseFairseqModel, FairseqDecoder, FairseqEncoder
from fairseq.models.composite_encoder import CompositeEncoder
from fairseq.models.speech_to_text.xm_transformer import XMTransformerModel
from fairseq.tasks.language_modeling import LanguageModelingTask

# ---------------------------------------------------------------- language models


class Reversed(MonolingualDataset):
    """A set with the arguments of fairseq 0.10, whose lines go from the right to the left."""

    def __init__(
        self,
        dataset,
        sizes,
        src_vocab,
        tgt_vocab,
        add_eos_for_other_targets,
        shuffle,
        targets=None,
        add_bos_token=False,
    ):
        more = (add_eos_for_other_targets, shuffle, targets, add_bos_token)
        super().__init__(dataset, sizes, src_vocab, tgt_vocab, *more)

    def __getitem__(self, index):
        item = super().__getitem__(index)
        return {name: value.flip(0) if name != "id" else value for name, value in item.items()}


class Rightmost(LanguageModelingTask):
    """A task for fairseq 0.10."""

    def _initialize_dataset(self, **kwargs):
        return Reversed(**kwargs)


class Copied(LanguageModelingTask):
    """A task whose own load_dataset calls the method, which it does not replace."""

    def load_dataset(self, split, epoch=1, combine=False, **kwargs):
        super().load_dataset(split, epoch, combine, **kwargs)
        blocks = self.datasets[split]
        self.datasets[split] = self._initialize_dataset(
            dataset=blocks.dataset,
            sizes=blocks.sizes,
            src_vocab=self.dictionary,
            tgt_vocab=self.output_dictionary,
            add_eos_for_other_targets=True,
            shuffle=False,
            targets=self.targets,
        )


@pytest.fixture
def load(toy_corpus, tmp_path):
    """Function (class of a task, options...) -> its training set."""
    shutil.copy(f"{toy_corpus.two}/dict.xx.txt", tmp_path / "dict.txt")
    for name in ("bin", "idx"):
        shutil.copy(f"{toy_corpus.two}/train.xx-yy.xx.{name}", tmp_path / f"train.{name}")

    def load(kind, *more):
        words = [tmp_path, "--task", "language_modeling", "--arch", "transformer_lm"]
        words += ["--max-tokens", 99, "--sample-break-mode", "eos", *more]
        cfg = inprocess.configuration(options.get_training_parser(), words)
        task = kind.setup_task(cfg.task)
        task.load_dataset("train")
        return task.datasets["train"]

    return load


def test_tasks_of_language_models_make_their_sets(load):
    """In stock they are fairseq's, without a message."""
    stock, older = load(LanguageModelingTask), load(Rightmost)
    assert type(stock) is MonolingualDataset and type(older) is Reversed
    assert len(older) == len(stock) > 0 and older.sizes.tolist() == stock.sizes.tolist()
    assert (older.shuffle, older.targets, older.add_bos_token) == (True, ["future"], False)
    for index in range(5):
        assert older[index]["source"].flip(0).tolist() == stock[index]["source"].tolist()
    assert type(load(Copied)) is MonolingualDataset and not load(Copied).shuffle


def test_what_a_set_of_0_10_cannot_do_is_an_error(load):
    with pytest.raises(TypeError, match="fixed_pad_length"):
        load(Rightmost, "--pad-to-fixed-length", "--tokens-per-sample", 9)
    assert load(LanguageModelingTask, "--pad-to-fixed-length").fixed_pad_length == 1024


# ---------------------------------------------------------------- recordings


class Capitals(SpeechToTextDataset):
    """Recordings for fairseq 0.10 whose texts are written in capitals."""

    def tokenize_text(self, text):
        return super().tokenize_text(text).upper()


class Shares(SpeechToTextDatasetCreator):
    """A creator for fairseq 0.10 that notes what it is asked for."""

    @classmethod
    def _get_size_ratios(cls, ids, sizes, alpha=1.0):
        cls.asked = (ids, sizes, alpha)
        return super()._get_size_ratios(ids, sizes, alpha)


@pytest.fixture
def recordings(tmp_path):
    """Function (class, count) -> a set of `count` recordings with the text "a b"."""
    (tmp_path / "config.yaml").write_text("vocab_filename: dict.txt\n")
    np.save(tmp_path / "a.npy", np.zeros((5, 2), dtype=np.float32))
    words = Dictionary()
    for word in ("a", "b", "A", "B"):
        words.add_symbol(word)

    def make(kind, count=1):
        cfg = S2TDataConfig(tmp_path / "config.yaml")
        paths = [str(tmp_path / "a.npy")] * count
        texts = {"n_frames": [5] * count, "tgt_texts": ["a b"] * count, "tgt_dict": words}
        languages = {"src_langs": ["x"] * count, "tgt_langs": ["y"] * count}
        return kind(f"train_{count}", True, cfg, paths, **texts, **languages)

    return make


def test_recordings_have_their_own_texts(recordings):
    """In stock the target is that of the text as it stands in the file."""
    stock, older = recordings(SpeechToTextDataset), recordings(Capitals)
    assert stock[0].target.tolist() == [4, 5, 2]
    assert older[0].target.tolist() == [6, 7, 2]
    assert older.tgt_lens == stock.tgt_lens == [2]


def test_creators_choose_their_shares(recordings):
    parts = [recordings(SpeechToTextDataset, 1), recordings(SpeechToTextDataset, 4)]
    # p ~ n**alpha, and the ratio is p * sum(n) / n: 1/3 * 5 / 1 and 2/3 * 5 / 4
    assert Shares.get_size_ratios(parts, alpha=0.5) == pytest.approx([5 / 3, 5 / 6])
    assert Shares.asked == (["train_1", "train_4"], [1, 4], 0.5)
    # of one pair of languages
    assert SpeechToTextDatasetCreator.get_size_ratios(parts, alpha=0.5) == [1, 1]


# ---------------------------------------------------------------- checkpoints


class OlderEncoder(FairseqEncoder):
    """An encoder for fairseq 0.10 whose parameter had another name before."""

    def __init__(self):
        super().__init__(Dictionary())
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def upgrade_state_dict(self, state_dict):
        for name in [name for name in state_dict if name.endswith("former")]:
            state_dict[name.replace("former", "weight")] = state_dict.pop(name)
        return super().upgrade_state_dict(state_dict)


class OlderDecoder(FairseqDecoder):
    """The same of a decoder, whose method calls that for a name."""

    def __init__(self):
        super().__init__(Dictionary())
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def upgrade_state_dict(self, state_dict):
        state_dict["decoder.weight"] = state_dict.pop("decoder.scaled") / 2
        return self.upgrade_state_dict_named(state_dict, "")


class Model(BaseFairseqModel):
    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.decoder = encoder, OlderDecoder()


def test_encoders_and_decoders_upgrade_their_parameters():
    model = Model(OlderEncoder())
    model.load_state_dict({"encoder.former": torch.ones(1), "decoder.scaled": torch.ones(1)})
    assert (model.encoder.weight.item(), model.decoder.weight.item()) == (1, 0.5)
    state = model.state_dict()
    assert FairseqEncoder(Dictionary()).upgrade_state_dict(state) is state


def test_encoders_of_a_composite_upgrade_theirs():
    model = Model(CompositeEncoder({"first": OlderEncoder()}))
    # only what is registered has parameters of the model
    model.load_state_dict({"decoder.scaled": torch.ones(1)}, strict=False)
    state = {"former": torch.ones(1)}
    assert list(model.encoder.upgrade_state_dict(state)) == ["weight"]


def test_parts_of_models_of_speech_upgrade_theirs():
    """In stock, the model of fairseq 0.12 for recordings asks none of its parts."""
    model = XMTransformerModel(OlderEncoder(), OlderDecoder())
    model.load_state_dict({"encoder.former": torch.ones(1), "decoder.scaled": torch.ones(1)})
    assert (model.encoder.weight.item(), model.decoder.weight.item()) == (1, 0.5)
