"""Scores of translations, with intervals and tests of differences."""
