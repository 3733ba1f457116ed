"""The files that fairseq's commands log to: --log-file, and preprocess.log of a data folder.

fairseq opens such a file for a command and never closes it. It opens --log-file once more in every
epoch, so that each line of the n-th epoch is written n times. In a process that runs two commands,
from Python, the second writes to the file of the first too, and ends in a FileNotFoundError where
the folder of the first is gone.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from typing import Any, Iterator

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_within


@patch(
    "fairseq.logging.progress_bar",
    because="fairseq 0.12.2 opens --log-file in every epoch: a line of epoch n is there n times",
)
def log_file_has_each_line_once(module: PatchedModule) -> None:
    """Let the progress bar open a log file that is open already no second time."""
    stock = module.progress_bar

    @functools.wraps(stock)
    def progress_bar(
        iterator: Any,
        log_format: str | None = None,
        log_interval: int = 100,
        log_file: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if log_file is not None and is_open(module.logger, log_file):
            log_file = None
        return stock(iterator, log_format, log_interval, log_file, *args, **kwargs)

    module.progress_bar = progress_bar


@patch(
    "fairseq_cli.train",
    "fairseq_cli.preprocess",
    because="fairseq 0.12.2 leaves log files open: the process's next command writes there too",
)
def log_files_are_closed(module: PatchedModule) -> None:
    """Close the command's log files at its end."""

    @contextlib.contextmanager
    def closing_files(*args: Any, **kwargs: Any) -> Iterator[None]:
        bars = logging.getLogger("fairseq.logging.progress_bar")
        with new_handlers_are_closed(module.logger), new_handlers_are_closed(bars):
            yield

    call_within(module, "main", closing_files)


def is_open(logger: logging.Logger, path: str) -> bool:
    """Return True if the logger writes to the file."""
    return any(
        isinstance(handler, logging.FileHandler) and handler.baseFilename == os.path.abspath(path)
        for handler in logger.handlers
    )


@contextlib.contextmanager
def new_handlers_are_closed(logger: logging.Logger) -> Iterator[None]:
    """Close and remove the file handlers that the logger gets within the block."""
    before = list(logger.handlers)
    try:
        yield
    finally:
        for handler in list(logger.handlers):
            if isinstance(handler, logging.FileHandler) and handler not in before:
                logger.removeHandler(handler)
                handler.close()
