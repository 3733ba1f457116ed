"""Data without references are named by the options that read them."""

from types import SimpleNamespace

import pytest
import torch
from common.words import dictionary_with
from fairseq.sequence_scorer import SequenceScorer

from fairseq_ext.compat.generation.missing_references import prefixes_need_references
from fairseq_ext.compat.user_errors import OptionError


def translate_with(prefix_size, translate):
    module = SimpleNamespace(_main=translate, __file__=__file__)
    prefixes_need_references(module)
    cfg = SimpleNamespace(generation=SimpleNamespace(prefix_size=prefix_size))
    return module._main(cfg, None)


def reads(target):
    """A loop of fairseq-generate with these targets."""
    return lambda cfg, output_file: target[:, : cfg.generation.prefix_size]


def test_prefixes_of_no_target_are_named():
    with pytest.raises(OptionError, match="^--prefix-size 2: the data have no targets"):
        translate_with(2, reads(None))
    assert translate_with(2, reads(torch.ones(3, 4))).shape == (3, 2)


@pytest.mark.parametrize("size, translate", [(0, reads(None)), (2, lambda *_: len(3))])
def test_other_errors_stay(size, translate):
    with pytest.raises(TypeError):
        translate_with(size, translate)


@pytest.mark.parametrize("sample", [{"target": None}, {}])
def test_scores_of_no_target_are_named(sample):
    with pytest.raises(OptionError, match="^--score-reference: the data have no targets"):
        SequenceScorer(dictionary_with("word")).generate([], {"net_input": {}, **sample})
