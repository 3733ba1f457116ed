"""--print-step and --retain-iter-history where no step of refinement exists."""

import argparse

import pytest
from fairseq.tasks.fairseq_task import FairseqTask

from fairseq_ext.compat.generation.refinement_steps import OPTIONS, check_steps
from fairseq_ext.compat.user_errors import OptionError


@pytest.mark.parametrize("name", OPTIONS)
def test_an_ordinary_search_refuses_the_option(name):
    args = argparse.Namespace(**{name: True})
    with pytest.raises(OptionError, match=f"--{name.replace('_', '-')}: there are no steps"):
        FairseqTask.build_generator(None, [], args)


def test_without_the_options_nothing_is_refused():
    check_steps(argparse.Namespace(print_step=False))
