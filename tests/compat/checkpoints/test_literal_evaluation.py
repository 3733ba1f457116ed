"""What fairseq evaluates: literals, + and *, and nothing else."""

import argparse

import pytest

from fairseq_ext.compat.checkpoints.literal_evaluation import (
    RefusedSetting,
    evaluate,
    literal_value,
)

GOOD = [
    "[(512, 10, 5)] + [(512, 3, 2)] * 4 + [(512,2,2)] + [(512,2,2)]",
    "[(512, 3)] * 20",
    "(0.9, 0.98)",
    "0.9,0.98",
    " -1e-3",
    "2 * 3 + 1",
    "[1, [2, 'x']] + []",
    "{'a': [1, 'x'], 'b': {'c': None}}",
    "((64, True), (3,)) * 2",
    "\n[1,\n 2]\n",
    "True",
    "[0.5] * 3",
]
BAD = [
    "__import__('os').mkdir('x')",
    "().__class__",
    "[x for x in [1]]",
    "lambda: 1",
    "f'{1}'",
    "b'x'",
    "[1][0]",
    "(x := 1)",
    "{**{}}",
    "2 ** 3",
    "'a' * 10",
    "[0] * 1000000000",
    "[[0] * 5000] * 5000",
    "(" * 100_000,
    "-" * 100_000 + "1",
    "1" + "+1" * 100_000,
    "9" * 5000,
    "[1",
    "'\\",
    "[] + 1",
    "{[]: 1}",
    "[1, # comment\n 2]",
]


@pytest.mark.parametrize("text", GOOD)
def test_it_is_what_python_says(text):
    assert evaluate(text) == eval(text.strip())


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:20])
def test_everything_else_is_refused(text):
    with pytest.raises(ValueError):
        literal_value(text)
    with pytest.raises(RefusedSetting, match="allowed: numbers, strings"):
        evaluate(text)


def test_other_objects_are_type_errors():
    """fairseq's eval_bool(True) depends on it."""
    with pytest.raises(TypeError):
        evaluate(True)


def test_the_setting_is_named():
    args = argparse.Namespace(encoder_layers="print()")
    eval = evaluate  # as the patch names it in a module
    with pytest.raises(RefusedSetting, match=r"^encoder_layers 'print\(\)' is not allowed"):
        eval(args.encoder_layers)
