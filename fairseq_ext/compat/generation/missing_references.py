"""fairseq-generate with options that read the references, of data that have none."""

from __future__ import annotations

import functools
import traceback
from typing import TYPE_CHECKING, Any, TextIO

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig


@patch(
    "fairseq_cli.generate",
    because="fairseq 0.12.2: --prefix-size ends in a TypeError where the data have no targets",
)
def prefixes_need_references(module: PatchedModule) -> None:
    """Say that the references are missing."""
    translate = module._main

    @functools.wraps(translate)
    def _main(cfg: FairseqConfig, output_file: TextIO) -> Any:
        """Translate the set."""
        try:
            return translate(cfg, output_file)
        except TypeError as error:
            frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
            size = cfg.generation.prefix_size
            # raised by fairseq's own line, which takes the first words of no target
            is_in_loop = frames[-1].co_filename == module.__file__ and "NoneType" in str(error)
            if size <= 0 or not is_in_loop:
                raise
            raise references_missing(f"--prefix-size {size}") from error

    module._main = _main


@patch(
    "fairseq.sequence_scorer",
    because="fairseq 0.12.2: --score-reference ends in an AttributeError where the data have no "
    "targets",
)
def scores_need_references(module: PatchedModule) -> None:
    """Say that the references are missing."""
    scorer = module.SequenceScorer

    def check_references(self: Any, models: Any, sample: dict[str, Any], **options: Any) -> None:
        if sample.get("target") is None:
            raise references_missing("--score-reference")

    call_before(scorer, "generate", check_references)


def references_missing(option: str) -> OptionError:
    """Return the error of an option that reads references."""
    return OptionError(
        f"{option}: the data have no targets; allowed with binarised files of the target "
        "(SET.SRC-TGT.TGT.bin and .idx)"
    )
