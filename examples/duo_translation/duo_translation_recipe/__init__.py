"""Parts of the recipe for the rows of the Duo Transformer's Table 6."""
