"""The file of fairseq-generate --results-path: there when all of it is."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import IO, Any, Iterator

from ..atomic_files import flush, incomplete, names_output
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
        part = f"{path}.part"
        try:
            with names_output(path, part):
                with open(part, mode, **options) as file:
                    incomplete.append(file)
                    try:
                        yield file
                    finally:
                        incomplete.remove(file)
                flush(part)
                os.replace(part, path)
        finally:
            with suppress(OSError):
                # an error before the first line, such as that of a missing checkpoint
                if not os.path.getsize(part):
                    os.unlink(part)

    module.open = opened
