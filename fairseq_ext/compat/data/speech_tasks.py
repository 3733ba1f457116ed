"""Speech models of fairseq that cannot be trained as they are in 0.12.2."""

from __future__ import annotations

import argparse
import functools
from typing import Any

from ..patch_registry import PatchedModule, patch

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
