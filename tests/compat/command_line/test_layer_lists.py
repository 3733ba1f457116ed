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


@pytest.mark.parametrize(
    "text, message",
    [
        ("[(8, 3)]", "layer 1 is \\(8, 3\\); allowed: a list of \\(width, kernel, stride\\)"),
        ("[(8, 3, 2), (8, 3, 0)]", "layer 2 is \\(8, 3, 0\\)"),
        ("[(8, 3, 2.5)]", "layer 1 is \\(8, 3, 2.5\\)"),
        ("(8, 3, 2)", "layer 1 is 8"),
        ("8", "no list of layers"),
        ("[(8, 3, 2", "no expression"),
    ],
)
def test_other_convolutions_of_sound_are_refused(text, message):
    with pytest.raises(OptionError, match=f"^--conv-feature-layers '.*': {message}"):
        check({"arch": "wav2vec2", "conv_feature_layers": text})


@pytest.mark.parametrize(
    "text", ["[(8, 10, 5)] + [(8, 3, 2)] * 2", "[[8, 3, 2]]", "${model.conv_feature_layers}"]
)
def test_convolutions_of_sound_are_taken(text):
    check({"arch": "wav2vec2", "conv_feature_layers": text})


def test_the_defaults_of_models_of_sound_are_taken():
    from argparse import ArgumentParser

    from fairseq.models import ARCH_MODEL_REGISTRY

    names = {"conv_feature_layers", "conv_aggregator_layers", "conv_kernel_sizes"}
    seen = set()
    for arch in ("wav2vec", "wav2vec2", "hubert", "s2t_transformer", "s2t_conformer"):
        parser = ArgumentParser(conflict_handler="resolve")
        ARCH_MODEL_REGISTRY[arch].add_args(parser)
        values = {action.dest: action.default for action in parser._actions}
        values = {name: value for name, value in values.items() if name in names}
        seen |= values.keys()
        check({"arch": arch, **values})
    assert seen == names


def test_every_named_architecture_is_taken():
    from argparse import Namespace

    from fairseq.models import ARCH_CONFIG_REGISTRY

    named = [arch for arch in ARCH_CONFIG_REGISTRY if arch.startswith("fconv")]
    assert len(named) > 8
    for arch in named:
        args = Namespace(arch=arch)
        ARCH_CONFIG_REGISTRY[arch](args)
        check(vars(args))
