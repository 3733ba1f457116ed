"""A small grammar that says the same sentence in several languages.

``lexicon`` holds the words, ``meaning`` draws language-independent sentences from a seeded random
generator, and one module per language (``english``, ``german``, ``invented``) turns a sentence
into words.  ``LANGUAGES`` maps a language code to its ``realise(sentence) -> str`` function.
"""

from . import english, german, invented
from .meaning import sample_sentence

LANGUAGES = {"en": english.realise, "de": german.realise, "qaa": invented.realise}

__all__ = ["LANGUAGES", "sample_sentence"]
