"""Twin networks: the future as a regulariser (Serdyuk et al., ICLR 2018)."""

from . import criterion, lstm, transformer  # noqa: F401  (they register what they define)
