"""Lists of layers given as text (fairseq_ext/compat/command_line/layer_lists.py)."""

import fairseq.models  # noqa: F401  (registers the architectures)
import pytest

from fairseq_ext.compat.command_line.option_checks import check
from fairseq_ext.compat.user_errors import OptionError

GOOD = {"arch": "fconv", "encoder_layers": "[(8, 3)] * 2", "decoder_layers": "[(8, 3), (8, 3, 2)]"}


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"encoder_layers": "[]"}, "--encoder-layers '\\[\\]': no list of layers; allowed: a list"),
        ({"decoder_layers": "3"}, "--decoder-layers '3': no list of layers"),
        ({"encoder_layers": "[(8)]"}, "layer 1 is 8; allowed: a list of"),
        ({"encoder_layers": "[(8, 3), (8,)]"}, "layer 2 is \\(8,\\)"),
        ({"encoder_layers": "[(8, 0)]"}, "layer 1 is \\(8, 0\\)"),
        ({"encoder_layers": "[(8, 3.5)]"}, "layer 1 is \\(8, 3.5\\)"),
        ({"encoder_layers": "[[8, 3]]"}, "layer 1 is \\[8, 3\\]"),
        ({"encoder_layers": "[(8, 3"}, "--encoder-layers '\\[\\(8, 3': no expression"),
        ({"encoder_layers": "[(8, 3, 3)]"}, "residual of layer 1 is of 3 .*allowed: 0 .none. to 1"),
        ({"decoder_attention": "[True]"}, "--decoder-attention '\\[True\\]' is not .* 2 entries"),
        ({"decoder_attention": "maybe"}, "--decoder-attention 'maybe': the name maybe; allowed"),
        ({"arch": "fconv_self_att"}, "--decoder-layers .*: layer 2 is \\(8, 3, 2\\)"),
        ({"arch": "fconv_lm", "decoder_layers": "()"}, "--decoder-layers '\\(\\)': no list"),
    ],
)
def test_other_lists_are_refused(changes, message):
    with pytest.raises(OptionError, match=message):
        check({**GOOD, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"decoder_attention": "[True, False]"},
        {"decoder_attention": "True"},
        {"arch": "transformer", "encoder_layers": 2, "decoder_layers": 2},
    ],
)
def test_lists_of_layers_are_taken(changes):
    check({**GOOD, **changes})


def test_every_named_architecture_is_taken():
    from argparse import Namespace

    from fairseq.models import ARCH_CONFIG_REGISTRY

    named = [arch for arch in ARCH_CONFIG_REGISTRY if arch.startswith("fconv")]
    assert len(named) > 8
    for arch in named:
        args = Namespace(arch=arch)
        ARCH_CONFIG_REGISTRY[arch](args)
        check(vars(args))
