"""Checks of options of fairseq-train that need a package, a GPU or another option."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from typing import Callable

from ..data.folder_dictionaries import folders_have_one_dictionary
from ..user_errors import OptionError, option_of
from .chosen_classes import (
    READING_PADDING,
    Values,
    chosen_classes,
    chosen_model,
    is_language_model,
    names_of_bases,
)
from .option_values import is_stock_alone, is_true


def is_training(values: Values) -> bool:
    """True if they are options of fairseq-train: other commands take some, and read none."""
    return "update_freq" in values


def _number(value: object) -> int | None:
    """Return a width; None for one that is not given or is a reference, "${..}".

    A width that is another's by default comes from the command line as a text.
    """
    return int(value) if isinstance(value, (int, str)) and str(value).isdigit() else None


def _tpus_have_their_library(values: Values) -> None:
    """Raise OptionError for --tpu without torch_xla."""
    if values.get("tpu") and importlib.util.find_spec("torch_xla") is None:
        raise OptionError("--tpu: torch_xla is not installed; allowed: with it, or leave it out")


def _sharding_has_its_library(values: Values) -> None:
    """Raise OptionError for what fairseq leaves to fairscale, where that is not installed."""
    if not is_training(values) or importlib.util.find_spec("fairscale") is not None:
        return
    asked = (
        ("--zero-sharding", values.get("zero_sharding"), ("os",), "none"),
        (
            "--ddp-backend",
            values.get("ddp_backend"),
            ("fully_sharded", "slowmo"),
            "pytorch_ddp, legacy_ddp or no_c10d",
        ),
    )
    for name, value, needing, others in asked:
        if value in needing:
            raise OptionError(
                f"{name} {value}: fairscale is not installed (pip install fairscale); allowed "
                f"without it: {others}"
            )


def _composite_has_groups(values: Values) -> None:
    """Raise OptionError for --optimizer composite without the groups that it is made of."""
    if is_training(values) and values.get("optimizer") == "composite" and not values.get("groups"):
        raise OptionError(
            "--optimizer composite: its groups (optimizer.groups) can only be set in a "
            "configuration of fairseq-hydra-train; allowed: another optimizer"
        )


def _passed_rates_have_a_schedule(values: Values) -> None:
    """Raise OptionError for --lr-scheduler pass_through with an optimiser that has no schedule."""
    if not is_training(values) or values.get("lr_scheduler") != "pass_through":
        return
    optimizer = values.get("optimizer")
    if optimizer not in (None, "composite") and is_stock_alone(values):
        raise OptionError(
            f"--lr-scheduler pass_through with --optimizer {optimizer}, which has no schedule of "
            "its own; allowed: another schedule"
        )


def _profiles_have_a_gpu(values: Values) -> None:
    """Raise OptionError for --profile without a GPU."""
    if not is_training(values) or not values.get("profile"):
        return
    import torch  # the training has it already

    if not torch.cuda.is_available():
        raise OptionError(
            "--profile: torch sees no GPU, and only operations there are marked; allowed: leave it "
            "out"
        )


def _shared_embeddings_have_the_width(values: Values) -> None:
    """Raise OptionError for an output of another width than the embeddings that it shares."""
    width = _number(values.get("decoder_output_dim"))
    shared = ("share_decoder_input_output_embed", "share_all_embeddings")
    sharing = [name for name in shared if values.get(name)]
    # an adaptive softmax has matrices of its own
    if width is None or not sharing or values.get("adaptive_softmax_cutoff"):
        return
    if not is_stock_alone(values):
        return
    is_of_text = any(map(is_language_model, chosen_classes(values)))
    of_embeddings = "decoder_input_dim" if is_of_text else "decoder_embed_dim"
    expected = _number(values.get(of_embeddings))
    if expected is not None and width != expected:
        raise OptionError(
            f"--decoder-output-dim {width} with {option_of(sharing[0])}, whose embeddings have "
            f"{option_of(of_embeddings, expected)}; allowed: {expected}"
        )


def _tied_clusters_are_the_same(values: Values) -> None:
    """Raise OptionError for --tie-adaptive-weights without an adaptive input of the same form."""
    if not is_training(values) or not values.get("tie_adaptive_weights"):
        return
    if not values.get("adaptive_softmax_cutoff") or not is_stock_alone(values):
        return
    if not values.get("adaptive_input"):
        raise OptionError(
            "--tie-adaptive-weights: the embeddings have no clusters to tie; allowed: with "
            "--adaptive-input (of language models)"
        )
    pairs = (
        ("adaptive_softmax_cutoff", "adaptive_input_cutoff"),
        ("adaptive_softmax_factor", "adaptive_input_factor"),
        ("decoder_output_dim", "decoder_input_dim"),
    )
    for name, other in pairs:
        value, expected = values.get(name), values.get(other)
        if value != expected:
            raise OptionError(
                f"{option_of(name, value)} with --tie-adaptive-weights and "
                f"{option_of(other, expected)}; allowed: the same for both"
            )


def _only_the_next_word_is_predicted(values: Values) -> None:
    """Raise OptionError for targets that fairseq's language models do not have."""
    if not is_training(values) or not is_stock_alone(values):
        return
    if not any(map(is_language_model, chosen_classes(values))):
        return
    for name in ("self_target", "past_target"):
        if values.get(name):
            raise OptionError(
                f"{option_of(name)}: fairseq's language models predict the next word alone; "
                "allowed: --future-target"
            )


