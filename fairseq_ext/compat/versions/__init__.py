"""What fairseq 0.12.2 needs on current versions of Python, torch, numpy, hydra and others."""
