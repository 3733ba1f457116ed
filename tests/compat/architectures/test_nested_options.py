"""A model with the configuration of fairseq's Transformer is built with the options it is given."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from fairseq import models, options
from fairseq.dataclass import initialize
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models.transformer import TransformerConfig, TransformerModel, TransformerModelBase
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

from fairseq_ext.compat.architectures import named_architectures
from fairseq_ext.compat.user_errors import OptionError

REGISTRIES = (
    models.MODEL_REGISTRY,
    models.MODEL_DATACLASS_REGISTRY,
    models.ARCH_MODEL_REGISTRY,
    models.ARCH_MODEL_NAME_REGISTRY,
    models.ARCH_MODEL_INV_REGISTRY,
    models.ARCH_CONFIG_REGISTRY,
)


@dataclass
class GatedConfig(TransformerConfig):
    """The options of the stock model and one more."""

    gate: float = field(default=0.2, metadata={"help": "initial value of the gate"})


def small(args):
    """Values of a named architecture, as plugins write them."""
    args.gate = getattr(args, "gate", 0.3)
    args.encoder_layers = getattr(args, "encoder_layers", 1)
    args.decoder_embed_dim = getattr(args, "decoder_embed_dim", 32)
    args.quant_noise_pq = getattr(args, "quant_noise_pq", 0.05)


@pytest.fixture(params=[TransformerModelBase, TransformerModel])
def gated(request):
    """The model `gated_transformer` and its architecture `gated_small`, registered for a test."""
    before = [dict(registry) for registry in REGISTRIES]
    stored = dict(ConfigStore.instance().repo["model"])
    model = type("Gated", (request.param,), {})
    models.register_model("gated_transformer", dataclass=GatedConfig)(model)
    models.register_model_architecture("gated_transformer", "gated_small")(small)
    yield model
    for registry, entries in zip(REGISTRIES, before):
        registry.clear()
        registry.update(entries)
    ConfigStore.instance().repo["model"] = stored


def typed(*words, arch="gated_transformer"):
    """The section of the model of a command line."""
    words = ["bin", "--task", "translation", "--arch", arch, *words]
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    return convert_namespace_to_omegaconf(args).model


def by_hydra(**model):
    cfg = OmegaConf.create({"task": {"_name": "translation", "data": "bin"}, "model": model})
    initialize.add_defaults(cfg)
    return cfg.model


def test_options_of_the_command_line_act(gated):
    model = typed("--encoder-layers", "2", "--decoder-embed-dim", "16", "--quant-noise-pq", "0.1")
    assert (model.encoder.layers, model.decoder.layers) == (2, 6)
    assert (model.decoder.embed_dim, model.encoder.embed_dim) == (16, 512)
    assert model.decoder.output_dim == 16
    assert model.quant_noise.pq == 0.1


def test_values_of_an_architecture_act_and_typed_ones_replace_them(gated):
    model = typed("--decoder-embed-dim", "16", arch="gated_small")
    assert (model.encoder.layers, model.decoder.embed_dim, model.gate) == (1, 16, 0.3)
    assert model.quant_noise.pq == 0.05


def test_own_options_can_be_typed(gated):
    if not issubclass(gated, TransformerModel):  # whose add_args knows the stock options alone
        assert typed("--gate", "0.7", arch="gated_small").gate == 0.7


def test_a_model_may_declare_its_own_options_itself(gated):
    """As today's plugins do, since the stock method leaves them out."""

    def add_args(cls, parser):
        super(gated, cls).add_args(parser)
        parser.add_argument("--gate", type=float)

    gated.add_args = classmethod(add_args)
    assert typed("--gate", "0.7").gate == 0.7


def test_hydra_has_the_values_of_the_architecture(gated):
    model = by_hydra(_name="gated_small", decoder={"embed_dim": 16})
    assert (model.encoder.layers, model.decoder.embed_dim, model.gate) == (1, 16, 0.3)
    # sections are shared by all configurations, so that another test may have changed a default
    default = GatedConfig().encoder.embed_dim
    assert (model.encoder.embed_dim, model.quant_noise.pq) == (default, 0.05)


def test_hydra_refuses_defaults_that_replace_the_architecture(gated):
    module = SimpleNamespace(_hydra_main=lambda cfg: "trained", OmegaConf=OmegaConf)
    named_architectures.groups_hide_no_architecture(module)
    model = OmegaConf.structured(GatedConfig)
    model.update({"_name": "gated_small"})
    with pytest.raises(OptionError, match="_name=gated_small with .*encoder_layers=1"):
        module._hydra_main(OmegaConf.create({"model": model}))
