"""Losses: what criteria compute, and of what."""
