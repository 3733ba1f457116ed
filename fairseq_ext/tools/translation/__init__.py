"""Files of text and their translations: `fairseq-ext translate`."""
