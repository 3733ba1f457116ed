"""fairseq's examples: how --user-dir imports them, and what each of them needs."""
