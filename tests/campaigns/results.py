"""What a campaign found so far: one JSON object a line, so that a campaign cut off goes on."""

import json
import os
from pathlib import Path
from typing import Dict, List


def read(path: Path) -> List[Dict]:
    """The records of a file, oldest first; a line that was cut off is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def append(path: Path, record: Dict) -> None:
    """Add a record and flush it to the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab+") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)  # a line that was cut off
        file.write(json.dumps(record).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def into_page(page: Path, name: str, text: str) -> None:
    """Replace what stands between the markers `name` of a page."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
