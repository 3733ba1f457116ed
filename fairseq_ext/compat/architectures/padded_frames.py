"""Models of recordings leave padding out: a batch of recordings is padded to one length."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, ContextManager

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_within
from .zeros_for_padding import (
    behind,
    convolutions_in,
    number_of_frames,
    reading,
    zeros_after,
    zeros_at,
    zeros_behind,
    zeros_in_all,
)

if TYPE_CHECKING:
    from torch import Tensor


@patch(
    "fairseq.models.speech_to_text.s2t_transformer",
    because="fairseq 0.12.2: all convolutions of s2t_transformer and s2t_conformer but the first "
    "read what the one before makes of the padding, so that the last frames of a recording, and "
    "with them loss and translation, depend on the batch",
)
def subsampling_leaves_padding_out(module: PatchedModule) -> None:
    """Set the frames behind the end of a recording to zero after each convolution."""

    def forward(self: Any, src_tokens: Tensor, src_lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return frames (T', B, C) and their numbers (B,) of (B, T, D) and (B,)."""
        import torch

        x, lengths = src_tokens.transpose(1, 2).contiguous(), src_lengths  # (B, D, T)
        for conv in self.conv_layers:
            x = torch.nn.functional.glu(conv(x), dim=1)
            # a stride of 2
            lengths = torch.div(lengths - 1, 2, rounding_mode="floor") + 1
            x = zeros_after(x, lengths)
        return x.permute(2, 0, 1).contiguous(), lengths

    module.Conv1dSubsampler.forward = forward


@patch(
    "fairseq.modules.conformer_layer",
    because="fairseq 0.12.2: the convolution of a conformer reads the padding, which its other "
    "parts have filled, so that the last frames of a recording depend on the batch",
)
def conformers_leave_padding_out(module: PatchedModule) -> None:
    """Give the convolution zeros in the place of the padding."""

    def zeros(
        self: Any, x: Tensor, encoder_padding_mask: Tensor | None, *more: Any, **options: Any
    ) -> ContextManager[None]:
        if encoder_padding_mask is None:
            return contextlib.nullcontext()
        # of the layer, what looks at neighbouring frames
        convolution = self.conv_module.depthwise_conv
        return zeros_at(convolution, encoder_padding_mask.unsqueeze(1))  # (B, 1, T)

    call_within(module.ConformerEncoderLayer, "forward", zeros)


@patch(
    "fairseq.models.speech_to_text.convtransformer",
    because="fairseq 0.12.2: the second convolution of convtransformer reads what the first makes "
    "of the padding, so that the last frames of a recording depend on the batch",
)
def convolutional_transformers_leave_padding_out(module: PatchedModule) -> None:
    """Give the second convolution zeros in the place of the padding."""

    def zeros(self: Any, src_tokens: Tensor, src_lengths: Tensor) -> ContextManager[None]:
        first, _, second, _ = self.conv
        return zeros_behind([first, second], src_tokens.size(1), src_lengths)

    call_within(module.ConvTransformerEncoder, "forward", zeros)


@patch(
    "fairseq.models.speech_to_text.berard",
    because="fairseq 0.12.2: the convolutions of s2t_berard read what the layers before make of "
    "the padding, so that the last frames of a recording depend on the batch",
)
def convolutions_before_lstms_leave_padding_out(module: PatchedModule) -> None:
    """Give the convolutions zeros in the place of the padding."""

    def zeros(
        self: Any, src_tokens: Tensor, src_lengths: Tensor | None = None, **more: Any
    ) -> ContextManager[None]:
        if src_lengths is None:
            return contextlib.nullcontext()
        return zeros_behind(self.conv_layers, src_tokens.size(1), src_lengths)

    call_within(module.BerardEncoder, "forward", zeros)


@patch(
    "fairseq.models.wav2vec.wav2vec2",
    because="fairseq 0.12.2: with pos_conv_depth above 1, as in data2vec for speech, all but the "
    "first of the convolutions for positions read what the one before makes of the padding, so "
    "that the last frames of a recording depend on the batch",
)
def positions_leave_padding_out(module: PatchedModule) -> None:
    """Give the convolutions for positions zeros in the place of the padding."""

    def zeros(
        self: Any, x: Tensor, padding_mask: Tensor | None = None, *more: Any, **options: Any
    ) -> ContextManager[None]:
        """Frames (B, T, C), and where they are padding, (B, T)."""
        convolutions = convolutions_in(self.pos_conv)
        return zeros_in_all(convolutions[1:], padding_mask)  # stock does so for the first

    call_within(module.TransformerEncoder, "extract_features", zeros)


