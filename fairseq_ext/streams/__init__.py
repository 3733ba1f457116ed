"""Several parallel datasets ("lang pairs") trained into one model."""
