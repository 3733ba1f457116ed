"""Speech models that do not train as they are in fairseq 0.12.2."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from fairseq_ext.compat.data.speech_tasks import decoders_know_the_size_of_speech


@pytest.mark.parametrize("batch_targets", [True, False])
def test_seq2seq_targets_are_batched(batch_targets):
    from fairseq.data import AddTargetDataset, ListDataset
    from fairseq.data.text_compressor import TextCompressionLevel, TextCompressor

    class Waves(ListDataset):
        def collater(self, samples):
            return {"id": torch.tensor([s["id"] for s in samples]), "net_input": {}}

    waves = Waves([{"id": 0}, {"id": 1}], [1, 1])
    dataset = AddTargetDataset(
        waves,
        [TextCompressor(TextCompressionLevel.none).compress(text) for text in ("4 5 6", "7")],
        pad=1,
        eos=2,
        batch_targets=batch_targets,
        process_label=lambda text: torch.tensor([int(word) for word in text.split()]),
        add_to_input=True,
        text_compression_level=TextCompressionLevel.none,
    )
    batch = dataset.collater([dataset[0], dataset[1]])
    previous = batch["net_input"]["prev_output_tokens"]
    if batch_targets:
        assert previous.tolist() == [[2, 4, 5, 6], [2, 7, 1, 1]]
        assert batch["target"].tolist() == [[4, 5, 6, 2], [7, 2, 1, 1]]
    else:
        assert [tokens.tolist() for tokens in previous] == [[2, 4, 5, 6], [2, 7]]


@pytest.mark.parametrize(
    "arch, task", [("s2t_conformer", "speech_to_text"), ("s2ut_conformer", "speech_to_speech")]
)
def test_options_of_conformers_are_numbers(arch, task):
    from fairseq import options

    words = ["data", "--task", task, "--arch", arch, "--depthwise-conv-kernel-size", "5"]
    parsed = options.parse_args_and_arch(options.get_training_parser(), words)
    assert parsed.depthwise_conv_kernel_size == 5
    assert getattr(parsed, "input_feat_per_channel", 80) == 80
    parsed = options.parse_args_and_arch(options.get_training_parser(), words[:-2])
    assert parsed.depthwise_conv_kernel_size == 31


def test_figures_become_arrays():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from fairseq.tasks.text_to_speech import plot_tts_output

    spectrum = torch.rand(8, 12)
    pixels = plot_tts_output(
        [spectrum, spectrum], ["a", "b"], torch.rand(12), "c", (6, 2), ret_np=True
    )
    height, width, colours = pixels.shape
    assert (colours, pixels.dtype.name) == (3, "uint8") and width == 3 * height
    assert pixels.min() < 50 and pixels.max() == 255


@pytest.mark.parametrize("projected, size", [(False, 12), (True, None)])
def test_decoders_know_the_size_of_speech(projected, size):
    """The states of wav2vec 2.0 are projected to the decoder's size, or left as they are."""
    encoder = SimpleNamespace(embedding_dim=12)
    wave_model = SimpleNamespace(w2v_model=SimpleNamespace(encoder=encoder))

    class Model:
        @classmethod
        def build_encoder(cls, args):
            return SimpleNamespace(w2v_encoder=wave_model)

    decoders_know_the_size_of_speech(SimpleNamespace(XMTransformerModel=Model))
    args = SimpleNamespace(adaptor_proj=False, encoder_proj=projected)
    Model.build_encoder(args)
    assert getattr(args, "encoder_embed_dim", None) == size


@pytest.mark.parametrize(
    "lines, standardised, warnings",
    [
        ("use_audio_input: true\nstandardize_audio: false", False, 0),
        ("use_audio_input: true\nstandardize_audio: true", True, 0),
        ("use_audio_input: true", True, 1),  # what models of stock have seen
        ("standardize_audio: true", False, 0),
    ],
)
def test_waveforms_are_standardised_as_asked(lines, standardised, warnings, tmp_path, caplog):
    from fairseq.data.audio.data_cfg import S2TDataConfig

    (tmp_path / "config.yaml").write_text(lines)
    config = S2TDataConfig(tmp_path / "config.yaml")
    assert config.standardize_audio is standardised
    assert caplog.text.count("waveforms are standardised") == warnings


def test_deltas_have_their_window(monkeypatch, caplog):
    """The formula of torchaudio: a slope, sum_n n (c[t+n] - c[t-n]) / (2 sum_n n^2)."""
    from fairseq.data.audio.feature_transforms.delta_deltas import DeltaDeltas

    def slopes(values, win_length=5):
        reach = win_length // 2
        padded = np.pad(np.asarray(values), ((0, 0), (reach, reach)), mode="edge")
        steps = np.arange(-reach, reach + 1)
        frames = range(np.shape(values)[1])
        sums = [padded[:, frame : frame + win_length] @ steps for frame in frames]
        return torch.tensor(np.array(sums).T / (steps**2).sum())

    functional = ModuleType("torchaudio.functional")
    functional.compute_deltas = slopes
    monkeypatch.setitem(sys.modules, "torchaudio", ModuleType("torchaudio"))
    monkeypatch.setitem(sys.modules, "torchaudio.functional", functional)
    spectrogram = np.random.RandomState(1).rand(9, 3)
    for config, window in ((None, 5), ({"win_length": 3}, 3), ({"win_length": 7}, 7)):
        deltas = slopes(spectrogram.T, window)
        expected = np.vstack([spectrogram.T, deltas, slopes(deltas, window)]).T
        np.testing.assert_allclose(DeltaDeltas.from_config_dict(config)(spectrogram), expected)
    assert [record.args for record in caplog.records] == [(3, 5), (7, 5)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_labels_end_with_their_line(end, tmp_path):
    from fairseq.data.audio.hubert_dataset import HubertDataset

    texts = ["\u00e4 \u00f6 \u00fc |", "b c |", "too short |", "\u20ac e |"]
    sizes = [400, 800, 1, 600]
    rows = "".join(f"{row}.wav\t{size}\n" for row, size in enumerate(sizes))
    (tmp_path / "train.tsv").write_text(f"{tmp_path}\n{rows}")
    (tmp_path / "train.ltr").write_bytes("".join(text + end for text in texts).encode())
    options = dict(sample_rate=16000, label_rates=[-1.0], pad_list=[1], eos_list=[2])
    options.update(min_keep_sample_size=2, label_processors=[str.split])
    for stored in (True, False):
        dataset = HubertDataset(
            tmp_path / "train.tsv",
            label_paths=[tmp_path / "train.ltr"],
            store_labels=stored,
            **options,
        )
        labels = [dataset.get_labels(index) for index in range(3)]
        assert labels == [[texts[row].split()] for row in (0, 1, 3)]
