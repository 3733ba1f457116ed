"""Twin networks: the future as a regulariser (Serdyuk et al., ICLR 2018)."""

# they register what they define
from . import caption, caption_task, criterion, lstm, speech, transformer  # noqa: F401
