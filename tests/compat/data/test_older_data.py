"""Pairs of sentences and dictionaries with the arguments of fairseq 0.9."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.data.audio.raw_audio_dataset import FileAudioDataset, RawAudioDataset

LINES = [torch.tensor([4, 5, 2])]
PAIR = (LINES, [3], Dictionary(), LINES, [3], Dictionary(), True, False)


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ((), {"max_source_positions": 30, "max_target_positions": 30, "shuffle": False}),
        ((30, 30, False), {}),
        ((30,), {"max_target_positions": 30, "shuffle": False}),
        ((False,), {}),  # as today
    ],
)
def test_limits_of_positions_are_taken(more, options):
    pairs = LanguagePairDataset(*PAIR, *more, **options)
    assert pairs.shuffle is False and pairs.input_feeding is True
    assert (pairs.left_pad_source, pairs.left_pad_target) == (True, False)


@pytest.mark.parametrize("has_targets", [False, True])
def test_pairs_may_set_their_attributes(has_targets):
    """A dataset that derives from pairs and does not call their `__init__`, as until 0.9."""
    words = Dictionary()
    texts = [torch.tensor([*range(4, 4 + length), 2]) for length in (5, 3, 4)]

    class Masked(LanguagePairDataset):
        def __init__(self):
            self.src = self.tgt = texts
            self.src_sizes = self.tgt_sizes = np.array([6, 4, 5])
            self.src_dict = self.tgt_dict = words
            if not has_targets:
                self.tgt = self.tgt_sizes = self.tgt_dict = None
            self.left_pad_source, self.left_pad_target = True, False
            self.shuffle, self.input_feeding = False, True
            self.remove_eos_from_source = self.append_eos_to_target = False
            self.eos = 2

    older = Masked()
    targets = (texts, older.tgt_sizes, words) if has_targets else ()
    present = LanguagePairDataset(texts, older.src_sizes, words, *targets, shuffle=False)
    assert older.ordered_indices().tolist() == present.ordered_indices().tolist()
    assert older.get_batch_shapes() is None
    assert np.array_equal(older.sizes, present.sizes)
    short, long = older.filter_indices_by_size(np.arange(3), (5, 5))
    assert (short.tolist(), long) == ([1, 2], [0])
    batch, expected = (pairs.collater([pairs[0], pairs[1]]) for pairs in (older, present))
    assert torch.equal(batch["net_input"]["src_tokens"], expected["net_input"]["src_tokens"])
    assert batch["ntokens"] == expected["ntokens"]
    # what `__init__` sets is the object's own
    assert LanguagePairDataset(texts, [6, 4, 5], words, pad_to_multiple=8).pad_to_multiple == 8
    assert "sizes" in vars(present)


def test_symbols_are_taken_by_place():
    class OlderDictionary(Dictionary):
        def __init__(self, pad="[PAD]", eos="[SEP]", unk="[UNK]", bos="[CLS]", more=("[X]",)):
            super().__init__(pad, eos, unk, bos, more)

    assert OlderDictionary().symbols == ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[X]"]
    assert OlderDictionary().pad_word == "[PAD]"
    assert (
        Dictionary().symbols == Dictionary(pad="<pad>").symbols == ["<s>", "<pad>", "</s>", "<unk>"]
    )
    with pytest.raises(TypeError):
        Dictionary("<pad>", pad="<pad>")
    with pytest.raises(TypeError, match="at most 5"):
        Dictionary(*"abcdef")


def test_limits_of_batches_by_place():
    from fairseq.data import data_utils

    indices, lengths = np.arange(6), np.array([4, 4, 4, 6, 6, 6])

    def length(index):
        return lengths[index]

    older = data_utils.batch_by_size(indices, length, 12, 2)
    assert [list(batch) for batch in older] == [[0, 1], [2, 3], [4, 5]]
    today = data_utils.batch_by_size(indices, length, lengths, 12, 2)
    named = data_utils.batch_by_size(indices, length, max_tokens=12, max_sentences=2)
    for batches in (today, named):
        assert [list(batch) for batch in batches] == [list(batch) for batch in older]


def test_recordings_are_made_and_read_as_before(tmp_path):
    """A set of recordings for fairseq 0.10: its options by name, and tuples of three."""
    from fairseq.data.audio.data_cfg import S2TDataConfig
    from fairseq.data.audio.speech_to_text_dataset import SpeechToTextDataset

    words = Dictionary()
    words.encode_line("a b", add_if_not_exist=True)
    paths = []
    for length in (5, 7):
        paths.append(str(tmp_path / f"{length}.npy"))
        np.save(paths[-1], np.arange(length * 2, dtype=np.float32).reshape(length, 2))

    class OlderRecordings(SpeechToTextDataset):
        def __getitem__(self, index):
            place, source, target = super().__getitem__(index)
            return place, source * self.data_cfg.factor, target

    (tmp_path / "config.yaml").write_text("vocab_filename: dict.txt\n")
    config = S2TDataConfig(tmp_path / "config.yaml")
    config.factor = 2
    texts = {"n_frames": [5, 7], "tgt_texts": ["a", "b a"], "tgt_dict": words}
    older = OlderRecordings("train", False, data_cfg=config, audio_paths=paths, **texts)
    present = SpeechToTextDataset("train", False, config, paths, **texts)
    batch, expected = (pairs.collater([pairs[0], pairs[1]]) for pairs in (older, present))
    assert torch.equal(batch["target"], expected["target"])
    features = batch["net_input"]["src_tokens"]
    assert features.shape == (2, 7, 2)
    assert torch.equal(features, 2 * expected["net_input"]["src_tokens"])


def test_recordings_with_names_of_their_own_stay_as_they_are():
    """As those of the example speech_text_joint_to_text, which have more parts."""
    from fairseq.data.audio.speech_to_text_dataset import SpeechToTextDataset

    class Recording(NamedTuple):
        index: int
        source: torch.Tensor
        target: torch.Tensor
        src_txt_tokens: torch.Tensor
        tgt_lang_tag: int
        alignment: torch.Tensor

    recordings = SpeechToTextDataset.__new__(SpeechToTextDataset)
    recordings.cfg = SimpleNamespace(use_audio_input=False)
    recordings.tgt_texts = recordings.speaker_to_id = None
    parts = [torch.ones(length, 2) for length in (3, 5)]
    samples = [Recording(index, part, part, part, 0, part) for index, part in enumerate(parts)]
    batch = recordings.collater(samples)
    assert (batch["id"].tolist(), batch["nsentences"]) == ([1, 0], 2)


@pytest.mark.parametrize("dedup", [False, True])
def test_units_of_a_fixed_rate_are_read(tmp_path, dedup):
    """The set of frm_text_to_speech, which unpacks and returns tuples."""
    from fairseq.data.audio.data_cfg import S2TDataConfig
    from fairseq.data.audio.frm_text_to_speech_dataset import FrmTextToSpeechDataset

    units = Dictionary()
    units.encode_line("a b", add_if_not_exist=True)
    np.save(tmp_path / "1.npy", np.arange(16, dtype=np.float32).reshape(8, 2))
    (tmp_path / "config.yaml").write_text("vocab_filename: dict.txt\n")
    recordings = FrmTextToSpeechDataset(
        "train",
        False,
        data_cfg=S2TDataConfig(tmp_path / "config.yaml"),
        audio_paths=[str(tmp_path / "1.npy")],
        n_frames=[8],
        tgt_texts=["a a b b"],
        tgt_dict=units,
        dedup=dedup,
        ref_fpu=2,  # frames for each unit
    )
    batch = recordings.collater([recordings[0]])
    words = "a b" if dedup else "a a b b"
    assert batch["net_input"]["src_tokens"].tolist() == [units.encode_line(words).tolist()]
    assert batch["target"].tolist() == [np.arange(16).reshape(8, 2).tolist()]


@pytest.mark.parametrize("workers", [1, 3])
def test_binarizers_read_files(tmp_path, workers):
    """The functions of fairseq 0.10 by which a copy of preprocess.py reads its files."""
    from fairseq.binarizer import Binarizer

    words, path = Dictionary(), str(tmp_path / "text")
    for word in "abc":
        words.add_symbol(word)
    lines = ["a b", "c a d", "b", "", "a a a"]
    (tmp_path / "text").write_text("".join(line + "\n" for line in lines))
    offsets = Binarizer.find_offsets(path, workers)
    assert len(offsets) == workers + 1 and offsets[0] == offsets[-1] == 0
    read, counts = [], []
    for offset, end in zip(offsets, offsets[1:]):
        counts.append(Binarizer.binarize(path, words, read.append, offset=offset, end=end))
    assert [words.string(line) for line in read] == ["a b", "c a <unk>", "b", "", "a a a"]
    assert [sum(part[name] for part in counts) for name in ("nseq", "ntok", "nunk")] == [5, 14, 1]
    named = Binarizer.binarize(filename=path, dict=words, consumer=print, append_eos=False)
    assert (named["ntok"], dict(named["replaced"])) == (9, {"d": 1})


def test_binarizers_read_alignments(tmp_path):
    from fairseq.binarizer import Binarizer

    read = []
    (tmp_path / "align").write_text("0-0 1-1\n0-1\n")

    def parse(line):
        return torch.tensor([int(number) for number in line.replace("-", " ").split()])

    path = str(tmp_path / "align")
    assert Binarizer.binarize_alignments(path, parse, read.append)["nseq"] == 2
    assert [pairs.tolist() for pairs in read] == [[0, 0, 1, 1], [0, 1]]


def test_recordings_have_a_least_length(tmp_path):
    """In stock, min_length is ignored, and what is shorter than min_sample_size is left out."""
    path = tmp_path / "train.tsv"
    path.write_text("/\na\t50\nb\t200\nc\t900\n", encoding="utf-8")
    # as the task of 0.10 called it
    limits = {"max_sample_size": 800, "min_sample_size": 800, "min_length": 100}
    by_name = FileAudioDataset(str(path), sample_rate=16, pad=True, normalize=True, **limits)
    by_place = FileAudioDataset(str(path), 16, 800, 800, True, 100, True, True)
    for older in (by_name, by_place):
        assert older.sizes.tolist() == [200, 900] and older.min_sample_size == 100
        assert (older.pad, older.normalize, older.shuffle) == (True, True, True)
    assert FileAudioDataset(str(path), 16, 800, 300, True, True).sizes.tolist() == [900]
    assert RawAudioDataset(16, 800, 800, False, 100, True).min_sample_size == 100
    assert RawAudioDataset(16, 800, 300, False, True).pad is True
