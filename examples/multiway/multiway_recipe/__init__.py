"""What is particular to the recipe that compares one multi-way model with single-pair models."""
