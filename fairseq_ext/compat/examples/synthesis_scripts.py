"""The scripts of speech_synthesis that generate and evaluate speech, run with `python -m`."""

from __future__ import annotations

import csv
import functools
from types import SimpleNamespace
from typing import Any

from ..imported_examples import modules_of_examples
from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch
from ..versions.waveforms import converted, sox_is_missing


@patch(
    *modules_of_examples("speech_synthesis.evaluation.eval_sp"),
    because="fairseq 0.12.2: the evaluations read the quotes of a text as those of a field: a text "
    "that begins with one hides the recordings up to the next",
)
def every_recording_is_evaluated(module: PatchedModule) -> None:
    """Read the list of recordings as get_eval_manifest writes it, without quoting."""

    def load_eval_spec(path: str) -> list[dict[str, str]]:
        with open(path, encoding="utf-8") as file:
            return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))

    module.load_eval_spec = load_eval_spec


@patch(
    *modules_of_examples("speech_synthesis.generate_waveform"),
    because="torchaudio 2.11 has no sox_effects: generate_waveform ends in an AttributeError with "
    "another --output-sample-rate",
    conditions=[sox_is_missing],
)
def generated_speech_has_any_rate(module: PatchedModule) -> None:
    """Resample with torchaudio.functional."""

    def apply_effects_tensor(waveform: Any, rate: int, effects: list[list[str]]) -> Any:
        ((_, other_rate),) = effects  # [["rate", "16000"]]
        return converted(waveform, rate, to_sample_rate=int(other_rate))

    sox_effects = SimpleNamespace(apply_effects_tensor=apply_effects_tensor)
    overlay_names(module, "torchaudio", sox_effects=sox_effects)


@patch(
    *modules_of_examples("speech_synthesis.generate_waveform"),
    because="fairseq 0.12.2: generate_waveform --dump-attentions ends in an AttributeError",
)
def attentions_are_dumped(module: PatchedModule) -> None:
    """Give dump_result the attention as the tensor that it takes."""
    import numpy
    import torch

    stock = module.dump_result

    @functools.wraps(stock)
    def dump_result(*values: Any) -> None:
        attention = values[5]  # (S, T)
        if isinstance(attention, numpy.ndarray):
            attention = torch.from_numpy(attention)
        stock(*values[:5], attention, *values[6:])

    module.dump_result = dump_result
