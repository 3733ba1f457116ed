"""Words under which the search finds a page, beside those of its text.

They are stored as tags of the index, with a weight of their own in mkdocs.yml. An option is found
where a table or a list explains it: its words, such as "one" and "way", are on many pages.
"""

import json
import re
from pathlib import Path
from typing import Dict, List

# {page: subjects that readers call by these names}, as in the index of a book
SUBJECTS = {
    "duo.html": ["attention"],
    "few-pairs.html": ["back-translation", "low resource"],
    "monolingual.html": ["back-translation", "semi-supervised"],
    "multiway.html": ["attention", "multilingual"],
    "schedules.html": ["multilingual"],
    "serving.html": ["attention", "REST API"],
    "results/zero-resource.html": ["zero-shot"],
}
# a heading with its anchor, or options at the beginning of a row or of an item
_HEADING_OR_OPTIONS = re.compile(
    r'<h[1-6][^>]* id="([^"]+)"'
    r"|(?:<tr>\s*<td[^>]*>|<li>\s*(?:<p>)?)((?:(?:, | or )?<code>--[\w-]+[^<]*</code>)+)"
)


def explained_options(html: str) -> Dict[str, List[str]]:
    """Return {anchor: options that tables and lists below this heading begin with}."""
    anchor, options = "", {}  # type: str, Dict[str, List[str]]
    for heading, beginning in _HEADING_OR_OPTIONS.findall(html):
        if heading:
            anchor = heading
        else:
            options.setdefault(anchor, []).extend(re.findall(r"--[\w-]+", beginning))
    return options


def add_tags(index: Path, explained: Dict[str, List[str]]) -> None:
    """Write subjects and options into the search index.

    Args:
        index: the file `search_index.json` of the built site
        explained: {location of a page or of a section: options}
    """
    content = json.loads(index.read_text(encoding="utf-8"))
    for entry in content["docs"]:
        location = entry["location"]
        words = [*SUBJECTS.get(location, ()), *explained.get(location, ())]
        if words:
            entry["tags"] = [*entry.get("tags", ()), *words]
    index.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
