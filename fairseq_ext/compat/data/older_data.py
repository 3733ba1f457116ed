"""Sets of data, dictionaries and binarizers with the arguments of fairseq 0.9 and 0.10."""

from __future__ import annotations

import functools
from typing import Any, Iterator

from ..computed_attributes import AttributeUntilSet
from ..patch_registry import PatchedModule, patch

# both were kept and never read; they came after the eighth argument by place
LIMITS = ("max_source_positions", "max_target_positions")
BEFORE_LIMITS = 8
# what pairs have since some version after 0.7, as their `__init__` sets it by default
SINCE_0_7 = {
    **{"append_bos": False, "align_dataset": None},  # 0.8, 0.9
    **{"constraints": None, "src_lang_id": None, "tgt_lang_id": None},  # 0.10
    **{"buckets": None, "pad_to_multiple": 1},  # 0.10
}

# {module: its class of recordings, and what a recording was as a tuple}
RECORDINGS = {
    "fairseq.data.audio.speech_to_text_dataset": (
        "SpeechToTextDataset",
        ("index", "source", "target"),
    ),
    "fairseq.data.audio.text_to_speech_dataset": (
        "TextToSpeechDataset",
        ("index", "source", "target", "speaker_id", "duration", "pitch", "energy"),
    ),
}


@patch(
    "fairseq.data.language_pair_dataset",
    because="fairseq 0.10 dropped two arguments of LanguagePairDataset: tasks for 0.9 fail with "
    "\"unexpected keyword argument 'max_source_positions'\"",
)
def pairs_take_limits(module: PatchedModule) -> None:
    """Take the limits of positions that fairseq 0.9 gave LanguagePairDataset."""
    pairs = module.LanguagePairDataset
    stock = pairs.__init__

    @functools.wraps(stock)
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        # today a bool, `shuffle`, is in the place of the first limit
        by_place = args[BEFORE_LIMITS:]
        if by_place and isinstance(by_place[0], int) and not isinstance(by_place[0], bool):
            args = (*args[:BEFORE_LIMITS], *by_place[len(LIMITS) :])
        stock(self, *args, **{name: options[name] for name in options if name not in LIMITS})

    pairs.__init__ = __init__


@patch(
    "fairseq.data.language_pair_dataset",
    because="fairseq 0.10 reads more attributes of LanguagePairDataset: datasets for 0.9 that set "
    "those of that time themselves, such as MASS's, fail with \"has no attribute 'buckets'\"",
)
def pairs_may_set_their_attributes(module: PatchedModule) -> None:
    """Give datasets that do without the `__init__` of pairs the defaults of newer attributes."""
    pairs = module.LanguagePairDataset
    for name, default in SINCE_0_7.items():
        setattr(pairs, name, default)

    # the lengths of both sides, by which a subset of a training is drawn and a set concatenated
    def sizes(self: Any) -> Any:
        if self.tgt_sizes is None:
            return module.np.asarray(self.src_sizes)
        return module.np.vstack((self.src_sizes, self.tgt_sizes)).T

    pairs.sizes = AttributeUntilSet(sizes)


@patch(
    "fairseq.data.dictionary",
    because="fairseq 0.10 takes the symbols of a dictionary by name only: dictionaries for 0.9, "
    "such as those of MASS and ProphetNet, fail with 'takes 1 positional argument'",
)
def dictionaries_take_symbols_by_place(module: PatchedModule) -> None:
    """Take the special symbols of a dictionary in the order of fairseq 0.9."""
    dictionary = module.Dictionary
    stock = dictionary.__init__

    @functools.wraps(stock)
    def __init__(self: Any, *symbols: Any, **named: Any) -> None:
        names = ("pad", "eos", "unk", "bos", "extra_special_symbols")
        if len(symbols) > len(names):
            raise TypeError(f"Dictionary takes at most {len(names)} arguments by place")
        stock(self, **dict(zip(names, symbols)), **named)

    dictionary.__init__ = __init__


