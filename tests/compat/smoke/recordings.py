"""Made recordings, and the manifests of fairseq's speech tasks."""

import functools
import json
import wave
from pathlib import Path

import numpy as np

RATE = 16000
WORDS = ("RED", "GREEN", "BLUE")
CLIPS = {"train": 8, "valid": 4, "test": 4}
FEATURES = 80  # mel bands of a frame
SPEECH_YAML = f"vocab_filename: dict.txt\ninput_feat_per_channel: {FEATURES}\n"
SYNTHESIS_YAML = f"""
vocab_filename: dict.txt
input_feat_per_channel: {FEATURES}
features:
  type: spectrogram+melscale+log
  sample_rate: 16000
  n_fft: 256
  win_length: 256
  hop_length: 128
  window_fn: hann
  eps: 1.0e-2
  n_mels: {FEATURES}
  f_min: 0
  f_max: 8000
  pitch_min: 0.0
  pitch_max: 5.0
  energy_min: 0.0
  energy_max: 5.0
"""


class Recordings:
    """Folders of recordings that rows of the smoke runs name in braces."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.random = np.random.default_rng(5)

    def __getitem__(self, name):
        return getattr(self, name)

    def _new(self, name):
        folder = self.folder / name
        folder.mkdir(parents=True)
        return folder

    def _clips(self):
        """Yield (split, number, words) of all recordings."""
        for split, count in CLIPS.items():
            for number in range(count):
                yield split, number, [WORDS[number % 3], WORDS[(number + 1) % 3]]

    @functools.cached_property
    def waves(self):
        """Recordings, train.tsv and so on, with letters (.ltr), and units of 50 a second (.km)."""
        folder = self._new("waves")
        lines = {name: [] for split in CLIPS for name in (f"{split}.tsv", f"{split}.ltr")}
        lines.update({f"{split}.km": [] for split in CLIPS})
        for split, number, words in self._clips():
            samples = RATE // 2 + 320 * number
            write_wave(
                folder / f"clip-{split}{number}.wav", self.random.normal(size=samples) * 3000
            )
            lines[f"{split}.tsv"].append(f"clip-{split}{number}.wav\t{samples}")
            lines[f"{split}.ltr"].append(" ".join("|".join(words)) + " |")
            units = self.random.integers(0, 5, size=samples // 320)
            lines[f"{split}.km"].append(" ".join(map(str, units)))
        for name, entries in lines.items():
            first = [str(folder)] if name.endswith(".tsv") else []
            (folder / name).write_text("\n".join([*first, *entries]) + "\n", encoding="utf-8")
        letters = sorted({*"".join(WORDS), "|"})
        write_dictionary(folder / "dict.ltr.txt", letters)
        write_dictionary(folder / "dict.km.txt", range(5))
        return folder

    def _speech(self, name, audio_of, yaml=SPEECH_YAML, columns=None):
        """Make a folder with manifests in columns, the words' dictionary and config.yaml."""
        folder = self._new(name)
        header = ["id", "audio", "n_frames", "tgt_text", "speaker", *(columns or {})]
        for split in CLIPS:
            rows = ["\t".join(header)]
            for part, number, words in self._clips():
                if part == split:
                    frames = 50 + 2 * number
                    audio = audio_of(folder, f"clip-{split}{number}", frames)
                    more = [make(words, frames) for make in (columns or {}).values()]
                    entry = [f"{split}{number}", audio, frames, " ".join(words), "S", *more]
                    rows.append("\t".join(map(str, entry)))
            (folder / f"{split}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        write_dictionary(folder / "dict.txt", WORDS)
        (folder / "config.yaml").write_text(yaml, encoding="utf-8")
        return folder

    def _features(self, folder, name, frames):
        """Write a made spectrogram and return its path."""
        path = folder / f"{name}.npy"
        np.save(path, self.random.normal(size=(frames, FEATURES)).astype("float32"))
        return path

    def _recording(self, folder, name, frames):
        path = folder / f"{name}.wav"
        write_wave(path, self.random.normal(size=frames * 160) * 3000)
        return path

    @functools.cached_property
    def speech(self):
        """Spectrograms with a text."""
        return self._speech("speech", self._features)

    @functools.cached_property
    def speech_from_waves(self):
        """Recordings with a text."""
        return self._speech("speech_from_waves", self._recording)

    @functools.cached_property
    def recordings_with_text(self):
        """Recordings with a text, for models of the waveform."""
        return self._speech(
            "recordings_with_text", self._recording, SPEECH_YAML + "use_audio_input: true\n"
        )

    @functools.cached_property
    def prosody(self):
        """Units with their durations and pitches, as examples/textless_nlp/pgslm prepares them."""
        import torch

        folder = self._new("prosody")
        bins = {4: np.array([-0.1, 0.0, 0.1])}
        torch.save(bins, folder / "bins.th")
        config = {"n_units": 6, "sampling_rate": RATE, "code_hop_size": 320, "multispkr": "single"}
        config.update(f0_vq_type="naive", f0_vq_n_units=4, manifests={})
        config["f0_vq_naive_quantizer"] = {"log_mean_norm": str(folder / "bins.th")}
        for split in ("train", "valid"):
            prefix = config["manifests"][split] = str(folder / split)
            lengths = self.random.integers(4, 9, size=CLIPS[split])
            codes = self.random.integers(0, 6, size=lengths.sum())
            codes[np.cumsum(lengths) - 1] = 8  # the end of a sentence
            np.save(f"{prefix}.code.npy", codes.astype("int16"))
            np.save(f"{prefix}.dur.npy", self.random.integers(1, 5, len(codes)).astype("int16"))
            np.save(f"{prefix}.f0.npy", self.random.uniform(90, 120, len(codes)).astype("float32"))
            for name, lines in (
                ("leng", lengths),
                ("path", [f"{number}.wav" for number in range(len(lengths))]),
                ("speaker", ["S"] * len(lengths)),
            ):
                text = "".join(f"{line}\n" for line in lines)
                (folder / f"{split}.{name}.txt").write_text(text, encoding="utf-8")
            stats = {"f0_mean": 105.0, "f0_std": 9.0, "logf0_mean": 4.6, "logf0_std": 0.1}
            pitch = {name: torch.tensor(value) for name, value in stats.items()}
            torch.save({"S": pitch}, f"{prefix}.f0_stat.pt")
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return folder

    @functools.cached_property
    def synthesis(self):
        """A text with spectrograms, and durations, pitch and energy of its words."""

        def arrays(folder, name):
            def write(words, frames):
                path = self.folder / f"{name}{self.random.integers(1 << 40)}.npy"
                np.save(path, self.random.uniform(0.5, 4, size=len(words)).astype("float32"))
                return path

            return write

        def durations(words, frames):
            return f"{frames // 2} {frames - frames // 2}"

        columns = {
            "src_text": lambda words, frames: " ".join(words),
            "duration": durations,
            "pitch": arrays(self.folder, "pitch"),
            "energy": arrays(self.folder, "energy"),
        }
        return self._speech("synthesis", self._features, SYNTHESIS_YAML, columns)

    @functools.cached_property
    def units(self):
        """Spectrograms with the units of the speech in another language."""
        return self._speech_to_speech("units", lambda folder, name: "1 2 3 4 1", "")

    @functools.cached_property
    def spectrograms(self):
        """Spectrograms with those of the speech in another language."""
        return self._speech_to_speech(
            "spectrograms",
            lambda folder, name: self._features(folder, name + "t", 20),
            SYNTHESIS_YAML.replace("vocab_filename: dict.txt\n", ""),
        )

    def _speech_to_speech(self, name, target_of, yaml):
        folder = self._new(name)
        for split in CLIPS:
            rows = ["id\tsrc_audio\tsrc_n_frames\ttgt_audio\ttgt_n_frames"]
            for part, number, _ in self._clips():
                if part == split:
                    label = f"clip-{split}{number}"
                    source = self._features(folder, label, 50)
                    target = target_of(folder, label)
                    length = 5 if isinstance(target, str) else 20
                    rows.append(f"{label}\t{source}\t50\t{target}\t{length}")
            (folder / f"{split}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        text = yaml or f"input_feat_per_channel: {FEATURES}\n"
        (folder / "config.yaml").write_text(text, encoding="utf-8")
        return folder


def write_wave(path, samples):
    """Write samples of 16 bits, one channel."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(np.clip(samples, -32000, 32000).astype("<i2").tobytes())


def write_dictionary(path, symbols):
    """Write a dictionary of fairseq, each symbol once."""
    path.write_text("".join(f"{symbol} 1\n" for symbol in symbols), encoding="utf-8")
