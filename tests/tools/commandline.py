"""`fairseq-ext` as the console script runs it."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def cli(run, *words, **options):
    """Run `fairseq-ext WORDS` the way the console script does."""
    return run("python", "-m", "_fairseq_ext_cli", *words, cwd=REPOSITORY, **options)
