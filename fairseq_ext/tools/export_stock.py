"""One direction X -> Y of a dual model, written as a stock fairseq `transformer`.

Of ``dual_supervised_transformer`` that is one of its models as it is. Of ``dual_transformer``,
component X in its encoding role is the stock encoder, component Y in its decoding role the stock
decoder (`fairseq_ext/dual/modules.py`); the parameters only change names, and the fused projections
come apart. What the direction does not use is left out: the context attention of X. The encoder
layers carry no copies of parameters for torch's fused path (`in_proj_weight` ...): stock fairseq
0.12.2 fills its copies while it loads, and `fairseq_ext.compat` has none.

Dimensions: D model, V vocabulary.
"""

import argparse
import re

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
STOCK_WORDS = ("--task", "translation", "--arch", "transformer", "--optimizer", "adam")
STOCK_WORDS += ("--criterion", "label_smoothed_cross_entropy")
# options of the dual task that mean the same for the task `translation`
CARRIED = (
    "data",
    "left_pad_source",
    "left_pad_target",
    "max_source_positions",
    "max_target_positions",
    "truncate_source",
)


def component_parameters(parameters, language):
    """The entries `components.LANGUAGE.*` of a model's state dict, without that prefix."""
    prefix = f"components.{language}."
    return {
        name[len(prefix) :]: tensor
        for name, tensor in parameters.items()
        if name.startswith(prefix)
    }


def stock_side(component, side):
    """A component's parameters under the names of stock `side`, "encoder" or "decoder".

    component: {name inside the component: tensor}. Returns {stock name: tensor}; embeddings (V, D)
    are the given tensors themselves, so that what was shared stays shared in the file.
    Raises KeyError for a parameter that the stock transformer has no place for.
    """
    import torch

    decoding = side == "decoder"
    renamed = {
        f"{side}.version": torch.tensor([LAYOUT_VERSION]),
        f"{side}.embed_positions._float_tensor": torch.zeros(1),
    }
    for name, tensor in component.items():
        block = IN_BLOCK.fullmatch(name)
        if name == "embedding.weight":
            renamed[f"{side}.embed_tokens.weight"] = tensor
            if decoding:
                renamed["decoder.output_projection.weight"] = tensor
        elif name in ("final_norm.weight", "final_norm.bias"):
            renamed[f"{side}.layer_norm.{name.rpartition('.')[2]}"] = tensor
        elif block and block["part"] in BOTH_ROLES:
            renamed.update(_layer_part(side, block, BOTH_ROLES[block["part"]], tensor))
        elif block and block["part"] in DECODING_ROLE:
            if decoding:
                renamed.update(_layer_part(side, block, DECODING_ROLE[block["part"]], tensor))
        else:
            raise KeyError(name)
    return renamed


def _layer_part(side, block, parts, tensor):
    # clones: a slice would drag the storage of all its neighbours into the file
    pieces = [piece.clone() for piece in tensor.chunk(len(parts))]
    layer, kind = block["layer"], block["kind"]
    return {f"{side}.layers.{layer}.{part}.{kind}": piece for part, piece in zip(parts, pieces)}


def stock_parameters(parameters, source, target):
    """State dict of the stock model source -> target, from the state dict of a dual model.

    Raises KeyError, with the name, for a parameter that cannot be placed.
    """
    return {
        **stock_side(component_parameters(parameters, source), "encoder"),
        **stock_side(component_parameters(parameters, target), "decoder"),
    }


def stock_options(model, criterion):
    """The command line of fairseq-train (without data) that builds the stock model.

    model, criterion: these groups of the dual checkpoint's configuration, as dicts.
    """
    words = [*STOCK_WORDS, "--label-smoothing", str(criterion.get("label_smoothing", 0.0))]
    for side in ("encoder", "decoder"):
        words += [f"--{side}-embed-dim", str(model["embed_dim"])]
        words += [f"--{side}-ffn-embed-dim", str(model["ffn_embed_dim"])]
        words += [f"--{side}-attention-heads", str(model["attention_heads"])]
        words += [f"--{side}-layers", str(model["layers"])]
        if model["normalize_before"]:
            words.append(f"--{side}-normalize-before")
    for rate in ("dropout", "attention_dropout", "activation_dropout"):
        words += [f"--{rate.replace('_', '-')}", str(model[rate])]
    shared = "all-embeddings" if model["share_all_embeddings"] else "decoder-input-output-embed"
    words.append(f"--share-{shared}")
    return words


