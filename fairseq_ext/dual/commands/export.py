"""The exporters of one direction X -> Y of a dual model as a stock fairseq `transformer`.

- ``dual_supervised_transformer``: the direction is one of its models as it is.
- ``tagged_transformer``: the tag of Y becomes the encoder's vector of the end symbol.
- ``dual_transformer``: component X in its encoding role is the stock encoder, component Y in its
  decoding role the stock decoder (`dual/transformer/modules.py`). The parameters only change names,
  and the fused projections come apart. The context attention of X is left out, which the direction
  does not use.

The encoder layers carry no copies of parameters for torch's fused path (`in_proj_weight` ...):
stock fairseq 0.12.2 fills its copies while it loads, and `fairseq_ext.compat` has none.

Dimensions: D model, V vocabulary.
"""

import argparse
import re
from typing import Any, Dict, List, Match, Optional, Tuple

from torch import Tensor

from ...compat.user_errors import option_of
from ...tools import UsageError
from ...tools.export.protocol import (
    Checkpoint,
    DirectionExporter,
    Exporters,
    Group,
    Parameters,
    namespace_of,
)

# sub-module of a Block: sub-modules of the stock layer that hold its rows, one after the other
BOTH_ROLES = {
    "self_attention.qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention.output": ("self_attn.out_proj",),
    "self_attention_norm": ("self_attn_layer_norm",),
    "feed_forward_in": ("fc1",),
    "feed_forward_out": ("fc2",),
    "feed_forward_norm": ("final_layer_norm",),
}
DECODING_ROLE = {
    "context_attention.query": ("encoder_attn.q_proj",),
    "context_attention.key_value": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "context_attention.output": ("encoder_attn.out_proj",),
    "context_attention_norm": ("encoder_attn_layer_norm",),
}
IN_BLOCK = re.compile(r"blocks\.(?P<layer>\d+)\.(?P<part>[\w.]+)\.(?P<kind>weight|bias)")
# layout of stock state dicts since fairseq 0.6.2: output projection and final norm have own names
LAYOUT_VERSION = 3.0
STOCK_WORDS = (
    "--task translation --arch transformer --optimizer adam "
    "--criterion label_smoothed_cross_entropy --label-smoothing"
).split()
# the end symbol in every dictionary of fairseq
END = 2
# options of the dual task that mean the same for the task `translation`
CARRIED = (
    "data",
    "left_pad_source",
    "left_pad_target",
    "max_source_positions",
    "max_target_positions",
    "truncate_source",
)


def below(prefix: str, parameters: Parameters) -> Parameters:
    """Return the entries of a state dict whose names begin with `prefix`, without it."""
    return {
        name[len(prefix) :]: tensor
        for name, tensor in parameters.items()
        if name.startswith(prefix)
    }


def stock_side(component: Parameters, side: str) -> Parameters:
    """Return a component's parameters under the names of stock `side`, "encoder" or "decoder".

    component: {name inside the component: tensor}. Embeddings (V, D) are not copied, so that what
    was shared stays shared in the file. Raises KeyError for a parameter that the stock transformer
    has no place for.
    """
    import torch

    decoding = side == "decoder"
    renamed = {
        f"{side}.version": torch.tensor([LAYOUT_VERSION]),
        # stock fairseq stores a tensor for the device of its sinusoidal positions
        f"{side}.embed_positions._float_tensor": torch.zeros(1),
    }
    for name, tensor in component.items():
        block = IN_BLOCK.fullmatch(name)
        if name == "embedding.weight":
            renamed[f"{side}.embed_tokens.weight"] = tensor
            if decoding:
                softmax = component.get("softmax.weight", tensor)
                # phi^h is the embedding where it has no matrix of its own
                renamed["decoder.output_projection.weight"] = softmax
        elif name == "softmax.weight":
            continue  # placed with the embedding
        elif name in ("final_norm.weight", "final_norm.bias"):
            renamed[f"{side}.layer_norm.{name.rpartition('.')[2]}"] = tensor
        elif block and block["part"] in BOTH_ROLES:
            renamed.update(_layer_part(side, block, BOTH_ROLES[block["part"]], tensor))
        elif block and block["part"] in DECODING_ROLE:
            # the source's component has them too, but its direction never reads them
            if decoding:
                renamed.update(_layer_part(side, block, DECODING_ROLE[block["part"]], tensor))
        else:
            raise KeyError(name)
    return renamed


