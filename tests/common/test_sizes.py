"""The ranges of sizes and rates, refused with the option's name."""

from dataclasses import dataclass

import pytest

from fairseq_ext.common.sizes import check_rate, check_sizes


@dataclass
class Size:
    embed_dim: int = 4
    heads: int = 2
    router_size: int = 0
    weight_dropout: float = 0.0
    share: bool = False


def checked(**values):
    check_sizes(Size(**values), may_be_zero=["router_size"], heads="--attention-heads")


def test_sizes_within_their_ranges():
    checked()
    checked(embed_dim=1, heads=1, weight_dropout=0, share=False)
    checked(router_size=3, weight_dropout=0.99, share=True)


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("embed_dim", 0, "--embed-dim 0: must be at least 1"),
        ("heads", -2, "--attention-heads -2: must be at least 1"),
        ("router_size", -1, "--router-size -1: must be at least 0"),
        ("weight_dropout", 1.0, r"--weight-dropout 1.0: must be in \[0, 1\)"),
        ("weight_dropout", -1, r"--weight-dropout -1: must be in \[0, 1\)"),
        ("weight_dropout", float("nan"), r"--weight-dropout nan: must be in \[0, 1\)"),
    ],
)
def test_sizes_out_of_range(field, value, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        checked(**{field: value})


def test_rate():
    check_rate("--dropout", 0.0)
    with pytest.raises(ValueError, match=r"^--dropout 1: must be in \[0, 1\)$"):
        check_rate("--dropout", 1)
