"""An architecture that a configuration of hydra names has its values, as --arch gives them."""

import pytest
from fairseq import options
from fairseq.dataclass import initialize
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_DATACLASS_REGISTRY
from omegaconf import OmegaConf

# (task, architecture, what the user types)
CASES = [
    ("dual_translation", "dual_transformer_tiny", {}),
    ("dual_translation", "dual_transformer_iwslt_de_en", {"layers": 3}),
    ("multiway_translation", "multiway_gru_tiny", {}),
    ("routed_mtl", "routed_gru_tiny", {"dropout": 0.25}),
    ("fast_translation", "duo_transformer_tiny", {}),
    ("language_modeling", "transformer_lm_gpt", {"decoder_layers": 2}),
]


def by_hydra(task, model):
    cfg = OmegaConf.create({"task": {"_name": task, "data": "bin"}, "model": model})
    initialize.add_defaults(cfg)
    return cfg.model


def by_arch(task, arch, typed):
    words = ["bin", "--task", task, "--arch", arch]
    words += [word for name, value in typed.items() for word in (f"--{name}", str(value))]
    words = [word.replace("_", "-") if word.startswith("--") else word for word in words]
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    return convert_namespace_to_omegaconf(args).model


def plain(model):
    """The options of a model without those that are the value of another section's."""
    return {name: value for name, value in OmegaConf.to_container(model).items() if value != "???"}


@pytest.mark.parametrize("task, arch, typed", CASES, ids=[case[1] for case in CASES])
def test_values_are_those_of_the_command_line(task, arch, typed):
    composed = plain(by_hydra(task, {"_name": arch, **typed}))
    expected = plain(by_arch(task, arch, typed))
    for name, value in composed.items():
        if not str(value).startswith("${"):
            assert value == expected[name], name
    assert composed["_name"] == arch
    for name, value in typed.items():
        assert composed[name] == value


def test_a_model_of_the_command_line_is_left_alone():
    """A model without a declaration, such as stock's lstm, has an argparse.Namespace."""
    words = ["bin", "--task", "translation", "--arch", "lstm"]
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    cfg = convert_namespace_to_omegaconf(args)
    before = vars(cfg.model).copy()
    initialize.add_defaults(cfg)
    assert vars(cfg.model) == before


def test_a_name_alone_is_enough():
    assert by_hydra("dual_translation", "dual_transformer_tiny").embed_dim == 64


def test_a_model_by_its_own_name_has_its_defaults():
    assert by_hydra("dual_translation", {"_name": "dual_transformer"}).embed_dim == 512


def test_every_architecture_of_a_declared_model_can_be_named():
    """Also those of fairseq: none has a value that its model's declaration refuses."""
    names = [
        name
        for name, model in ARCH_MODEL_NAME_REGISTRY.items()
        if model in MODEL_DATACLASS_REGISTRY
    ]
    assert {"transformer_lm_gpt", "twin_caption_lstm_tiny", "gru_lm_tiny"} <= set(names)
    for name in names:
        assert by_hydra("translation", name)._name == name
