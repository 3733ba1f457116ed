"""What the recipes share: command lines and how they run, raw text, subwords, scores, tables.

A script of a recipe is run as `python examples/SYSTEM/NAME.py`; the line

    sys.path.append(str(Path(__file__).resolve().parents[1]))

before its first import from here lets it find this package. The experiments of examples/dual are
run by examples/run.py instead.
"""


class RecipeError(ValueError):
    """A problem that the user can solve; the message names the file or option and the remedy."""
