"""Parts of the Duo classifier's recipe."""
