"""Warnings that fairseq 0.12.2 itself causes and that its users can do nothing about."""
