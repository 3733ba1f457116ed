"""Training logs: pictures of their curves, comparisons of runs."""
