"""An architecture that a configuration of hydra names has its values, as --arch gives them."""

from types import SimpleNamespace

import pytest
from fairseq import options
from fairseq.dataclass import initialize
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_DATACLASS_REGISTRY
from omegaconf import OmegaConf

from fairseq_ext.compat.architectures import named_architectures
from fairseq_ext.compat.user_errors import OptionError

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


def by_group(arch, **typed):
    """The section of `model=MODEL model._name=ARCH`."""
    declaration = MODEL_DATACLASS_REGISTRY[ARCH_MODEL_NAME_REGISTRY.get(arch, arch)]
    model = OmegaConf.structured(declaration)
    model.update({"_name": arch, **typed})
    return OmegaConf.create({"model": model})


def test_an_architecture_that_the_defaults_replace_is_refused():
    module = SimpleNamespace(_hydra_main=lambda cfg: "trained", OmegaConf=OmegaConf)
    named_architectures.groups_hide_no_architecture(module)
    with pytest.raises(OptionError, match="_name=mtl_partial_gru with .*sharing=layers"):
        module._hydra_main(by_group("mtl_partial_gru"))
    values = named_architectures.values_of_architecture("mtl_partial_gru", {})
    configurations = [
        by_group("routed_gru"),
        by_group("mtl_partial_gru", **values),
        OmegaConf.create({"model": {"_name": "mtl_partial_gru", "hidden_size": 400}}),
        OmegaConf.create({"model": "mtl_partial_gru"}),
    ]
    assert [module._hydra_main(cfg) for cfg in configurations] == 4 * ["trained"]