@patch(
    "fairseq.data.data_utils",
    because="fairseq 0.12 has an argument before max_tokens in batch_by_size: programs for 0.9 and "
    "0.10, which give max_tokens by place, fail with \"object of type 'int' has no len()\"",
)
def batches_take_limits_by_place(module: PatchedModule) -> None:
    """Take max_tokens in the third place of batch_by_size, as until fairseq 0.10."""
    stock = module.batch_by_size

    @functools.wraps(stock)
    def batch_by_size(indices: Any, num_tokens_fn: Any, *limits: Any, **options: Any) -> Any:
        # lengths are an array today
        is_older = bool(limits) and isinstance(limits[0], (int, float))
        return stock(indices, num_tokens_fn, *((None,) * is_older), *limits, **options)

    module.batch_by_size = batch_by_size


@patch(
    *RECORDINGS,
    because="fairseq 0.12: sets of recordings for 0.10 that name data_cfg, or return and unpack "
    "(index, source, target), fail with \"unexpected keyword argument 'data_cfg'\" and "
    "'cannot unpack non-iterable'; so does its own task frm_text_to_speech",
)
def recordings_are_tuples_too(module: PatchedModule) -> None:
    """Let SpeechToTextDataset and TextToSpeechDataset be derived from and read as in 0.10."""
    name, fields = RECORDINGS[module.__name__]
    recordings, item = getattr(module, name), getattr(module, f"{name}Item")
    make, collate = recordings.__init__, recordings.collater

    @functools.wraps(make)
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        if "data_cfg" in options:
            options["cfg"] = options.pop("data_cfg")
        make(self, *args, **options)

    @functools.wraps(collate)
    def collater(self: Any, samples: Any, *args: Any, **options: Any) -> Any:
        # those of speech_text_joint_to_text are tuples with names of their own
        items = [item(*sample) if type(sample) is tuple else sample for sample in samples]
        return collate(self, items, *args, **options)

    def __iter__(self: Any) -> Iterator[Any]:
        return iter([getattr(self, field) for field in fields])

    recordings.__init__, recordings.collater, item.__iter__ = __init__, collater, __iter__
    recordings.data_cfg = AttributeUntilSet(lambda self: self.cfg)


@patch(
    "fairseq.data.audio.raw_audio_dataset",
    because="fairseq 0.12 dropped min_length of FileAudioDataset and reads min_sample_size in its "
    "place, which 0.10 did not read and its task set to max_sample_size: tasks for 0.10 leave out "
    "all shorter recordings, without an error",
)
def recordings_have_a_least_length(module: PatchedModule) -> None:
    """Leave out recordings shorter than min_length where a caller has it, and no others."""
    for name, place in {"RawAudioDataset": 4, "FileAudioDataset": 5}.items():
        recordings = getattr(module, name)
        recordings.__init__ = taking_least_length(recordings.__init__, place)


def taking_least_length(stock: Any, place: int) -> Any:
    """Return an `__init__` that takes min_length, by name or in its place of fairseq 0.10."""

    @functools.wraps(stock)
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        values = list(args)
        if len(values) > place and type(values[place]) is int:  # a bool, `pad`, is there today
            options["min_length"] = values.pop(place)
        if "min_length" in options:
            options["min_sample_size"] = options.pop("min_length")
            if len(values) > place - 2:
                values[place - 2] = options.pop("min_sample_size")
        stock(self, *values, **options)

    return __init__


@patch(
    "fairseq.binarizer",
    because="fairseq 0.12 made Binarizer a class for lines: programs for 0.9 and 0.10 that prepare "
    "data, such as a changed copy of preprocess.py, fail with \"type object 'Binarizer' has no "
    "attribute 'binarize'\"",
)
def binarizers_read_files(module: PatchedModule) -> None:
    """Give Binarizer the functions for files, which LegacyBinarizer and another module have."""
    binarizer, legacy = module.Binarizer, module.LegacyBinarizer

    def binarize(filename: str, dict: Any, consumer: Any, *more: Any, **options: Any) -> Any:
        return legacy.binarize(filename, dict, consumer, *more, **options)

    def find_offsets(filename: str, num_chunks: int) -> list[int]:
        # the last was 0, which stands for the end of the file
        path = module.PathManager.get_local_path(filename)
        return [*module.find_offsets(path, num_chunks)[:-1], 0]

    binarizer.binarize = staticmethod(binarize)
    binarizer.binarize_alignments = staticmethod(legacy.binarize_alignments)
    binarizer.find_offsets = staticmethod(find_offsets)
