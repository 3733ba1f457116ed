"""The values of options as the checks read them."""

import pytest

from fairseq_ext.compat.command_line import option_values


def test_numbers_are_numbers_alone():
    values = {"beam": 5, "lenpen": 0.6, "arch": "transformer", "lr": None}
    assert option_values.number(values, "beam") == 5
    assert option_values.number(values, "lenpen") == 0.6
    for name in ("arch", "lr", "missing"):
        assert option_values.number(values, name) is None


@pytest.mark.parametrize("value", [True, 1, "True", "true", "1"])
def test_a_switch_is_on_as_text_too(value):
    assert option_values.is_true({"left_pad_target": value}, "left_pad_target")


@pytest.mark.parametrize("value", [False, 0, "False", "false", "0", None, "yes"])
def test_a_switch_is_off(value):
    assert not option_values.is_true({"left_pad_target": value}, "left_pad_target")
    assert not option_values.is_true({}, "left_pad_target")


@pytest.mark.parametrize("text", ["abs(1)", "{'a': ", "name", "(" * 500, ""])
def test_what_is_no_literal_is_none(text):
    assert option_values.literal(text) is None


def test_literals_are_read():
    assert option_values.literal("{'dropout': 0.1}") == {"dropout": 0.1}
    assert option_values.literal("(0.9, 0.98)") == (0.9, 0.98)
