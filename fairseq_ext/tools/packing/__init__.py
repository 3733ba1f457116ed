"""Packing a trained model into one folder."""
