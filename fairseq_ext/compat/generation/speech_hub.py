"""Text to speech in Python: whose voice it is, and what the model reads."""

from __future__ import annotations

from typing import Any

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.models.text_to_speech.hub_interface",
    because="fairseq 0.12.2: predict ignores its speaker where the configuration has one, takes "
    "the last speaker for one that is not there, and does not count </s> among the symbols",
)
def texts_have_their_speaker(module: PatchedModule) -> None:
    """Let the caller's speaker win; refuse one that is not there; count all symbols."""
    interface = module.TTSHubInterface
    stock = interface.get_model_input

    def get_model_input(
        cls: Any, task: Any, text: str, speaker: int | None = None, verbose: bool = False
    ) -> dict[str, Any]:
        """Return a batch of one text. ValueError for a speaker that is not there."""
        import torch

        sample: dict[str, Any] = stock.__func__(cls, task, text, speaker, verbose)
        inputs, voices = sample["net_input"], len(task.speaker_to_id or {})
        inputs["src_lengths"] = torch.tensor([inputs["src_tokens"].size(1)])
        if speaker is not None and voices:
            if not 0 <= speaker < voices:
                raise ValueError(f"speaker {speaker} is not there; allowed: 0 to {voices - 1}")
            sample["speaker"] = torch.tensor([[speaker]])
        return sample

    interface.get_model_input = classmethod(get_model_input)