def _layer_part(side: str, block: Match[str], parts: Tuple[str, ...], tensor: Tensor) -> Parameters:
    """Return the rows of a projection under the names of the stock layer's ``parts``."""
    # clones: a slice would drag the storage of all its neighbours into the file
    pieces = [piece.clone() for piece in tensor.chunk(len(parts))]
    layer, kind = block["layer"], block["kind"]
    return {f"{side}.layers.{layer}.{part}.{kind}": piece for part, piece in zip(parts, pieces)}


def stock_options(model: Dict[str, Any], criterion: Dict[str, Any]) -> List[str]:
    """Return the command line of fairseq-train (without data) that builds the stock model.

    model, criterion: these groups of the dual checkpoint's configuration, as dicts.
    """
    words = [*STOCK_WORDS, str(criterion.get("label_smoothing", 0.0))]
    for side in ("encoder", "decoder"):
        words += [f"--{side}-embed-dim", str(model["embed_dim"])]
        words += [f"--{side}-ffn-embed-dim", str(model["ffn_embed_dim"])]
        words += [f"--{side}-attention-heads", str(model["attention_heads"])]
        words += [f"--{side}-layers", str(model["layers"])]
        if model["normalize_before"]:
            words.append(f"--{side}-normalize-before")
    for rate in ("dropout", "attention_dropout", "activation_dropout"):
        words += [option_of(rate), str(model[rate])]
    if model["share_all_embeddings"]:
        words.append("--share-all-embeddings")
    elif not model.get("separate_softmax"):
        words.append("--share-decoder-input-output-embed")
    return words


def stock_config(
    words: List[str], task: Dict[str, Any], source: str, target: str
) -> Dict[str, Group]:
    """Return what fairseq-train with these options would store as `cfg` in its checkpoints.

    The groups are dicts of plain values; that of the model is an argparse.Namespace, as stock has.

    words: of `stock_options`; task: that group of the dual checkpoint's configuration.
    """
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from omegaconf import OmegaConf

    parser = options.get_training_parser(default_task="translation")
    words = ["data", "-s", source, "-t", target, *words]
    namespace = options.parse_args_and_arch(parser, input_args=words)
    config = OmegaConf.to_container(
        convert_namespace_to_omegaconf(namespace), resolve=True, enum_to_str=True
    )
    # these do not go through the command line: its booleans cannot be set to a value, and hydra
    # does not take every path
    for name in CARRIED:
        if name in task:
            config["task"][name] = task[name]
            setattr(config["model"], name, task[name])
    return config


class RolesExporter:
    """Exports directions whose roles were trained, by whichever pairs."""

    def lack(self, state: Checkpoint, source: str, target: str) -> Optional[str]:
        """Return what was trained instead of the direction, None if both of its roles were."""
        from ...streams.language_pair import sides
        from ...streams.stored_pairs import stored_pairs
        from ..transformer.roles import has_roles

        pairs = stored_pairs(state["cfg"]["model"])
        if has_roles(source, target, pairs):
            return None
        read, written = (", ".join(langs) for langs in sides(pairs))
        return f"was trained for {', '.join(pairs)}: it reads {read} and writes {written}"


class DualTransformerExporter(RolesExporter):
    """Exports a ``dual_transformer``: a direction is made of two components, each in one role."""

    def embeddings(self, source: str, target: str) -> Dict[str, str]:
        """Return {language: name of its embedding}."""
        return {lang: f"components.{lang}.embedding.weight" for lang in (source, target)}

    def parameters(self, parameters: Parameters, source: str, target: str) -> Parameters:
        """Return the stock state dict; KeyError, with the name, for a parameter without a place."""
        return {
            **stock_side(below(f"components.{source}.", parameters), "encoder"),
            **stock_side(below(f"components.{target}.", parameters), "decoder"),
        }

    def config(
        self, model: Any, criterion: Dict[str, Any], task: Dict[str, Any], source: str, target: str
    ) -> Dict[str, Group]:
        """Return `stock_config` with the options of the dual model."""
        return stock_config(stock_options(model, criterion), task, source, target)


