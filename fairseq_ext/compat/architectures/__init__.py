"""Models and their layers: the options that they read, and the padding that they do not."""
