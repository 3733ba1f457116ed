"""What wav2vec and wav2vec 2.0 learn from: the recurrence of frames, and frames to tell apart.

Dimensions: T frames, B recordings, C features, N negatives of a frame.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

from ..patch_registry import PatchedModule, patch

logger = logging.getLogger(__name__)


@patch(
    "fairseq.models.wav2vec.wav2vec",
    because="fairseq 0.12.2: the GRU of --aggregator gru runs over the recordings of a batch, so "
    "that each depends on those before it, and no frame on the frames before it",
)
def recurrences_run_over_frames(module: PatchedModule) -> None:
    """Tell each GRU that its first dimension is the batch; its parameters stay as they are."""
    model = module.Wav2VecModel
    build = model.__init__

    @functools.wraps(build)
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        import torch

        build(self, *args, **options)
        recurrences = [part for part in self.modules() if isinstance(part, torch.nn.GRU)]
        for part in recurrences:
            part.batch_first = True
        if recurrences:
            logger.warning(
                "--aggregator gru runs over the frames of a recording; for a model that was "
                "trained without this layer, where it ran over the recordings of a batch, set "
                "FAIRSEQ_EXT_COMPAT_OFF=recurrences_run_over_frames"
            )

    model.__init__ = __init__


@patch(
    "fairseq.models.wav2vec.wav2vec",
    because="fairseq 0.12.2: the negatives of wav2vec include the frame itself; with "
    "--sample-distance, those of all recordings but the first are of other recordings",
)
def negatives_are_other_frames(module: PatchedModule) -> None:
    """Draw negatives of a frame among the frames of its recording that are near, or of all."""

    def sample_negatives(self: Any, y: Any) -> Any:
        """Return (N, B, C, T) of (B, C, T); --sample-distance frames around each are near."""
        import torch

        recordings, features, frames = y.shape
        near = min(frames, self.sample_distance or frames)
        assert near > 1
        time = torch.arange(frames)
        begin = torch.arange(recordings).view(-1, 1, 1) * frames  # (B, 1, 1)
        parts = []
        if self.n_negatives > 0:
            # the window of a frame; at both ends of the recording it is not in its middle
            window = (time - near // 2).clamp(0, frames - near)
            drawn = torch.randint(near - 1, (recordings, self.n_negatives, frames))
            parts.append(begin + window + drawn + (drawn >= time - window))
        if self.cross_sample_negatives > 0:
            size = (recordings, self.cross_sample_negatives, frames)
            drawn = torch.randint(recordings * frames - 1, size)
            parts.append(drawn + (drawn >= begin + time))
        columns = torch.cat(parts, dim=1).to(y.device)  # (B, N, T)
        return y.transpose(0, 1).reshape(features, -1)[:, columns].permute(2, 1, 0, 3)

    module.Wav2VecPredictionsModel.sample_negatives = sample_negatives


@patch(
    "fairseq.models.wav2vec.wav2vec2",
    because="fairseq 0.12.2: the negatives of wav2vec 2.0 are of other recordings with "
    "precompute_mask_indices and padding, and padding with negatives_from_everywhere",
)
def negatives_are_no_padding(module: PatchedModule) -> None:
    """Draw negatives among frames that no recording of the batch lacks."""
    model = module.Wav2Vec2Model
    stock, draw = model.forward, model.sample_negatives

    def sample_negatives(self: Any, y: Any, num: Any, padding_count: int | None = None) -> Any:
        """Return negatives (N, B, num, C) of (B, T, C), and their places in what is drawn from."""
        has_padding = self.negatives_from_everywhere or module.is_xla_tensor(y)
        if padding_count and has_padding:  # else y has only frames that are masked
            y = y[:, : y.size(1) - padding_count].contiguous()
        return draw(self, y, num)

    @functools.wraps(stock)
    def forward(
        self: Any, source: Any, padding_mask: Any = None, *more: Any, **options: Any
    ) -> Any:
        if self.negatives_from_everywhere and padding_mask is not None and not more:
            sizes = padding_mask.size(1) - padding_mask.long().sum(1)
            sizes = self._get_feat_extract_output_lengths(sizes)
            (frames,) = self._get_feat_extract_output_lengths(sizes.new_tensor([source.size(1)]))
            options["padding_count"] = int(frames - sizes.min())
        return stock(self, source, padding_mask, *more, **options)

    model.forward, model.sample_negatives = forward, sample_negatives
