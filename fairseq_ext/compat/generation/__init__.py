"""Search and scoring: lines in, hypotheses out."""
