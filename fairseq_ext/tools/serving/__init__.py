"""`fairseq-ext serve`: trained models over HTTP, and a page that shows what they do."""
