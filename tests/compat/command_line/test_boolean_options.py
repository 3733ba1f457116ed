"""Options that are on by default are on where they are named, and can be switched off."""

import argparse
import dataclasses

import pytest
from common.inprocess import logged_lines
from fairseq import options
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import convert_namespace_to_omegaconf, gen_parser_from_dataclass

from fairseq_ext.compat.command_line import boolean_options


def parse(*words):
    parser = options.get_training_parser()
    return options.parse_args_and_arch(parser, ["data", *map(str, words)])


@pytest.mark.parametrize(
    "words, expected",
    [
        ((), True),
        (("--left-pad-source",), True),
        (("--left-pad-source", "True"), True),
        (("--left-pad-source", "False"), False),
        (("--left-pad-source=false",), False),
    ],
)
def test_padding_of_the_source(words, expected):
    assert parse("--arch", "transformer_tiny", *words).left_pad_source is expected


def test_options_of_wav2vec():
    """As fairseq's page of wav2vec names them, for models that have both."""
    words = ("--task", "audio_pretraining", "--arch", "wav2vec", "--criterion", "wav2vec")
    args = parse(*words, "--skip-connections-agg", "--residual-scale", 0.5, "--log-compression")
    model = convert_namespace_to_omegaconf(args).model
    assert model.skip_connections_agg is True and model.log_compression is True
    args = parse(*words, "--skip-connections-agg", "False")
    model = convert_namespace_to_omegaconf(args).model
    assert model.skip_connections_agg is False and model.log_compression is True


def test_an_option_without_a_value_is_a_warning():
    boolean_options._say_that_it_is_on.cache_clear()  # it is said once
    with logged_lines() as lines:
        parse("--arch", "transformer_tiny", "--left-pad-source", "True")
        assert not [line for line in lines if "--left-pad-source" in line]
        parse("--arch", "transformer_tiny", "--left-pad-source")
    (line,) = (line for line in lines if "--left-pad-source" in line)
    assert "--left-pad-source False is necessary here" in line


def test_another_value_is_an_error(capsys):
    with pytest.raises(SystemExit):
        parse("--arch", "transformer_tiny", "--left-pad-source", "data-bin")
    error = capsys.readouterr().err
    assert "--left-pad-source: 'data-bin' is not allowed; allowed: True, False" in error


def test_options_of_plugins_keep_their_meaning():
    @dataclasses.dataclass
    class Options(FairseqDataclass):
        shared: bool = dataclasses.field(default=True, metadata={"help": "share"})
        deep: bool = dataclasses.field(default=False, metadata={"help": "deep"})

    parser = argparse.ArgumentParser()
    gen_parser_from_dataclass(parser, Options())
    for words, shared in (([], True), (["--shared"], False), (["--shared", "True"], True)):
        values = parser.parse_args([*words, "--deep"])
        assert values.shared is shared and values.deep is True
