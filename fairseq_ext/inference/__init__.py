"""Trained models in Python: load, translate, score, classify, and pack for use elsewhere."""
