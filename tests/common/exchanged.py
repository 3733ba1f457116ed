"""Data folders whose dictionary is another one of the same size."""

import shutil


def with_two_words_exchanged(data, copy, *langs):
    """A copy of a data folder; dict.LANG.txt of the languages have their first two lines swapped.

    Without a language, dict.txt.
    """
    shutil.copytree(data, copy)
    for lang in langs or ("",):
        path = copy / f"dict.{lang}.txt".replace("..", ".")
        first, second, *more = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join([second, first, *more]), encoding="utf-8")
    return copy
