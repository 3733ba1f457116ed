"""Options of steps where there are beams, and of beams where there are steps."""

import argparse

import pytest
from fairseq.dataclass.configs import GenerationConfig
from fairseq.tasks.fairseq_task import FairseqTask
from fairseq.tasks.translation_lev import TranslationLevenshteinTask

from fairseq_ext.compat.generation.refinement_steps import OPTIONS, check_beams, check_steps
from fairseq_ext.compat.user_errors import OptionError


@pytest.mark.parametrize("name", OPTIONS)
def test_an_ordinary_search_refuses_the_option(name):
    args = argparse.Namespace(**{name: True})
    with pytest.raises(OptionError, match=f"--{name.replace('_', '-')}: there are no steps"):
        FairseqTask.build_generator(None, [], args)


def test_without_the_options_nothing_is_refused():
    check_steps(argparse.Namespace(print_step=False))


@pytest.mark.parametrize(
    ("option", "value"),
    [("prefix_size", 2), ("score_reference", True), ("nbest", 2), ("lm_path", "lm.pt")],
)
def test_iterative_refinement_refuses_options_of_beams(option, value):
    args = argparse.Namespace(**{option: value})
    with pytest.raises(OptionError, match=f"--{option.replace('_', '-')}.*no beam search"):
        TranslationLevenshteinTask.build_generator(None, [], args)


def test_defaults_of_the_search_are_taken():
    check_beams(GenerationConfig())
    check_beams(argparse.Namespace(beam=1, max_len_a=1.2, max_len_b=10))
