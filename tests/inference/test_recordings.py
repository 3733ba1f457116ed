"""Wav files are read as ``fairseq-ext filter-banks`` reads them."""

import re
import wave
from types import SimpleNamespace

import numpy as np
import pytest
from options.systems import SYSTEMS
from twin.recordings import RATE

import fairseq_ext
from fairseq_ext.inference.recordings import features_of


def write(path, channels=1, width=2, rate=RATE, samples=4000):
    noise = np.random.default_rng(3).integers(0, 255, samples * channels * width, dtype=np.uint8)
    with wave.open(str(path), "wb") as stream:
        stream.setparams((channels, width, rate, 0, "NONE", ""))
        stream.writeframes(noise.tobytes())
    return path


@pytest.fixture(scope="module")
def model(data, checkpoint_of):
    return fairseq_ext.load(checkpoint_of("twin_speech_lstm"), data["speech"])


def test_features_are_those_of_the_training(model, data):
    """Those that the preparation stored, of the same recordings."""
    folder = data["speech"]
    stored = {path.stem: path for path in folder.rglob("*.npy")}
    recordings = sorted(folder.parent.glob("train*.wav"))[:4]
    assert len(recordings) == 4
    for path in recordings:
        assert np.array_equal(features_of(path, model.task), np.load(stored[path.stem]))
    results = model.translate(recordings, max_len_b=6)
    again = model.translate([stored[path.stem] for path in recordings], max_len_b=6)
    assert [r.text for r in results] == [r.text for r in again]
    assert all(r.error is None and r.source_tokens == [] for r in results)
    for result, other in zip(results, again):
        assert result.hypotheses[0].token_scores == pytest.approx(other.hypotheses[0].token_scores)
        weights = result.hypotheses[0].attention
        assert weights is None or np.allclose(weights.sum(axis=1), 1, atol=1e-4)


WRONG = {
    "rate": ({"rate": 8000}, "has 1 channels of 16 bits at 8000 Hz; allowed: .* at 4000 Hz"),
    "stereo": ({"channels": 2}, "has 2 channels of 16 bits"),
    "24 bit": ({"width": 3}, "has 1 channels of 24 bits"),
    "8 bit": ({"width": 1}, "has 1 channels of 8 bits"),
    "empty": ({"samples": 0}, "samples"),
    "short": ({"samples": 20}, "samples"),
}


def test_recordings_that_cannot_be_used_are_named(model, tmp_path):
    """Each has its answer; the others are translated."""
    files = [write(tmp_path / f"{name}.wav", **options) for name, (options, _) in WRONG.items()]
    (tmp_path / "text.wav").write_text("no recording")
    (tmp_path / "nothing.wav").touch()
    whole = write(tmp_path / "cut.wav").read_bytes()
    (tmp_path / "cut.wav").write_bytes(whole[:-101])
    files += [tmp_path / name for name in ("text.wav", "nothing.wav", "cut.wav", "absent.wav")]
    messages = [message for _, message in WRONG.values()]
    messages += ["is no PCM wav file"] * 2 + ["ends within a sample|ends after", "there is no"]
    results = model.translate([*files, write(tmp_path / "good.wav")], max_len_b=4)
    for file, result, message in zip(files, results, messages):
        assert result.error is not None, file
        assert file.name in result.error and re.search(message, result.error)
        assert result.text == "" and result.hypotheses[0].score == -np.inf
    assert results[-1].error is None


def test_data_without_settings_are_named(tmp_path):
    with pytest.raises(ValueError, match="config.yaml of the data has no settings filter_banks"):
        features_of(tmp_path / "a.wav", SimpleNamespace(data_cfg=SimpleNamespace(config={})))


def test_scores_of_recordings(model, data):
    files = sorted(data[SYSTEMS["twin_speech_lstm"].data].rglob("*.npy"))[:3]
    results = model.translate(files, max_len_b=6)
    texts = [result.text for result in results]
    for score, result in zip(model.score(files, texts), results):
        if score.tokens == result.hypotheses[0].tokens:
            assert score.score == pytest.approx(result.hypotheses[0].score, abs=1e-4)