def _targets_begin_with_words(values: Values) -> None:
    """Raise OptionError for targets padded on the left, in a decoder that reads the padding."""
    if not is_training(values) or not is_true(values, "left_pad_target"):
        return
    model = chosen_model(values)
    if model is not None and (model.__module__, model.__name__) in READING_PADDING:
        raise OptionError(
            f"--left-pad-target with --arch {values['arch']}, whose decoder would read the "
            "padding before the words; allowed: leave it out"
        )


def _positions_have_their_attention(values: Values) -> None:
    """Raise OptionError for positions of a conformer that its attention does not read."""
    if not is_training(values) or not is_stock_alone(values):
        return
    attention, positions = values.get("attn_type"), values.get("pos_enc_type")
    if attention not in (None, "", "espnet"):
        raise OptionError(f"--attn-type {attention} is not known; allowed: espnet, or leave it out")
    if positions not in (None, "abs", "rel_pos", "rope"):
        raise OptionError(f"--pos-enc-type {positions} is not known; allowed: abs, rel_pos or rope")
    if positions in ("rel_pos", "rope") and attention != "espnet":
        raise OptionError(
            f"--pos-enc-type {positions}: the attention does not read these positions; allowed: "
            "with --attn-type espnet, or abs"
        )


def _one_precision_is_chosen(values: Values) -> None:
    """Raise OptionError for --amp with parameters of 16 bits, of which it keeps no others.

    --amp computes in 16 bits with parameters in single precision. With --bf16 its optimiser would
    move the parameters of 16 bits themselves, and small steps would be rounded away.
    """
    if not is_training(values) or not values.get("amp"):
        return
    for name in ("memory_efficient_fp16", "memory_efficient_bf16", "fp16", "bf16"):
        if values.get(name):
            raise OptionError(
                f"--amp with {option_of(name)}: both choose the precision; allowed: one of the two"
            )


def _folders_have_one_dictionary(values: Values) -> None:
    """Raise OptionError for data folders whose words have other numbers than the first's."""
    if is_training(values):  # other commands read the first alone
        folders_have_one_dictionary(values)


def _experts_have_workers(values: Values) -> None:
    """Raise OptionError for layers of experts in one process: each worker holds one of them."""
    layers = values.get("base_layers") or 0
    if not is_training(values) or not layers or not is_stock_alone(values):
        return
    workers = values.get("distributed_world_size") or 1
    # those of torchrun and of SLURM are counted later
    started = int(os.environ.get("WORLD_SIZE") or 1) > 1 or "SLURM_JOB_ID" in os.environ
    if workers == 1 and not started:
        raise OptionError(
            f"--base-layers {layers} with one worker, and each worker holds one expert of a layer; "
            "allowed: --distributed-world-size of at least 2, or leave it out"
        )


def _attention_is_a_switch(values: Values) -> None:
    """Raise OptionError for --decoder-attention of LSTMs with another value than True or False."""
    value, model = values.get("decoder_attention"), chosen_model(values)
    if value is None or model is None or not is_training(values):
        return
    if "LSTMModel" in names_of_bases(model) and str(value) not in ("True", "False", "1", "0"):
        raise OptionError(f"--decoder-attention {value} is not allowed; allowed: True or False")


def _records_are_left_out(values: Values) -> None:
    """Raise OptionError for options that nobody sets: they are written for who reads them later.

    The field of such an option says by whom, with "written_by" in its metadata.
    """
    if not is_training(values):
        return
    for entry in chosen_classes(values):
        options = getattr(entry, "__dataclass", None)  # where fairseq registers it
        if options is None:
            continue
        for field in dataclasses.fields(options):
            value, author = values.get(field.name), field.metadata.get("written_by")
            if author and value not in (None, field.default):
                raise OptionError(
                    f"{option_of(field.name, value)}: {author} writes it; allowed: leave it out"
                )


COMPARISONS: tuple[Callable[[Values], None], ...] = (
    _tpus_have_their_library,
    _sharding_has_its_library,
    _composite_has_groups,
    _passed_rates_have_a_schedule,
    _profiles_have_a_gpu,
    _shared_embeddings_have_the_width,
    _tied_clusters_are_the_same,
    _only_the_next_word_is_predicted,
    _targets_begin_with_words,
    _positions_have_their_attention,
    _one_precision_is_chosen,
    _folders_have_one_dictionary,
    _experts_have_workers,
    _attention_is_a_switch,
    _records_are_left_out,
)
