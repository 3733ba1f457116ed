"""What a smoke run is, and the options that many of them share."""

from typing import NamedTuple, Tuple


class Row(NamedTuple):
    """One smoke run, and one row of docs/fairseq-runs.md.

    name: what it tries, the first column of the page. commands: run one after another; words in
    braces name data (corpora.py), or {out}, the row's own folder.
    expect: what their output matches. fails: the last command ends in an error that it matches.
    needs: packages without which it is skipped. stdin: what the last command reads.
    """

    name: str
    commands: Tuple[str, ...]
    expect: str = ""
    fails: bool = False
    needs: Tuple[str, ...] = ()
    stdin: str = ""


def row(name, *commands, **settings):
    """Return a Row."""
    return Row(name, commands, **settings)


def sizes(*sides):
    """Return the options for one small layer on each side."""
    return " ".join(
        f"--{side}-layers 1 --{side}-embed-dim 16 --{side}-ffn-embed-dim 16 "
        f"--{side}-attention-heads 2"
        for side in sides
    )


BOTH = sizes("encoder", "decoder")
SHARED = f"--share-all-embeddings {BOTH}"
OPTIMISE = (
    "--optimizer adam --lr 1e-3 --max-tokens 800 --max-update 2 --log-interval 1 "
    "--log-format simple --seed 1 --num-workers 0"
)
SMOOTHED = "--criterion label_smoothed_cross_entropy --label-smoothing 0.1"
SAVE = "--save-dir {out} --no-epoch-checkpoints"
OWN = "--path {out}/checkpoint_last.pt"
TRAINED = "num_updates 2"
