"""Data sets and tasks of fairseq."""
