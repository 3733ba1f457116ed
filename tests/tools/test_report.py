"""Tables of scores."""

import pytest

from fairseq_ext.tools.evaluate import report


@pytest.mark.parametrize(
    "values, text",
    [
        ([1.5], "1.50"),
        ([1.0, 2.0], "1.50 (1.00-2.00)"),
        ([-3.0, -1.0], "-2.00 (-3.00 to -1.00)"),
        ([-0.34, 0.339], "0.00 (-0.34 to 0.34)"),
    ],
)
def test_a_range_below_zero_has_no_two_dashes(values, text):
    assert report.cell(report.spread(values)) == text


def test_a_bar_in_a_name_begins_no_column():
    assert (
        report.markdown_table(["system", "BLEU"], [["a|b", 1]]).splitlines()[-1] == "| a\\|b | 1 |"
    )
