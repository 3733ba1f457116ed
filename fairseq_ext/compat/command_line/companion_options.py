"""Options that do nothing because another one is missing, or because it is there."""

from __future__ import annotations

import argparse
import sys
from typing import Dict, Iterator, NamedTuple, Tuple

from ..user_errors import option_of
from .chosen_classes import Values, chosen_model, declared_options
from .option_values import is_stock_alone
from .training_checks import is_training


class Needs(NamedTuple):
    """What an option needs to do anything.

    neutral: its value that asks for nothing.
    companions: options of which one must be on: "name", or "name=value".
    instead: what happens without them.
    """

    neutral: object
    companions: tuple[str, ...]
    instead: str


def _alike(neutral: object, names: str, companions: str, instead: str) -> dict[str, Needs]:
    """Return the entries of options with the same needs."""
    return {name: Needs(neutral, tuple(companions.split()), instead) for name in names.split()}


BETWEEN_EPOCHS = "no checkpoint is saved between epochs"
NO_AVERAGES = "no averages are computed"
NO_TRANSLATION = "validations do not translate"
NO_CLUSTERS = "words form no clusters"
ONE_WIDTH = "embeddings have one width"
WORDS = "words have embeddings of their own"
NO_SCALE = "no loss is scaled"
NOT_SHARDED = "no parameters are sharded"
# of fairseq-train
OF_TRAININGS: dict[str, Needs] = {
    **_alike(
        -1,
        "keep_interval_updates keep_interval_updates_pattern",
        "save_interval_updates",
        BETWEEN_EPOCHS,
    ),
    "ema_decay": Needs(0.9999, ("store_ema",), NO_AVERAGES),
    "ema_start_update": Needs(0, ("store_ema",), NO_AVERAGES),
    "ema_update_freq": Needs(1, ("store_ema",), NO_AVERAGES),
    "ema_seed_model": Needs(None, ("store_ema",), NO_AVERAGES),
    "ema_fp32": Needs(False, ("store_ema",), NO_AVERAGES),
    **_alike("{}", "eval_bleu_args eval_bleu_detok_args", "eval_bleu", NO_TRANSLATION),
    "eval_bleu_detok": Needs("space", ("eval_bleu",), NO_TRANSLATION),
    "eval_bleu_remove_bpe": Needs(None, ("eval_bleu",), NO_TRANSLATION),
    **_alike(False, "eval_bleu_print_samples eval_tokenized_bleu", "eval_bleu", NO_TRANSLATION),
    "adaptive_softmax_dropout": Needs(0, ("adaptive_softmax_cutoff",), NO_CLUSTERS),
    "adaptive_softmax_factor": Needs(4, ("adaptive_softmax_cutoff",), NO_CLUSTERS),
    **_alike(
        False, "tie_adaptive_weights tie_adaptive_proj", "adaptive_softmax_cutoff", NO_CLUSTERS
    ),
    "adaptive_input_factor": Needs(4, ("adaptive_input",), ONE_WIDTH),
    "adaptive_input_cutoff": Needs(None, ("adaptive_input",), ONE_WIDTH),
    "character_embedding_dim": Needs(4, ("character_embeddings",), WORDS),
    "char_embedder_highway_layers": Needs(2, ("character_embeddings",), WORDS),
    "quant_noise_pq_block_size": Needs(8, ("quant_noise_pq",), "no blocks are noised"),
    "no_decoder_final_norm": Needs(False, ("decoder_normalize_before",), "there is no such norm"),
    "base_sublayers": Needs(1, ("base_layers",), "the decoder has no layers of experts"),
    "base_shuffle": Needs(0, ("base_layers",), "the decoder has no layers of experts"),
    "min_params_to_wrap": Needs(100_000_000, ("ddp_backend=fully_sharded",), NOT_SHARDED),
    **_alike(
        False,
        "cpu_offload fp32_reduce_scatter no_reshard_after_forward not_fsdp_flatten_parameters "
        "use_sharded_state",
        "ddp_backend=fully_sharded",
        NOT_SHARDED,
    ),
    "ddp_comm_hook": Needs(
        "none",
        ("ddp_backend=pytorch_ddp", "ddp_backend=c10d"),
        "workers exchange gradients as they are",
    ),
    "slowmo_momentum": Needs(None, ("ddp_backend=slowmo",), "workers average every gradient"),
    "localsgd_frequency": Needs(3, ("ddp_backend=slowmo",), "workers average every gradient"),
    "fp16_init_scale": Needs(128, ("fp16", "memory_efficient_fp16"), NO_SCALE),
    "fp16_scale_tolerance": Needs(0, ("fp16", "memory_efficient_fp16"), NO_SCALE),
    **_alike(
        None, "fp16_scale_window threshold_loss_scale", "fp16 memory_efficient_fp16", NO_SCALE
    ),
    "min_loss_scale": Needs(0.0001, ("fp16", "memory_efficient_fp16", "amp"), NO_SCALE),
    "amp_init_scale": Needs(128, ("amp",), NO_SCALE),
    "amp_scale_window": Needs(None, ("amp",), NO_SCALE),
    "amp_batch_retries": Needs(2, ("amp",), NO_SCALE),
    "shorten_data_split_list": Needs(
        "",
        ("shorten_method=truncate", "shorten_method=random_crop"),
        "no line is shortened",
    ),
    "freq_weighted_replacement": Needs(
        False, ("random_token_prob",), "no word is replaced by another"
    ),
}
# of searches: fairseq-generate and fairseq-interactive
OF_SEARCHES: dict[str, Needs] = {
    "lm_weight": Needs(0, ("lm_path",), "no language model is read"),
    "diverse_beam_strength": Needs(0.5, ("diverse_beam_groups",), "hypotheses form no groups"),
    "retain_dropout_modules": Needs(None, ("retain_dropout",), "dropout is off"),
}
# {option: (its neutral value, the option with which it does nothing, what happens)}
Excluded = Dict[str, Tuple[object, str, str]]


