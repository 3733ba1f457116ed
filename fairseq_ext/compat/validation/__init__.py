"""Validation: which sets, what is scored of them, and which score is the best."""
