"""Reviews of the Large Movie Review Dataset (Maas et al., 2011) as tokens.

A token is a run of letters and digits, with apostrophes inside, or one other sign; all in lower
case; the mark-up <br /> is dropped.
"""

import random
import re
import tarfile

from recipe_tools import RecipeError

MEMBER = re.compile(r"(?:.*/)?(train|test)/(neg|pos)/(\d+)_\d+\.txt")
TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[^\w\s]|_")
BREAK = re.compile(r"<br\s*/?>")
SEED = 1


def tokens(review, count):
    """Return the first `count` tokens of a review (0 = all), as one line."""
    words = TOKEN.findall(BREAK.sub(" ", review.lower()))
    return " ".join(words[: count or None])


def read_reviews(archive, count):
    """Return {"train", "test": [(number, label, line)]}, in the order of label and number.

    Raises RecipeError for what is no such archive, and for a review without words, by its name.
    """
    splits = {"train": [], "test": []}
    try:
        with tarfile.open(archive) as members:
            for member in members:
                match = MEMBER.fullmatch(member.name)
                if not match:
                    continue
                split, label, number = match.groups()
                line = tokens(members.extractfile(member).read().decode("utf-8"), count)
                if not line:
                    raise RecipeError(f"{archive}: {member.name} has no words")
                splits[split].append((int(number), label, line))
    except (tarfile.TarError, EOFError, UnicodeDecodeError) as error:
        raise RecipeError(f"RAW {archive}: {error}") from error
    for split, reviews in splits.items():
        if not reviews:
            raise RecipeError(f"RAW {archive}: it has no {split}/pos/*.txt and {split}/neg/*.txt")
        reviews.sort(key=lambda review: (review[1], review[0]))
    return splits


def split_off(reviews, count):
    """Return `count` random reviews, and the others; the order is random but always the same.

    Raises RecipeError where none would be left.
    """
    if not 0 < count < len(reviews):
        raise RecipeError(f"[data] valid = {count}: allowed: 1 to {len(reviews) - 1}")
    mixed = random.Random(SEED).sample(reviews, len(reviews))
    return mixed[:count], mixed[count:]
