"""What is particular to the recipe of sentiment classification and its dual task."""
