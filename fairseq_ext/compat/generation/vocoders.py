"""Waveforms from units of speech."""

from __future__ import annotations

import functools
from typing import Any

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.models.text_to_speech.vocoder",
    because="fairseq 0.12.2: CodeHiFiGANVocoder makes one recording of the units of a batch, and "
    "changes the dictionary that it is called with",
)
def units_are_of_a_recording(module: PatchedModule) -> None:
    """Refuse units of several recordings; leave the caller's dictionary as it is."""
    vocoder = module.CodeHiFiGANVocoder
    stock = vocoder.forward

    @functools.wraps(stock)
    def forward(self: Any, x: dict[str, Any], dur_prediction: bool = False) -> Any:
        """Return the waveform (samples,) of units (T,) or (1, T); ValueError for others."""
        units = x.get("code")
        if units is not None and units.dim() > 1 and len(units) != 1:
            raise ValueError(
                f"CodeHiFiGANVocoder: units of {len(units)} recordings are not allowed; call it "
                "for each alone"
            )
        return stock(self, dict(x), dur_prediction)

    vocoder.forward = forward
