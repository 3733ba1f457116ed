"""Speech models of fairseq that fail, or are trained with wrong labels, as they are in 0.12.2."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from ..patch_registry import PatchedModule, patch


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