class SeparateModelsExporter:
    """Exports a ``dual_supervised_transformer``: a direction is one of its models as it is."""

    def lack(self, state: Checkpoint, source: str, target: str) -> Optional[str]:
        """Return what the checkpoint has instead of the direction, for an error, or None."""
        pairs = trained_pairs(state["model"])
        return None if f"{source}-{target}" in pairs else f"has models of {', '.join(pairs)}"

    def embeddings(self, source: str, target: str) -> Dict[str, str]:
        """Return {language: name of its embedding}."""
        sides = {source: "encoder", target: "decoder"}
        return {
            lang: f"models.{source}-{target}.{side}.embed_tokens.weight"
            for lang, side in sides.items()
        }

    def parameters(self, parameters: Parameters, source: str, target: str) -> Parameters:
        """Return the state dict of the direction's model."""
        return below(f"models.{source}-{target}.", parameters)

    def config(
        self, model: Any, criterion: Dict[str, Any], task: Dict[str, Any], source: str, target: str
    ) -> Dict[str, Group]:
        """Return `stock_config` with the options of the model."""
        return trained_config(model, criterion, task, source, target)


class TaggedExporter(RolesExporter):
    """Exports a ``tagged_transformer``: the encoder of a direction has a vector of its own.

    The end of a source is the only place where the encoder reads the vector of the end symbol, so
    that the stock model computes the same. Its encoder no longer shares its embedding.
    """

    def embeddings(self, source: str, target: str) -> Dict[str, str]:
        """Return {language: name of its embedding}."""
        sides = {source: "encoder", target: "decoder"}
        return {lang: f"transformer.{side}.embed_tokens.weight" for lang, side in sides.items()}

    def parameters(self, parameters: Parameters, source: str, target: str) -> Parameters:
        """Return the state dict of the direction's model."""
        stock, embedding = below("transformer.", parameters), "encoder.embed_tokens.weight"
        stock[embedding] = stock[embedding].clone()
        stock[embedding][END] = parameters[f"tags.{target}"]
        return stock

    def config(
        self, model: Any, criterion: Dict[str, Any], task: Dict[str, Any], source: str, target: str
    ) -> Dict[str, Group]:
        """Return `stock_config` with the options of the model.

        UsageError for --quant-noise-scalar: fairseq quantises the vectors of the dictionary by
        their range, of which a tag is no part.
        """
        noise = getattr(namespace_of(model), "quant_noise_scalar", None)
        if noise:
            raise UsageError(
                f"--quant-noise-scalar {noise}: the checkpoint was trained with it, and as the end "
                "symbol of fairseq's transformer the tag would be quantised, and the words "
                "otherwise than now; allowed: a model that was trained without it"
            )
        config = trained_config(model, criterion, task, source, target)
        stock = config["model"]
        assert isinstance(stock, argparse.Namespace)
        if stock.share_all_embeddings:
            stock.share_all_embeddings, stock.share_decoder_input_output_embed = False, True
        return config


def trained_config(
    model: Any, criterion: Dict[str, Any], task: Dict[str, Any], source: str, target: str
) -> Dict[str, Group]:
    """Return `stock_config` with the options of fairseq's transformer among the model's."""
    from fairseq.models.transformer import TransformerModel

    parser = argparse.ArgumentParser(argument_default=argparse.SUPPRESS)
    TransformerModel.add_args(parser)
    words = [*STOCK_WORDS, str(criterion.get("label_smoothing", 0.0))]
    config = stock_config(words, task, source, target)
    # A copy of the values, since words cannot express a switch that an architecture has set to
    # False. Options that the checkpoint was written without keep their default.
    trained, stock = vars(namespace_of(model)), config["model"]
    assert isinstance(stock, argparse.Namespace)
    names = [action.dest for action in parser._actions if action.dest in trained]
    # of the layers that are left, fairseq would leave out some once more
    names = [name for name in names if not name.endswith("_layers_to_keep")]
    vars(stock).update({name: trained[name] for name in names})
    return config


def trained_pairs(parameters: Parameters) -> List[str]:
    """Return the directions that a ``dual_supervised_transformer`` has a model of, sorted."""
    matches = (re.match(r"models\.([^.]+)\.", name) for name in parameters)
    return sorted({match[1] for match in matches if match})


def exporters() -> Exporters:
    """Return the exporters for `fairseq-ext export`."""
    directions: Dict[str, DirectionExporter] = {
        "dual_transformer": DualTransformerExporter(),
        "dual_supervised_transformer": SeparateModelsExporter(),
        "tagged_transformer": TaggedExporter(),
    }
    return Exporters(directions, whole={})
