"""Docstrings as Markdown: an extension of griffe, which reads them for the pages of the API."""

import re
from typing import Any

from griffe import Extension, Object


class MarkdownDocstrings(Extension):
    """Takes the second colon of ``::`` away, reStructuredText's sign of a block that follows."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of a module, class or function once it was read."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"(?m)::$", ":", obj.docstring.value)
