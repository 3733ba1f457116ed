"""The scripts that prepare speech: manifests, vocabularies and statistics of features."""

from __future__ import annotations

import functools
import gc
import io
from typing import TYPE_CHECKING, Any

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from pathlib import Path

    import numpy

RECORDINGS = "flac.zip:"  # with the place of a recording in it
DATA_UTILS = modules_of_examples("speech_to_text.data_utils")


@patch(
    *DATA_UTILS,
    because="fairseq 0.12.2: the scripts prep_*.py train the vocabulary on a file whose last "
    "lines (up to 8 KiB) are not written yet",
)
def vocabularies_see_the_whole_text(module: PatchedModule) -> None:
    """Flush what this process has open under the name of the text before it is read."""
    stock = module.gen_vocab

    @functools.wraps(stock)
    def gen_vocab(input_path: Path, *args: Any, **kwargs: Any) -> None:
        for file in gc.get_objects():
            # the type itself: isinstance() would run code of proxies
            if type(file) is io.TextIOWrapper and not file.closed and file.writable():
                if getattr(file, "name", None) == str(input_path):
                    file.flush()
        stock(input_path, *args, **kwargs)

    module.gen_vocab = gen_vocab


@patch(
    *DATA_UTILS,
    because="pandas 3 writes a backslash before quotes, and Python 3.11 before backslashes, which "
    "fairseq reads as part of the text: targets differ from those of the vocabulary",
)
def manifests_are_verbatim(module: PatchedModule) -> None:
    """Write the values as they are, which is how fairseq reads manifests."""

    def save_df_to_tsv(dataframe: Any, path: str | Path) -> None:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write("\t".join(map(str, dataframe.columns)) + "\n")
            for values in dataframe.itertuples(index=False, name=None):
                file.write("\t".join(map(_one_field, values)) + "\n")

    module.save_df_to_tsv = save_df_to_tsv


def _one_field(value: Any) -> str:
    """Return a value as one field of a line; "" for one that is missing."""
    if value is None or value != value:  # NaN
        return ""
    text = str(value)
    return " ".join(text.splitlines()).replace("\t", " ") if _has_breaks(text) else text


def _has_breaks(text: str) -> bool:
    return any(mark in text for mark in "\t\n\r")


@patch(
    *DATA_UTILS,
    because="fairseq 0.12.2: with --use-audio-input the lengths are samples, of which 3000 are the "
    "limit: every recording longer than 0.2 s is left out of the training set",
)
def recordings_are_filtered_by_time(module: PatchedModule) -> None:
    """Take the limits, frames of 10 ms, for samples where the manifest names recordings."""
    stock = module.filter_manifest_df

    @functools.wraps(stock)
    def filter_manifest_df(
        df: Any,
        is_train_split: bool = False,
        extra_filters: Any = None,
        min_n_frames: int = 5,
        max_n_frames: int = 3000,
    ) -> Any:
        # the scripts pack recordings of 16 kHz into this archive
        unit = 160 if len(df) > 0 and all(RECORDINGS in str(path) for path in df["audio"]) else 1
        return stock(df, is_train_split, extra_filters, min_n_frames * unit, max_n_frames * unit)

    module.filter_manifest_df = filter_manifest_df


@patch(
    *DATA_UTILS,
    because="fairseq 0.12.2: --cmvn-type global sums all frames in float32, wrong by a per cent "
    "at 30 hours and by half at 110 hours of speech; ends in an error after an interrupted run",
)
def global_statistics_are_exact(module: PatchedModule) -> None:
    """Sum the frames in float64, and read the features that an earlier run has left."""
    import numpy

    stock = module.extract_fbank_features

    def cal_gcmvn_stats(features_list: list[numpy.ndarray]) -> dict[str, numpy.ndarray]:
        frames = sum(len(features) for features in features_list)
        sums = sum(features.sum(axis=0, dtype="float64") for features in features_list)
        mean = sums / frames  # (D,)
        # around the mean: the difference of two large sums would lose digits
        squares = sum(
            numpy.square(features - mean).sum(axis=0, dtype="float64") for features in features_list
        )
        std = numpy.sqrt(numpy.maximum(squares / frames, 1e-8))
        return {"mean": mean.astype("float32"), "std": std.astype("float32")}

    @functools.wraps(stock)
    def extract_fbank_features(
        waveform: Any, sample_rate: int, output_path: Path | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        features = stock(waveform, sample_rate, output_path, *args, **kwargs)
        # None: the file was there already
        return numpy.load(output_path) if features is None and output_path else features

    module.cal_gcmvn_stats = cal_gcmvn_stats
    module.extract_fbank_features = extract_fbank_features


@patch(
    *modules_of_examples("speech_synthesis.preprocessing.speaker_embedder"),
    because="torch 2 computes torch.stft only with return_complex: each recording ends in a "
    "RuntimeError, which get_speaker_embedding takes for one that is too short",
)
def speaker_embeddings_are_computed(module: PatchedModule) -> None:
    """Give torch.stft its old form, with the two parts of a number in the last dimension."""
    import torch

    from ..module_overlay import overlay_names

    def stft(waveform: Any, *args: Any, **options: Any) -> Any:
        options["return_complex"] = True
        return torch.view_as_real(torch.stft(waveform, *args, **options))

    overlay_names(module, "torch", stft=stft)
