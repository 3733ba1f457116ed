"""Options with which a task is asked for a search: taken, or refused as on the command line."""

import math
from argparse import Namespace

import pytest
from fairseq.dataclass.configs import GenerationConfig
from fairseq.sequence_generator import SequenceGenerator
from omegaconf import OmegaConf

from fairseq_ext.common.beam_search import BeamSearchGenerator, BeamSearchWithAlignment
from fairseq_ext.common.fast_search import fast_search


@pytest.mark.parametrize(
    "options, message",
    [
        ({"beam": 0}, "--beam 0 is not allowed; allowed: at least 1"),
        ({"beam": 2, "nbest": 5}, "--nbest 5 is more than --beam 2"),
        ({"lenpen": math.nan}, "--lenpen nan is not allowed; allowed: any finite number"),
        ({"temperature": 0}, "--temperature 0 is not allowed; allowed: more than 0"),
        (
            {"max_len_b": -1},
            "--max-len-b -1 is not allowed without --max-len-a; allowed: at least 0",
        ),
        ({"min_len": 9, "max_len_a": 0, "max_len_b": 5}, "--min-len 9 is more than --max-len-b 5"),
        ({"beam": 5, "diverse_beam_groups": 2}, "--diverse-beam-groups 2 does not divide --beam 5"),
    ],
)
@pytest.mark.parametrize("kind", [Namespace, OmegaConf.create], ids=["namespace", "config"])
def test_options_from_python_are_refused_as_on_the_command_line(kind, options, message):
    arguments = kind(**options) if kind is Namespace else kind(options)
    with pytest.raises(ValueError, match=f"^{message}"):
        fast_search(arguments, {})


def test_good_options_from_python_are_taken():
    chosen = fast_search(OmegaConf.structured(GenerationConfig(beam=3, nbest=3)), {})
    assert chosen["seq_gen_cls"] is BeamSearchGenerator


@pytest.mark.parametrize(
    "options, method",
    [({"print_alignment": "soft"}, "soft"), ({"replace_unk": ""}, "hard")],
    ids=["alignment", "unknown words"],
)
def test_alignments_come_from_a_search_of_their_own(options, method):
    chosen = fast_search(OmegaConf.structured(GenerationConfig(**options)), {})
    assert chosen["seq_gen_cls"] is BeamSearchWithAlignment
    assert chosen["extra_gen_cls_kwargs"] == {"print_alignment": method}


def test_a_generator_that_is_named_wins():
    options = {"seq_gen_cls": SequenceGenerator}
    assert fast_search(Namespace(beam=0), options) is options
