"""Speech models of fairseq that cannot be trained as they are in 0.12.2."""

from __future__ import annotations

import argparse
import functools
import itertools
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    import numpy as np
    from fairseq.data.audio.data_cfg import S2TDataConfig
    from fairseq.data.audio.feature_transforms.delta_deltas import DeltaDeltas
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)
STOCK_WINDOW = 5  # frames
# options of conformers that are numbers and declared without a type
NUMBERS = ("--input-feat-per-channel", "--depthwise-conv-kernel-size", "--input-channels")


@patch(
    "fairseq.data.add_target_dataset",
    because="fairseq 0.12.2: audio_finetuning of wav2vec_seq2seq fails with \"'list' object has no "
    "attribute 'long'\"",
)
def seq2seq_targets_are_batched(module: PatchedModule) -> None:
    """Put the words that the decoder reads into one tensor, as the targets are."""
    dataset_class = module.AddTargetDataset
    stock = dataset_class.collater

    def collater(self: Any, samples: list[dict[str, Any]]) -> dict[str, Any]:
        batch = stock(self, samples)
        previous = batch.get("net_input", {}).get("prev_output_tokens")
        if self.batch_targets and isinstance(previous, list):
            batch["net_input"]["prev_output_tokens"] = module.data_utils.collate_tokens(
                previous, pad_idx=self.pad, left_pad=False
            )
        return batch

    dataset_class.collater = collater


@patch(
    "fairseq.models.speech_to_text.s2t_conformer",
    "fairseq.models.speech_to_speech.s2s_conformer",
    because="fairseq 0.12.2: --depthwise-conv-kernel-size and others of conformers are read as "
    "text: 'unsupported operand type(s) for -: 'str' and 'int''",
)
def options_of_conformers_are_numbers(module: PatchedModule) -> None:
    """Read the options of NUMBERS as integers."""
    is_text = module.__name__.endswith("s2t_conformer")
    model = module.S2TConformerModel if is_text else module.S2UTConformerModel
    add = model.add_args

    def add_args(parser: argparse.ArgumentParser) -> None:
        add(parser)
        for name in NUMBERS:
            action = parser._option_string_actions.get(name)
            if action is not None:
                action.type = int

    model.add_args = staticmethod(add_args)


@patch(
    "fairseq.tasks.text_to_speech",
    because="numpy 2.3 and matplotlib 3.10 dropped what fairseq turns a figure into an array with: "
    "--eval-inference of text_to_speech fails with --tensorboard-logdir",
)
def figures_become_arrays(module: PatchedModule) -> None:
    """Read the pixels of a figure as matplotlib gives them today."""
    import numpy as np

    def save_figure_to_numpy(fig: Any) -> Any:
        return np.asarray(fig.canvas.buffer_rgba())[..., :3].copy()  # without transparency

    module.save_figure_to_numpy = save_figure_to_numpy


@patch(
    "fairseq.models.speech_to_text.xm_transformer",
    because="fairseq 0.12.2: xm_transformer without --encoder-proj and --adaptor-proj attends to "
    "states of 512 numbers, whatever size its wav2vec 2.0 has, and ends in a RuntimeError",
)
def decoders_know_the_size_of_speech(module: PatchedModule) -> None:
    """Tell the decoder the size of the states of wav2vec 2.0."""
    stock = module.XMTransformerModel.build_encoder.__func__

    @functools.wraps(stock)
    def build_encoder(cls: Any, args: Any) -> Any:
        encoder = stock(cls, args)
        if not args.adaptor_proj and not args.encoder_proj:
            args.encoder_embed_dim = encoder.w2v_encoder.w2v_model.encoder.embedding_dim
        return encoder

    module.XMTransformerModel.build_encoder = classmethod(build_encoder)


@patch(
    "fairseq.data.audio.data_cfg",
    because="fairseq 0.12.2: waveforms are standardised (use_audio_input: true) whatever the "
    "configuration of the data says of standardize_audio",
)
def waveforms_are_standardised_as_asked(module: PatchedModule) -> None:
    """Respect `standardize_audio`; where it is missing, standardise as stock does, and say so.

    Models that were trained without the line have seen standardised waveforms.
    """
    config = module.S2TDataConfig
    build = config.__init__

    @functools.wraps(build)
    def __init__(self: S2TDataConfig, yaml_path: Path) -> None:
        build(self, yaml_path)
        if self.use_audio_input and "standardize_audio" not in self.config:
            logger.warning(
                "%s: waveforms are standardised; write standardize_audio: true, or false for a "
                "new model that is to read them as they are",
                yaml_path,
            )

    def standardize_audio(self: S2TDataConfig) -> bool:
        """Whether each waveform has mean 0 and variance 1."""
        return bool(self.use_audio_input and self.config.get("standardize_audio", True))

    config.__init__, config.standardize_audio = __init__, property(standardize_audio)


@patch(
    "fairseq.data.audio.feature_transforms.delta_deltas",
    because="fairseq 0.12.2: win_length of the transform delta_deltas has no effect: the window "
    "has 5 frames",
)
def deltas_have_their_window(module: PatchedModule) -> None:
    """Compute both deltas in the window that the configuration names; warn where stock did not."""
    transform = module.DeltaDeltas
    build = transform.__init__

    @functools.wraps(build)
    def __init__(self: DeltaDeltas, win_length: int = STOCK_WINDOW) -> None:
        build(self, win_length)
        if win_length != STOCK_WINDOW:
            logger.warning(
                "delta_deltas: win_length %s is read; a model that was trained without this layer "
                "needs win_length: %s, which stock takes in any case",
                win_length,
                STOCK_WINDOW,
            )

    def __call__(self: DeltaDeltas, spectrogram: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return features, deltas and their deltas, (frames, 3 * features)."""
        from torchaudio.functional import compute_deltas

        assert len(spectrogram.shape) == 2, "spectrogram must be a 2-D tensor."
        features = module.torch.from_numpy(spectrogram).T
        deltas = compute_deltas(features, self.win_length)
        parts = [features, deltas, compute_deltas(deltas, self.win_length)]
        rows: NDArray[np.float32] = module.torch.cat(parts).T.numpy()
        return rows

    transform.__init__, transform.__call__ = __init__, __call__


@patch(
    "fairseq.data.audio.hubert_dataset",
    because="fairseq 0.12.2: a label of HuBERT with characters of several bytes has the first "
    "characters of the next recording's label at its end",
)
def labels_end_with_their_line(module: PatchedModule) -> None:
    """Read as many bytes as the line of a label has; stock reads as many characters."""
    dataset = module.HubertDataset
    stock = dataset.get_label

    def load_label_offset(label_path: str, inds: list[int], tot: int) -> list[tuple[int, int]]:
        """Return the first byte of each label of ``inds`` and of the line behind it."""
        with open(label_path, "rb") as file:
            ends = list(itertools.accumulate(len(line) for line in file))
        assert len(ends) == tot, f"number of labels does not match ({len(ends)} != {tot})"
        return [(ends[i - 1] if i else 0, ends[i]) for i in inds]

    @functools.wraps(stock)
    def get_label(self: Any, index: int, label_idx: int) -> Any:
        if self.store_labels:
            return stock(self, index, label_idx)
        start, end = self.label_offsets_list[label_idx][index]
        with open(self.label_paths[label_idx], "rb") as file:
            file.seek(start)
            label = file.read(end - start).decode("utf-8")
        return self.label_processors[label_idx](label) if self.label_processors else label

    module.load_label_offset, dataset.get_label = load_label_offset, get_label
