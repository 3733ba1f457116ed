"""Reading checkpoints, and averaging them."""
