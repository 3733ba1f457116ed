"""Options that hold several entries."""

import pytest

from fairseq_ext.common.named_values import entries, named_values


@pytest.mark.parametrize(
    "text, expected",
    [
        (None, []),
        (" ,, ", []),
        ("de", ["de"]),
        (" de , en,", ["de", "en"]),
        ("de=a=b, en", ["de=a=b", "en"]),
    ],
)
def test_entries(text, expected):
    assert entries(text) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        (None, []),
        ("de=a.pt,en=b.pt", [("de=a.pt", "de", "a.pt"), ("en=b.pt", "en", "b.pt")]),
        (" de = x=1.pt ", [("de = x=1.pt", "de", "x=1.pt")]),
        ("de", [("de", "de", "")]),
        ("=1,de=", [("=1", "", "1"), ("de=", "de", "")]),
    ],
)
def test_named_values(text, expected):
    assert named_values(text) == expected
