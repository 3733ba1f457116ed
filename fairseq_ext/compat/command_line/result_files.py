"""The file of fairseq-generate --results-path: there when all of it is."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import IO, Any, Iterator

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq_cli.generate",
    because="fairseq 0.12.2: a generation that was interrupted leaves a file in --results-path, "
    "which is shorter than the set and looks like that of one which ended",
)
def result_files_are_whole(module: PatchedModule) -> None:
    """Write to NAME.part, which takes its name at the end."""

    @contextmanager
    def opened(path: str, mode: str, **options: Any) -> Iterator[IO[str]]:
        """Open the file of results, the only one that this module opens."""
        with open(f"{path}.part", mode, **options) as file:
            yield file
        os.replace(f"{path}.part", path)

    module.open = opened
