"""The systems that are measured, each with its stock peers: options of fairseq-train."""

from argparse import Namespace
from typing import List, NamedTuple, Optional, Sequence

from .corpus import LANGS

DIRECTIONS = tuple("-".join(pair) for pair in (LANGS, LANGS[::-1]))
STOCK, FUSED = "--optimizer adam", "--optimizer fused_adam"
SMOOTHED = f"--label-smoothing 0.1 --criterion label_smoothed_cross_entropy {STOCK}"
CHUNKED = f"--label-smoothing 0.1 --criterion chunked_label_smoothed_cross_entropy {FUSED}"
TWIN = f"--criterion twin {FUSED}"
EQUAL = "stock lstm, equal FLOP"
# systems whose stock peer is the lstm with attention; the others' is the Transformer
RECURRENT = ("twin_lstm", "multiway", "routed")
# of these an lstm wide enough to do the same number of operations is measured as well
AT_EQUAL_FLOP = ("multiway", "routed")
FAMILIES = ("dual", "tagged", "duo", "twin_transformer", *RECURRENT)
SYSTEMS = ("transformer", "lstm", *FAMILIES)
# those that hold several pairs in one model
SHARED = ("dual", "multiway", "routed")


class Row(NamedTuple):
    """A row of the tables.

    models: options of fairseq-train, one text for each of its models. task: options of
    fairseq-generate that say what is translated. ours: a system of the suite.
    """

    name: str
    models: List[str]
    task: str
    ours: bool


def sided(args: Namespace) -> str:
    """Return the sizes of a stock Transformer, or of a model that has its options."""
    flags = "--share-all-embeddings --dropout 0.2"
    for side in ("encoder", "decoder"):
        flags += f" --{side}-layers {args.layers} --{side}-embed-dim {args.embed_dim}"
        flags += f" --{side}-ffn-embed-dim {args.ffn_embed_dim}"
        flags += f" --{side}-attention-heads {args.heads}"
    return flags


def plain(args: Namespace) -> str:
    """Return the same sizes for a model whose encoder and decoder share each option."""
    flags = f"--share-all-embeddings --dropout 0.2 --layers {args.layers}"
    flags += f" --embed-dim {args.embed_dim} --ffn-embed-dim {args.ffn_embed_dim}"
    return f"{flags} --attention-heads {args.heads}"


def lstm(args: Namespace, arch: str = "lstm", hidden: Optional[int] = None) -> str:
    """Return the options of one bidirectional layer with attention, as wide as the other models."""
    hidden = hidden or args.hidden
    flags = f"--arch {arch} --encoder-bidirectional --dropout 0"
    for side in ("encoder", "decoder"):
        flags += f" --{side}-embed-dim {args.embed_dim} --{side}-hidden-size {hidden}"
    return f"{flags} --decoder-out-embed-dim {hidden}"


def multiway(args: Namespace) -> str:
    """Return architecture and sizes of a multiway model."""
    flags = f"--arch multiway_gru --embed-dim {args.embed_dim} --hidden-size {args.hidden}"
    flags += f" --context-size {args.context} --readout-size {args.hidden} --dropout 0"
    return f"{flags} --init-hidden-size {args.hidden // 2} --init-size {args.hidden // 2}"


def routed(args: Namespace) -> str:
    """Return architecture and sizes of a routed model."""
    flags = f"--arch routed_gru --embed-dim {args.embed_dim} --hidden-size {args.hidden}"
    return f"{flags} --attention-size {args.context} --dropout 0"


def one_way(pair: str) -> str:
    """Return "-s aa -t bb" for "aa-bb"."""
    return "-s {} -t {}".format(*pair.split("-"))


FORTH = one_way(DIRECTIONS[0])
SEARCH = f"--task fast_translation {FORTH}"  # the suite's beam search, for models of one direction
PLAIN = "--criterion cross_entropy"


def stock_transformer(args: Namespace) -> str:
    """Return architecture, sizes and criterion of fairseq's Transformer."""
    return f"--arch transformer {sided(args)} {SMOOTHED}"


def stock_lstm(args: Namespace, name: str = "stock lstm", hidden: Optional[int] = None) -> Row:
    """Return the row of fairseq's lstm; hidden: its width, unless it is that of ``args``."""
    return Row(name, [f"{FORTH} {lstm(args, hidden=hidden)} {PLAIN} {STOCK}"], FORTH, False)


def rows(family: str, args: Namespace) -> List[Row]:
    """Return the rows of a family; the others are compared with the first."""
    if family in ("dual", "tagged"):
        models = [f"{one_way(pair)} {stock_transformer(args)}" for pair in DIRECTIONS]
        task = f"--task dual_translation {FORTH}"
        sizes = plain(args) if family == "dual" else sided(args)
        ours = f"{task} --arch {family}_transformer {sizes} {CHUNKED}"
        return [Row("two stock", models, FORTH, False), Row(family, [ours], task, True)]
    if family in ("duo", "twin_transformer"):
        peer = Row("stock transformer", [f"{FORTH} {stock_transformer(args)}"], FORTH, False)
        duo = f"{FORTH} --arch duo_transformer {plain(args)} {CHUNKED}"
        twin = f"{FORTH} --arch twin_transformer {sided(args)} {TWIN} --label-smoothing 0.1"
        return [peer, Row(family, [duo if family == "duo" else twin], SEARCH, True)]
    if family == "twin_lstm":
        ours = f"{FORTH} {lstm(args, 'twin_lstm')} {TWIN}"
        return [stock_lstm(args), Row(family, [ours], SEARCH, True)]
    return [stock_lstm(args), several_pairs(family, args, DIRECTIONS[:1])]


def several_pairs(family: str, args: Namespace, pairs: Sequence[str]) -> Row:
    """Return a system that shares one model among these pairs; it translates the first."""
    # joint: an update holds a minibatch of every pair
    task, arch = {
        "dual": ("dual_translation", f"--arch dual_transformer {plain(args)} {CHUNKED}"),
        "multiway": ("multiway_translation", f"{multiway(args)} {CHUNKED}"),
        "routed": ("routed_mtl", f"{routed(args)} {CHUNKED}"),
    }[family]
    task = f"--task {task} --schedule joint"
    model = f"{task} --lang-pairs {','.join(pairs)} {arch}"
    return Row(family, [model], f"{task} {one_way(pairs[0])}", True)
