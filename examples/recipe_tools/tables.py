"""Values over seeds, Markdown tables, and putting them into a page."""

from fairseq_ext.tools.evaluate_report import (  # noqa: F401  (the recipes' reports use them)
    SIGNIFICANT,
    cell,
    explained,
    rows,
    signature_list,
    spread,
)

from . import RecipeError
from .files import written
from .scores import RESAMPLES, TEST

BOOTSTRAP = explained(TEST, RESAMPLES)


def insert(text, path, name):
    """Replace what stands between the marks of `name` in the file `path`.

    Raises RecipeError unless both marks are there, once and in order.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if not path.is_file():
        raise RecipeError(f"--into {path} is not a file")
    old = path.read_text(encoding="utf-8")
    if old.count(begin) != 1 or old.count(end) != 1 or old.index(begin) > old.index(end):
        raise RecipeError(f"--into {path} must hold these lines, once each: {begin} and {end}")
    before, rest = old.split(begin)
    after = rest.split(end)[1]
    with written(path) as stream:
        stream.write(f"{before}{begin}\n\n{text}\n{end}{after}")
