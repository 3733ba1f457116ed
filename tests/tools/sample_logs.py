"""A log of fairseq-train in both formats, with the lines around it that hold no numbers."""

import json

STAMP = "2030-01-02 03:04:05 | INFO | {} | "
NOISE = [
    "{'_name': None, 'common': {'seed': 1}}",
    "TransformerModel(",
    "  (encoder): TransformerEncoderBase(",
    'begin validation on "valid" subset',
    "end of epoch 1 (average epoch stats below)",
    "done training in 1.4 seconds",
]
# (updates, loss) of the log that both formats below write
INNER = [(10, 5.0), (20, 3.5)]
VALID = [(20, 3.0)]


def simple_lines(stamp):
    """The numbers above as --log-format simple, for stdout (stamp) or a --log-file."""
    prefix = STAMP.format if stamp else lambda name: ""
    inner = [
        prefix("train_inner")
        + f"epoch 001: {updates:6d} / 20 loss={loss}, a-b_loss={loss - 1}, ppl=9.5, "
        f"wps=100, num_updates={updates}, lr=0.25, train_wall=0, wall=4"
        for updates, loss in INNER
    ]
    valid = [
        prefix("valid") + f"epoch 001 | valid on 'valid' subset | loss {loss} | "
        f"a-b_loss {loss - 1} | a-b_bleu 12.5 | num_updates {updates} | best_loss None"
        for updates, loss in VALID
    ]
    train = [prefix("train") + "epoch 001 | loss 4.2 | gnorm 0.5 | num_updates 20 | wall 6"]
    return [*NOISE, *inner, *valid, *train]


def json_lines(stamp):
    """The same numbers as --log-format json."""
    prefix = STAMP.format if stamp else lambda name: ""

    def text(values, split=""):
        record = {split + name: str(value) for name, value in values.items()}
        return json.dumps({"epoch": 1, **({} if split else {"update": 0.5}), **record})

    inner = [
        prefix("train_inner")
        + text({"loss": loss, "a-b_loss": loss - 1, "ppl": 9.5, "num_updates": updates})
        for updates, loss in INNER
    ]
    valid = [
        prefix("valid")
        + text(
            {"loss": loss, "a-b_loss": loss - 1, "a-b_bleu": 12.5, "num_updates": updates},
            "valid_",
        )
        for updates, loss in VALID
    ]
    train = [prefix("train") + text({"loss": 4.2, "gnorm": 0.5, "num_updates": 20}, "train_")]
    return [*NOISE, *inner, *valid, *train]
