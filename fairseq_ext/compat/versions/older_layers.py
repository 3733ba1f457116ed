"""What subclasses of layers that were written for fairseq 0.9 and 0.10 read of them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..computed_attributes import AttributeUntilSet
from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor, nn


class CallableCount(int):
    """A number that a call returns too: the limit of positions was a method once."""

    def __call__(self) -> int:
        return int(self)


@patch(
    "fairseq.modules.learned_positional_embedding",
    "fairseq.modules.sinusoidal_positional_embedding",
    because="fairseq 0.10 made max_positions of embeddings of positions an attribute: models for "
    "0.9, which call it, fail with \"'int' object is not callable\"",
)
def position_limits_may_be_called(module: PatchedModule) -> None:
    """Give embeddings of positions a limit that may be read and called."""
    names = ("LearnedPositionalEmbedding", "SinusoidalPositionalEmbedding")
    for embedding in (vars(module)[name] for name in names if name in vars(module)):
        embedding.max_positions = PositionLimit()


class PositionLimit:
    """The attribute `max_positions`, an int that may be called; TorchScript reads an int."""

    def __set__(self, embedding: nn.Module, limit: int) -> None:
        vars(embedding)["max_positions"] = limit

    def __get__(self, embedding: nn.Module | None, owner: type) -> Any:
        if embedding is None:
            return self
        try:
            return CallableCount(vars(embedding)["max_positions"])
        except KeyError:
            raise AttributeError("max_positions") from None


def rate_of_module(layer: nn.Module, name: str) -> Any:
    """Return a rate of dropout, as fairseq 0.9 called it, from the module of today.

    What a subclass assigns to the name counts first.
    """
    # assigned modules are not in the instance's own dictionary
    for places in (layer._modules, layer._parameters, layer._buffers):
        if name in places:
            return places[name]
    dropout = layer._modules.get(f"{name}_module")
    if dropout is None:
        raise AttributeError(f"{type(layer).__name__!r} object has no attribute {name!r}")
    return dropout.p


# {module: classes in it}
WITH_DROPOUT = {
    "fairseq.models.transformer.transformer_encoder": ("TransformerEncoderBase",),
    "fairseq.models.transformer.transformer_decoder": ("TransformerDecoderBase",),
    "fairseq.modules.transformer_layer": (
        "TransformerEncoderLayerBase",
        "TransformerDecoderLayerBase",
    ),
    "fairseq.modules.multihead_attention": ("MultiheadAttention",),
    "fairseq.models.lightconv": ("LightConvEncoder", "LightConvDecoder"),
}


@patch(
    *WITH_DROPOUT,
    because="fairseq 0.10 made rates of dropout modules: models for 0.9, which read self.dropout, "
    "fail with \"object has no attribute 'dropout'\"",
)
def dropout_rates_are_read(module: PatchedModule) -> None:
    """Give encoders, decoders and layers their rates under the names of fairseq 0.9."""
    for name in WITH_DROPOUT[module.__name__]:
        for rate in ("dropout", "activation_dropout"):
            read = functools.partial(rate_of_module, name=rate)
            setattr(getattr(module, name), rate, AttributeUntilSet(read))


def weight_of_projection(decoder: nn.Module) -> Any:
    """Return the parameter of the output, as fairseq 0.9 called it, from the module of today.

    What a subclass assigns to the name counts first.
    """
    for places in (decoder._parameters, decoder._modules):
        if "embed_out" in places:
            return places["embed_out"]
    projection: Any = decoder._modules.get("output_projection")
    if not hasattr(projection, "weight"):
        raise AttributeError(f"{type(decoder).__name__!r} object has no attribute 'embed_out'")
    return projection.weight


@patch(
    "fairseq.models.transformer.transformer_decoder",
    because="fairseq 0.10 made the output of a decoder a module: decoders for 0.9 with an "
    "output_layer of their own fail with \"object has no attribute 'embed_out'\"",
)
def weights_of_the_output_are_read(module: PatchedModule) -> None:
    """Give decoders the weight of their output under its name of fairseq 0.9."""
    decoder = module.TransformerDecoderBase

    def register_parameter(self: Any, name: str, param: nn.Parameter | None) -> None:
        if name == "embed_out":
            # torch refuses a name that an object has, unless it is one of its parameters
            self._parameters.setdefault(name, None)
        super(decoder, self).register_parameter(name, param)

    decoder.embed_out = AttributeUntilSet(weight_of_projection)
    decoder.register_parameter = register_parameter


@patch(
    "fairseq.modules.transformer_layer",
    because="fairseq 0.10 dropped maybe_layer_norm: layers for 0.9, which call it, fail with "
    '"object has no attribute"',
)
def layers_normalise_before_or_after(module: PatchedModule) -> None:
    """Give layers the method that normalises at one of two places."""

    def maybe_layer_norm(
        self: Any, layer_norm: nn.Module, x: Tensor, before: bool = False, after: bool = False
    ) -> Tensor:
        if before == after:
            raise ValueError("maybe_layer_norm: either before or after")
        normed: Tensor = layer_norm(x) if bool(self.normalize_before) == before else x
        return normed

    for layer in (module.TransformerEncoderLayerBase, module.TransformerDecoderLayerBase):
        layer.maybe_layer_norm = maybe_layer_norm


@patch(
    "fairseq.modules.transformer_layer",
    because="fairseq 0.12 takes the encoder of a decoder layer for one of 512 numbers where the "
    "options of a plugin do not have encoder_embed_dim: those of AV-HuBERT, for example, which in "
    "0.10 attended to states of the width of the decoder, fail with 'mat1 and mat2 shapes cannot "
    "be multiplied'",
)
def encoders_are_as_wide_as_their_decoder(module: PatchedModule) -> None:
    """Let a decoder layer attend to states of its own width where no other is given."""
    layer, config_class = module.TransformerDecoderLayer, module.TransformerConfig
    stock = layer.__init__

    @functools.wraps(stock)
    def __init__(self: Any, args: Any, *options: Any, **named: Any) -> None:
        config = config_class.from_namespace(args)
        if not isinstance(args, config_class) and not has_width(args, "encoder"):
            config.encoder.embed_dim = config.decoder.embed_dim
        stock(self, config, *options, **named)
        self.args = args

    layer.__init__ = __init__


def has_width(args: Any, side: str) -> bool:
    """Return True if options, flat or in groups, name the width of one side of a Transformer."""
    group = getattr(args, side, None)
    return getattr(group, "embed_dim", getattr(args, f"{side}_embed_dim", None)) is not None


@patch(
    "fairseq.modules.multihead_attention",
    "fairseq.modules.transformer_sentence_encoder",
    because="fairseq 0.12 asks each tensor whether it is on a TPU: attention of plugins for 0.10 "
    "with a forward of its own, which reads self.tpu, fails with \"has no attribute 'tpu'\"",
)
def layers_are_not_for_tpus(module: PatchedModule) -> None:
    """Give the layers that had it the attribute `tpu`, which is False."""
    for name in ("MultiheadAttention", "TransformerSentenceEncoder"):
        if vars(module).get(name, type).__module__ == module.__name__:
            vars(module)[name].tpu = False


@patch(
    "fairseq.models.roberta.model",
    because="fairseq 0.12 renames emb_layer_norm in checkpoints of RoBERTa: models of plugins for "
    "0.10 with a TransformerSentenceEncoder, which has this name, cannot load theirs",
)
def sentence_encoders_load_their_norm(module: PatchedModule) -> None:
    """Leave parameters their names where the model has them."""
    roberta = module.RobertaModel
    stock = roberta.upgrade_state_dict_named

    @functools.wraps(stock)
    def upgrade_state_dict_named(self: Any, state_dict: dict[str, Tensor], name: str) -> None:
        stock(self, state_dict, name)
        prefix = f"{name}." if name else ""
        present = {prefix + parameter for parameter in self.state_dict()}
        for renamed in [entry for entry in state_dict if entry not in present]:
            former = renamed.replace(".layernorm_embedding.", ".emb_layer_norm.")
            if former != renamed and former in present:
                state_dict[former] = state_dict.pop(renamed)

    roberta.upgrade_state_dict_named = upgrade_state_dict_named


@patch(
    "fairseq.utils",
    because="fairseq 0.10 keeps states of decoding by classes with with_incremental_state: "
    "attention of plugins for 0.9, which calls utils.get_incremental_state(self, ...), fails in "
    "generation with \"object has no attribute 'get_incremental_state'\"",
)
def layers_have_states_of_decoding(module: PatchedModule) -> None:
    """Keep states of decoding for modules of any class."""
    stock_get, stock_set = module.get_incremental_state, module.set_incremental_state

    @functools.wraps(stock_get)
    def get_incremental_state(module: Any, incremental_state: Any, key: str) -> Any:
        if hasattr(module, "get_incremental_state"):
            return stock_get(module, incremental_state, key)
        return None if incremental_state is None else incremental_state.get(state_key(module, key))

    @functools.wraps(stock_set)
    def set_incremental_state(module: Any, incremental_state: Any, key: str, value: Any) -> Any:
        if hasattr(module, "set_incremental_state"):
            return stock_set(module, incremental_state, key, value)
        if incremental_state is not None:
            incremental_state[state_key(module, key)] = value
        return incremental_state

    module.get_incremental_state = get_incremental_state
    module.set_incremental_state = set_incremental_state


def state_key(layer: Any, key: str) -> str:
    """Return the name of a state of this layer, as layers of fairseq 0.12 make it."""
    from fairseq.incremental_decoding_utils import FairseqIncrementalState

    states: Any = FairseqIncrementalState
    if "_incremental_state_id" not in vars(layer):
        states.init_incremental_state(layer)
    return str(states._get_full_incremental_state_key(layer, key))
