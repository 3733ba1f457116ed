"""Training and validation: what is computed, resumed and saved."""
