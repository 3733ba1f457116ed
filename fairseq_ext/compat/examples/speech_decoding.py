"""The decoders of examples/speech_recognition, which wav2vec's scripts use as well."""

from __future__ import annotations

import functools
import os
from types import SimpleNamespace
from typing import Any

from ..imported_examples import modules_of_examples
from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch, since

# the folder of fairseq's configurations, as scripts of a clone name it
CONFIGURATIONS = os.path.join("fairseq", "config")


@patch(
    *modules_of_examples("speech_recognition.w2l_decoder"),
    because="fairseq 0.12.2: without flashlight, the Viterbi decoder of infer and w2vu_generate "
    "ends in a NameError",
)
def best_paths_need_no_flashlight(module: PatchedModule) -> None:
    """Take the most probable symbol of each frame: the best path of a model with CTC."""
    if hasattr(module, "CpuViterbiPath"):
        return

    def decode(self: Any, emissions: Any) -> list[list[dict[str, Any]]]:
        # emissions: (B, T, V); there are no transitions between symbols
        paths = emissions.argmax(dim=-1)  # (B, T)
        return [[{"tokens": self.get_tokens(path.tolist()), "score": 0}] for path in paths]

    module.CriterionType = SimpleNamespace(CTC="CTC")
    module.W2lViterbiDecoder.decode = decode


@patch(
    *modules_of_examples("speech_recognition.infer"),
    because="numpy 1.24 makes no array of rows of different lengths: --dump-emissions of infer "
    "ends in a ValueError",
    conditions=[since("numpy", 1, 24)],
)
def emissions_of_any_length_are_written(module: PatchedModule) -> None:
    """Write such rows as an array of objects, which --load-emissions reads."""
    import numpy

    def save(file: Any, rows: Any, *values: Any, **options: Any) -> None:
        try:
            array = numpy.asarray(rows)
        except ValueError:  # lengths differ
            array = numpy.empty(len(rows), dtype=object)
            for place, row in enumerate(rows):
                array[place] = row
        numpy.save(file, array, *values, **options)

    overlay_names(module, "np", save=save)


@patch(
    "hydra.main",
    because="the archive of fairseq 0.12.2 on PyPI has its configurations in another place than a "
    "clone: w2vu_generate ends with 'Primary config directory not found'",
)
def configurations_of_an_installation_are_found(module: PatchedModule) -> None:
    """Look for fairseq/config beside the examples too."""
    stock = module.main

    @functools.wraps(stock)
    def main(*values: Any, **options: Any) -> Any:
        path = values[0] if values else options.get("config_path")
        if not (isinstance(path, str) and os.path.normpath(path).endswith(CONFIGURATIONS)):
            return stock(*values, **options)
        asked: str = path

        def decorated(function: Any) -> Any:
            folder = installed_folder(asked, function)
            if values:
                return stock(folder, *values[1:], **options)(function)
            return stock(**{**options, "config_path": folder})(function)

        return decorated

    module.main = main


def installed_folder(path: str, function: Any) -> str:
    """Return a folder of configurations, relative to the file of a program.

    Args:
        path: such a folder. One that does not exist is looked for one level higher: the examples
            of an installation are in the package.
        function: what the program decorates with hydra.main.
    """
    program = os.path.dirname(os.path.abspath(function.__globals__.get("__file__") or ""))
    folder = os.path.normpath(os.path.join(program, path))
    higher = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(folder))), CONFIGURATIONS)
    is_there = os.path.isdir(folder) or not os.path.isdir(higher)
    return path if is_there else os.path.relpath(higher, program)
