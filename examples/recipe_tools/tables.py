"""Values over seeds, Markdown tables, and putting them into a page."""

from fairseq_ext.tools.evaluate.report import (  # noqa: F401  (the recipes' reports use them)
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


def seeds_text(seeds, runs, titles=None):
    """Return "seeds 1, 2", with ` (seed 1 only: "NAME", "NAME")` for systems of fewer seeds.

    runs: (system, seed) of every run in the tables. titles: {system: what it is called there}.
    """
    seeds_by_system, fewer = {}, {}
    for system, seed in sorted(runs, key=lambda run: run[1]):
        seeds_by_system.setdefault(system, []).append(str(seed))
    for system, system_seeds in seeds_by_system.items():
        if len(system_seeds) < len(seeds):
            name = (titles or {}).get(system, system)
            seed = "seed" if len(system_seeds) == 1 else "seeds"
            fewer.setdefault(f"{seed} {', '.join(system_seeds)} only", []).append(f'"{name}"')
    notes = "; ".join(f"{label}: {', '.join(names)}" for label, names in fewer.items())
    return f"seeds {', '.join(map(str, seeds))}{f' ({notes})' if notes else ''}"


def insert(text, path, name):
    """Replace what stands between the marks of `name` in the file `path`.

    Raises RecipeError unless both marks are there, once and in order.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if not path.is_file():
        raise RecipeError(f"--into {path} is not a file")
    old = path.read_text(encoding="utf-8")
    if old.count(begin) != 1 or old.count(end) != 1 or old.index(begin) > old.index(end):
        raise RecipeError(f"--into {path} must contain each of these lines once: {begin} and {end}")
    before, rest = old.split(begin)
    after = rest.split(end)[1]
    with written(path) as stream:
        stream.write(f"{before}{begin}\n\n{text}\n{end}{after}")
