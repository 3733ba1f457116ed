"""The configurations of the tests are those of the commands."""

import dataclasses

import pytest
from common import composition, inprocess
from fairseq import options
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from hydra.core.config_store import ConfigStore
from hydra.errors import ConfigCompositionException
from inference.stock import ALL

LISTS = ("--lr", "1e-3,2e-3", "--update-freq", "1,2", "--eval-bleu-args", '{"beam": 2}')


def parsed(words, parser=None):
    parser = parser or options.get_training_parser()
    return options.parse_args_and_arch(parser, input_args=[str(word) for word in words])


@pytest.mark.parametrize(
    "name", ["dual_transformer", "duo_classifier", "routed_gru", "transformer", "twin_lstm_lm"]
)
def test_configurations_are_those_of_hydra(name):
    words = [*ALL[name].words("/data"), "--max-epoch", 3, "--no-progress-bar"]
    for more in ((), ("--optimizer", "adam", *LISTS[:4])):
        try:
            args = parsed([*words, *more])
        except SystemExit:  # an option that the task has not
            continue
        assert composition.converted(args) == convert_namespace_to_omegaconf(args)


def test_values_of_one_configuration_are_not_in_the_next():
    words = ["/data", "--task", "translation", "--arch", "transformer", "--optimizer", "adam"]
    first = composition.converted(parsed([*words, *LISTS, "--seed", 5]))
    assert first.common.seed == 5 and first.optimization.lr == [1e-3, 2e-3]
    first.common.seed = 7
    assert composition.converted(parsed(words)).common.seed == 1
    generation = options.get_generation_parser()
    args = parsed(["/data", "--path", "x.pt", "--model-overrides", "{'a': 1}"], generation)
    assert composition.converted(args) == convert_namespace_to_omegaconf(args)


def test_what_is_registered_anew_is_composed_anew():
    @dataclasses.dataclass
    class Options(FairseqDataclass):
        width: int = 3

    @dataclasses.dataclass
    class OtherOptions(FairseqDataclass):
        width: int = 4

    store = ConfigStore.instance()
    for options_class in (Options, OtherOptions):
        store.store(name="composed_in_a_test", group="bpe", node=options_class())
        config = composition._quick_compose("config", ["bpe=composed_in_a_test"], False)
        assert config.bpe.width == options_class.width
    del store.repo["bpe"]["composed_in_a_test.yaml"]


def test_errors_are_those_of_hydra():
    args = parsed(["/data", "--task", "translation", "--arch", "transformer"])
    args.log_format = "loud"
    for convert in (convert_namespace_to_omegaconf, composition.converted):
        with pytest.raises(ConfigCompositionException, match="common.log_format=.loud"):
            convert(args)
    assert inprocess.configuration(options.get_training_parser(), ["/data", "--arch", "lstm"])
