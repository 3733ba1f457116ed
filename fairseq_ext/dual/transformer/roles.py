"""The directions that have been trained, by the roles of their components.

A component is trained to encode by every pair that it is the source of, and to decode by every pair
that it is the target of. A direction that no pair trained is fit for use where its source has
encoded and its target has decoded in training.
"""

from typing import List

from ...streams.language_pair import LanguagePair, sides


def is_trained(pair: str, pairs: List[str]) -> bool:
    """True if training on ``pairs`` trained the encoding and the decoding role of ``pair``."""
    return has_roles(*LanguagePair.parse(pair), pairs)


def has_roles(source: str, target: str, pairs: List[str]) -> bool:
    """True if ``pairs`` trained ``source`` to encode and ``target``, another one, to decode."""
    encoders, decoders = sides(pairs)
    return source != target and source in encoders and target in decoders


def check_trained(pair: str, pairs: List[str]) -> None:
    """Raise ValueError, with the pairs, for a direction with a role that was never trained."""
    if not is_trained(pair, pairs):
        raise ValueError(
            f"direction {pair!r}: the model was trained for {', '.join(pairs)} (--one-way leaves "
            "the reverse untrained)"
        )
