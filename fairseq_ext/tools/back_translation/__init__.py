"""`fairseq-ext back-translate`."""
