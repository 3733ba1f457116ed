"""speech_to_text/prep_covost_data: the functions that torchaudio no longer has."""

from __future__ import annotations

import os
import sys
import tarfile
from types import SimpleNamespace
from typing import Any

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch


@patch(
    *modules_of_examples("speech_to_text.data_utils"),
    because="torchaudio 2.11 lacks download_url, among others: prep_covost_data ends in an "
    "ImportError",
)
def archives_of_covost_are_read(module: PatchedModule) -> None:
    """Give torchaudio these functions in a program that has imported it before this module."""
    torchaudio = sys.modules.get("torchaudio")
    if torchaudio is None:
        return
    try:
        import torchaudio.datasets.utils as archives
    except (ImportError, OSError):  # OSError: a torchaudio for another torch
        return
    for owner, function in (
        (archives, download_url),
        (archives, extract_archive),
        (torchaudio, info),
    ):
        if not hasattr(owner, function.__name__):
            setattr(owner, function.__name__, function)


def download_url(
    url: str, download_folder: str, filename: str | None = None, hash_value: str | None = None
) -> None:
    """Write what a URL names into a folder; the file is there when it is whole.

    Args:
        filename: its name, by default that of the URL.
        hash_value: SHA-256 of the file, or its beginning; None for a file that is not checked.

    Raises RuntimeError if the sum differs, and urllib's errors.
    """
    import torch

    path = os.path.join(download_folder, filename or os.path.basename(url))
    torch.hub.download_url_to_file(url, path, hash_prefix=hash_value)


def extract_archive(from_path: str, to_path: str | None = None) -> None:
    """Extract a tar file, by default where it is; Python that can refuses paths that lead out."""
    folder = os.path.dirname(from_path) if to_path is None else to_path
    options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(from_path) as archive:
        archive.extractall(folder, **options)


def info(path: str) -> SimpleNamespace:
    """Return sample_rate, num_frames and num_channels of a recording.

    Raises RuntimeError if it cannot be read, and ImportError without soundfile.
    """
    try:
        import soundfile
    except ImportError as error:
        raise ImportError("Please install soundfile: pip install soundfile") from error
    header = soundfile.info(path)
    return SimpleNamespace(
        sample_rate=header.samplerate, num_frames=header.frames, num_channels=header.channels
    )