def _beside(other: str, instead: str, **neutral: object) -> Excluded:
    """Return the entries of options that do nothing beside another one."""
    return {name: (value, other, instead) for name, value in neutral.items()}


EXCLUDED_IN_TRAININGS: Excluded = {
    **_beside("no_epoch_checkpoints", "no epoch has a checkpoint", keep_last_epochs=-1),
    **_beside(
        "no_token_positional_embeddings",
        "there are no positions",
        encoder_learned_pos=False,
        decoder_learned_pos=False,
    ),
    **_beside("continue_once", "the run begins with the latter", finetune_from_model=None),
    **_beside("reset_optimizer", "the optimizer begins anew", optimizer_overrides="{}"),
    **_beside(
        "disable_validation",
        "there are no scores",
        patience=-1,
        keep_best_checkpoints=-1,
        best_checkpoint_metric="loss",
        maximize_best_checkpoint_metric=False,
    ),
    **_beside(
        "disable_validation",
        "nothing is validated",
        eval_bleu=False,
        validate_interval=1,
        validate_interval_updates=0,
        validate_after_updates=0,
        max_valid_steps=None,
        combine_valid_subsets=None,
        ignore_unused_valid_subsets=False,
    ),
}
EXCLUDED_IN_SEARCHES: Excluded = {
    **_beside("unnormalized", "scores are sums over words", lenpen=1),
    **_beside(
        "score_reference",
        "references are scored, nothing is searched",
        sampling=False,
        diverse_beam_groups=-1,
        diversity_rate=-1,
        match_source_len=False,
        no_repeat_ngram_size=0,
        min_len=1,
        max_len_a=0,
        prefix_size=0,
        nbest=1,
    ),
}
# options of fairseq-generate that fairseq-train declares: {option: its neutral value}
OF_GENERATE = {"gen_subset": "test", "num_shards": 1, "shard_id": 0}


def idle_options(values: Values) -> Iterator[str]:
    """Yield why an option does nothing, for each one that is set and lacks or meets another."""
    if is_training(values):
        yield from _without_companions(values, OF_TRAININGS)
        yield from _excluded(values, EXCLUDED_IN_TRAININGS)
        for name, neutral in OF_GENERATE.items():
            if name in values and values[name] not in (None, neutral) and is_stock_alone(values):
                yield f"{option_of(name, values[name])} does nothing in fairseq-train"
        yield from _of_recordings(values)
    elif "beam" in values and is_stock_alone(values):
        yield from _without_companions(values, OF_SEARCHES)
        yield from _excluded(values, EXCLUDED_IN_SEARCHES)


def _of_recordings(values: Values) -> Iterator[str]:
    """Yield texts for the sizes of recordings, which --task speech_to_text reads from a file."""
    preset = _preset(values)
    if values.get("task") != "speech_to_text" or not is_stock_alone(values):
        return
    for name, neutral in (("input_feat_per_channel", 80), ("input_channels", 1)):
        if values.get(name) not in (None, neutral, preset.get(name)):
            yield f"{option_of(name, values[name])} does nothing: --config-yaml has its value"


def _without_companions(values: Values, table: dict[str, Needs]) -> Iterator[str]:
    """Yield texts for options whose companions are all off."""
    preset, names = _preset(values), _declared(values)
    for name, needs in table.items():
        if name not in values or values[name] in (None, needs.neutral, preset.get(name)):
            continue
        # where another project's task declares one of the two, it is not among the values
        declared = [text for text in needs.companions if text.partition("=")[0] in names]
        if not declared or any(is_on(values, text) for text in declared):
            continue
        others = " or ".join(option_of(*text.split("=")) for text in declared)
        yield f"{option_of(name)} does nothing without {others}: {needs.instead}"


def _declared(values: Values) -> set[str]:
    """Return the options that there are: those with a value, and those of a stock model.

    Some models of fairseq leave an option that nobody sets without a value.
    """
    names = set(values)
    model = chosen_model(values)
    if model is not None and is_stock_alone(values):
        names |= declared_options(model)
    return names


def _excluded(values: Values, table: Excluded) -> Iterator[str]:
    """Yield texts for options that do nothing beside another one."""
    preset = _preset(values)
    for name, (neutral, other, instead) in table.items():
        if not values.get(other) or values.get(name) in (None, neutral, preset.get(name)):
            continue
        yield f"{option_of(name)} does nothing with {option_of(other)}: {instead}"


def is_on(values: Values, companion: str) -> bool:
    """True if an option is set: above 0 where it is a number, and to a value where one is named."""
    name, _, expected = companion.partition("=")
    value = values.get(name)
    if expected:
        return str(value) == expected
    return value > 0 if isinstance(value, (int, float)) else bool(value)


def _preset(values: Values) -> dict[str, object]:
    """Return what the architecture sets, which nobody has asked for."""
    if chosen_model(values) is None:
        return {}
    preset = argparse.Namespace()
    try:
        sys.modules["fairseq.models"].ARCH_CONFIG_REGISTRY[values["arch"]](preset)
    except (AttributeError, KeyError):  # of options without a default
        return {}
    return vars(preset)
