"""Optimizers, learning rates, and averages of parameters."""