def stock_config(words, task, source, target):
    """What fairseq-train with these options would store as `cfg` in its checkpoints.

    words: of `stock_options`; task: that group of the dual checkpoint's configuration.
    Returns a dict of plain values, and an argparse.Namespace for the model, as stock has it.
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
    # not by the command line: its booleans cannot be set to a value, and hydra, on the way, does
    # not take every path
    for name in CARRIED:
        if name in task:
            config["task"][name] = task[name]
            setattr(config["model"], name, task[name])
    return config


class DualModel:
    """A ``dual_transformer``: a direction is made of two components, each in one role."""

    @staticmethod
    def lack(state, source, target):
        """What the checkpoint has instead of the direction, for an error; None if it has it."""
        known = members(state["model"], "components")
        if source != target and {source, target} <= set(known):
            return None
        pairs = state["cfg"]["model"]["lang_pairs"]
        return f"was trained for {pairs} and can translate between any two of {', '.join(known)}"

    @staticmethod
    def embeddings(source, target):
        """{language: name of its embedding}."""
        return {lang: f"components.{lang}.embedding.weight" for lang in (source, target)}

    @staticmethod
    def parameters(parameters, source, target):
        """State dict of the stock model; KeyError, with the name, for one without a place."""
        return stock_parameters(parameters, source, target)

    @staticmethod
    def config(model, criterion, task, source, target):
        """`stock_config` with the options of the dual model."""
        return stock_config(stock_options(model, criterion), task, source, target)


class SeparateModels:
    """A ``dual_supervised_transformer``: a direction is one of its models as it is."""

    @staticmethod
    def lack(state, source, target):
        known = members(state["model"], "models")
        return None if f"{source}-{target}" in known else f"has models of {', '.join(known)}"

    @staticmethod
    def embeddings(source, target):
        sides = {source: "encoder", target: "decoder"}
        return {
            lang: f"models.{source}-{target}.{side}.embed_tokens.weight"
            for lang, side in sides.items()
        }

    @staticmethod
    def parameters(parameters, source, target):
        prefix = f"models.{source}-{target}."
        own = [name for name in parameters if name.startswith(prefix)]
        return {name[len(prefix) :]: parameters[name] for name in own}

    @staticmethod
    def config(model, criterion, task, source, target):
        """`stock_config` with the options in the model's Namespace."""
        from fairseq.models.transformer import TransformerModel

        parser = argparse.ArgumentParser(argument_default=argparse.SUPPRESS)
        TransformerModel.add_args(parser)
        words = [*STOCK_WORDS, "--label-smoothing", str(criterion.get("label_smoothing", 0.0))]
        config = stock_config(words, task, source, target)
        # not as words: there is none for a switch that an architecture has set to False
        for option in parser._actions:
            if hasattr(model, option.dest):
                setattr(config["model"], option.dest, getattr(model, option.dest))
        return config


# registered model: what makes one of its directions a stock model
KINDS = {"dual_transformer": DualModel, "dual_supervised_transformer": SeparateModels}


def members(parameters, kind):
    """The names that a state dict has `components` or `models` for, sorted."""
    names = (re.match(rf"{kind}\.([^.]+)\.", name) for name in parameters)
    return sorted({found[1] for found in names if found})


def stock_checkpoint(kind, state, parameters, direction, origin):
    """A whole stock checkpoint, without optimiser state.

    kind: one of `KINDS`; state: the checkpoint; parameters: its model's state dict, or its moving
    average's; direction: (source, target); origin: the checkpoint's name, kept in `extra_state`.
    Raises KeyError as `stock_parameters` does.
    """
    cfg = state["cfg"]
    config = kind.config(cfg["model"], cfg.get("criterion") or {}, cfg["task"], *direction)
    history = dict(state["optimizer_history"][-1], lr_scheduler_state={})
    return {
        "args": None,
        "cfg": config,
        "model": kind.parameters(parameters, *direction),
        "criterion": None,
        "optimizer_history": [history],
        "task_state": {},
        "extra_state": {"exported_from": {"file": origin, "direction": "-".join(direction)}},
        "last_optimizer_state": None,
    }
