"""Speech models that do not train as they are in fairseq 0.12.2."""

from types import SimpleNamespace

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