@patch(
    "fairseq.models.speech_to_text.s2t_wav_transformer",
    because="fairseq 0.12.2: the encoder of waveforms of speech_text_joint_to_text attends to what "
    "is behind the end of a recording, and its convolution for positions reads it, so that loss "
    "and translation depend on the batch",
)
def waveforms_leave_padding_out(module: PatchedModule) -> None:
    """Tell the encoder what padding is; give the convolution zeros in its place."""
    encoder = module.SpeechWavTransformerEncoder
    stock = encoder.forward

    def forward(
        self: Any,
        src_tokens: Tensor,
        src_lengths: Tensor | None,
        return_all_hiddens: bool = False,
        padding_mask: Tensor | None = None,
        features_only: bool = True,
    ) -> Any:
        """Return the encoded frames of waveforms (B, S), of which (B,) samples are no padding."""
        if padding_mask is None and src_lengths is not None:
            padding_mask = behind(src_lengths, src_tokens.size(1))
        if padding_mask is not None and not padding_mask.any():
            padding_mask = None
        with contextlib.ExitStack() as stack:
            if padding_mask is not None:
                sizes = number_of_frames(self.subsample, padding_mask.logical_not().sum(1))
                without_padding = functools.partial(zeros_after, lengths=sizes)
                stack.enter_context(reading(self.embed_positions[0], without_padding))
            return stock(
                self, src_tokens, src_lengths, return_all_hiddens, padding_mask, features_only
            )

    def _get_feat_extract_output_lengths(self: Any, samples: Tensor) -> Tensor:
        """Return numbers of frames, which stock calls and lacks."""
        return number_of_frames(self.subsample, samples)

    encoder._get_feat_extract_output_lengths = _get_feat_extract_output_lengths
    encoder.forward = forward


@patch(
    "fairseq.models.speech_to_text.xm_transformer",
    because="fairseq 0.12.2: the convolutions between wav2vec 2.0 and the decoder of "
    "xm_transformer read what is behind the end of a recording, so that its last frames, and with "
    "them loss and translation, depend on the batch",
)
def adaptors_leave_padding_out(module: PatchedModule) -> None:
    """Give each convolution zeros in the place of the padding."""
    stock = module.Conv1dAdaptor.forward

    def forward(self: Any, x: Tensor, padding_mask: Tensor | None) -> Any:
        """Return frames (T', B, C) and their padding (B, T') of (T, B, C) and (B, T)."""
        import torch

        if padding_mask is None:
            return stock(self, x, padding_mask)
        lengths = padding_mask.logical_not().sum(1)

        def without_padding(frames: Tensor) -> Tensor:
            nonlocal lengths  # a layer may be dropped
            frames = zeros_after(frames, lengths)
            lengths = torch.div(lengths - 1, self.stride, rounding_mode="floor") + 1
            return frames

        with contextlib.ExitStack() as stack:
            for layer in self.layers:
                stack.enter_context(reading(layer, without_padding))
            return stock(self, x, padding_mask)

    module.Conv1dAdaptor.forward = forward


@patch(
    "fairseq.models.hubert.hubert",
    because="fairseq 0.12.2: in a batch with a longer recording, HuBERT takes frames behind the "
    "end of a recording for its frames: it attends to them, predicts their labels, which are "
    "padding, and reads letters in them",
)
def recordings_have_their_frames(module: PatchedModule) -> None:
    """Compute the frames of a recording from its samples, as wav2vec 2.0 does."""

    def forward_padding_mask(self: Any, features: Tensor, padding_mask: Tensor) -> Tensor:
        """Return the padding (B, T) among frames (B, T, C) of samples with padding (B, S)."""
        sizes = number_of_frames(self.feature_extractor, padding_mask.logical_not().sum(1))
        return behind(sizes, features.size(1))

    module.HubertModel.forward_padding_mask = forward_padding_mask
