"""The scripts that prepare speech (fairseq_ext/compat/examples/speech_manifests.py)."""

import csv
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fairseq_ext.compat.examples import speech_manifests


def test_vocabularies_see_lines_that_are_not_written_yet():
    texts = []
    module = SimpleNamespace(gen_vocab=lambda path, *rest: texts.append(path.read_text()))
    speech_manifests.vocabularies_see_the_whole_text(module)
    with NamedTemporaryFile(mode="w") as file:
        file.write("last\n")
        module.gen_vocab(Path(file.name), "prefix")
    assert texts == ["last\n"]


def test_manifests_are_what_fairseq_reads(tmp_path):
    rows = [("a", 'he said "no" \\ or', 5), ("b", "one\ttwo\nthree", float("nan"))]
    table = SimpleNamespace(
        columns=["id", "tgt_text", "n"], itertuples=lambda index, name: iter(rows)
    )
    module = SimpleNamespace()
    speech_manifests.manifests_are_verbatim(module)
    module.save_df_to_tsv(table, tmp_path / "a.tsv")
    with open(tmp_path / "a.tsv", encoding="utf-8") as file:
        lines = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert [line["tgt_text"] for line in lines] == [rows[0][1], "one two three"]
    assert [line["n"] for line in lines] == ["5", ""]


@pytest.fixture
def statistics():
    """A module with the patched statistics, whose features are there already."""
    module = SimpleNamespace(extract_fbank_features=lambda *args: None)
    speech_manifests.global_statistics_are_exact(module)
    return module


def test_statistics_of_many_frames(statistics):
    # float32 stops counting at 2^24 frames of one size
    frames = np.full((1 << 22, 1), 12, dtype="float32")
    stats = statistics.cal_gcmvn_stats([frames] * 8 + [np.full((1, 1), 3, dtype="float32")])
    np.testing.assert_allclose(stats["mean"], 12, atol=1e-4)
    assert stats["mean"].dtype == stats["std"].dtype == "float32"


def test_statistics_are_those_of_numpy(statistics):
    parts = [np.random.default_rng(1).normal(5, 2, (n, 3)).astype("float32") for n in (7, 400)]
    stats, frames = statistics.cal_gcmvn_stats(parts), np.concatenate(parts)
    np.testing.assert_allclose(stats["mean"], frames.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(stats["std"], frames.std(axis=0), rtol=1e-5)


def test_features_of_an_earlier_run(statistics, tmp_path):
    features = np.ones((2, 3), dtype="float32")
    np.save(tmp_path / "a.npy", features)
    answer = statistics.extract_fbank_features(None, 16000, tmp_path / "a.npy")
    np.testing.assert_array_equal(answer, features)


def test_spectra_of_speaker_embeddings():
    module = SimpleNamespace(torch=torch)
    speech_manifests.speaker_embeddings_are_computed(module)
    waveform, window = torch.randn(1, 400), torch.hann_window(64)
    parts = module.torch.stft(waveform, n_fft=64, hop_length=16, win_length=64, window=window)
    expected = torch.stft(
        waveform, n_fft=64, hop_length=16, win_length=64, window=window, return_complex=True
    )
    torch.testing.assert_close(parts.norm(dim=-1), expected.abs())


@pytest.mark.parametrize("package", ["examples.speech_to_text.data_utils"])
def test_examples_are_imported_before_fairseq(package, run, tmp_path):
    # such a script begins with another package, so that nothing has imported fairseq
    code = f"import importlib.util as u; print(u.find_spec({package!r}).origin)"
    assert run(sys.executable, "-c", code, cwd=tmp_path).rstrip().endswith("data_utils.py")


@pytest.mark.parametrize(
    "path, limits", [("x/flac.zip:1:2", (800, 480000)), ("x/fbank80.zip:1:2", (5, 3000))]
)
def test_limits_are_in_the_unit_of_the_manifest(path, limits):
    calls = []
    module = SimpleNamespace(filter_manifest_df=lambda *values: calls.append(values))
    speech_manifests.recordings_are_filtered_by_time(module)
    module.filter_manifest_df({"audio": [path]}, is_train_split=True)
    assert calls[0][1:] == (True, None, *limits)
