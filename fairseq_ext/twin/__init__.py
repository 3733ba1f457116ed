"""Twin networks: the future as a regulariser (Serdyuk et al., ICLR 2018)."""

# they register what they define
from . import captions, criterion, speech, stock  # noqa: F401
