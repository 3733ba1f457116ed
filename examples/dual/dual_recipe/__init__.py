"""What is particular to the recipe that compares the dual model with two stock transformers."""
