"""The features of a wav file, by the settings of the model's data."""

from pathlib import Path

import numpy as np
from fairseq.tasks import FairseqTask

from ..twin.audio import AudioError, Banks, filter_banks, read_wav, triangles


def features_of(path: Path, task: FairseqTask) -> np.ndarray:
    """Return what ``fairseq-ext filter-banks`` writes of a recording: (T, F) float32.

    Raises ValueError, naming the file, for one that cannot be used, and for data that do not say
    how features are made.
    """
    settings = getattr(getattr(task, "data_cfg", None), "config", {}).get("filter_banks")
    if not settings:
        raise ValueError(
            f"{path}: config.yaml of the data has no settings filter_banks, which fairseq-ext "
            "filter-banks writes; allowed: files of features (.npy)"
        )
    banks = Banks(**settings)
    try:
        return filter_banks(read_wav(path, banks.sample_rate), banks, triangles(banks))
    except AudioError as error:
        place = "" if str(path) in str(error) else f"{path}: "
        raise ValueError(f"{place}{error}") from error
