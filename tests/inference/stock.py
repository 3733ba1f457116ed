"""Very small models of stock fairseq, for fairseq's own task, beside every system."""

from options.systems import SYSTEMS, System, flat
from twin.support import LSTM, TRANSFORMER

ONE_LAYER = {
    **TRANSFORMER,
    "--encoder-layers": 1,
    "--decoder-layers": 1,
}
LIGHT = {
    **ONE_LAYER,
    "--encoder-conv-dim": 8,
    "--decoder-conv-dim": 8,
    "--encoder-kernel-size-list": "[3]",
    "--decoder-kernel-size-list": "[3]",
}
CONVOLUTIONS = {
    "--encoder-embed-dim": 8,
    "--decoder-embed-dim": 8,
    "--decoder-out-embed-dim": 8,
    "--encoder-layers": "[(8,3)]",
    "--decoder-layers": "[(8,3)]",
}
SIZES = {
    "lstm": LSTM,
    "fconv": CONVOLUTIONS,
    "lightconv": LIGHT,
    "transformer_align": {**ONE_LAYER, "--alignment-layer": 0},
}
STOCK = {
    f"stock {arch}": System("translation", arch, "two", f"{flat(sizes)} -s xx -t yy")
    for arch, sizes in SIZES.items()
}
ALL = {**SYSTEMS, **STOCK}
# sees the whole target where it aligns
ALL["full context"] = STOCK["stock transformer_align"]._replace(
    model=f"{STOCK['stock transformer_align'].model} --full-context-alignment"
)
