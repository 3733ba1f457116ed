"""Files of text that a program leaves open are written when it ends."""

from __future__ import annotations

import atexit
import gc
import io

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq.options",
    because="errors of omegaconf 2.3, which fairseq catches where an option is missing, hold the "
    "program in a cycle, and Python may close a file before its text is flushed: what "
    "textless_nlp/gslm/ulm/sample writes, a file that it does not close, is empty",
)
def open_files_are_flushed(module: PatchedModule) -> None:
    """Flush open files at the end of the process, while all of them are whole."""
    atexit.register(flush_open_files)


def flush_open_files() -> None:
    """Flush each open file of text; one that cannot be written stays as it is."""
    for file in gc.get_objects():
        # the type itself: isinstance() would run code of proxies
        if type(file) is io.TextIOWrapper and not file.closed and file.writable():
            try:
                file.flush()
            except (OSError, ValueError):
                continue
