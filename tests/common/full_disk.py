"""A disk that is full, for files that are written: a limit of this process, which root has too."""

import contextlib
import resource


@contextlib.contextmanager
def largest_file(size):
    """Let no file grow beyond some bytes; writes fail with errno EFBIG, as ENOSPC elsewhere."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
