"""Checkpoints for programs without this package; what systems offer for it: protocol.py."""
