"""The parts of the recipe that compares the dual model with two stock transformers."""


class RecipeError(ValueError):
    """A problem that the user can solve: the message names the file or option and the remedy."""
