"""The ranges of fairseq's numeric options. `option_checks` reads this table."""

from __future__ import annotations

import math
from typing import NamedTuple


class Range(NamedTuple):
    """Numbers from `low` to `high`, and the values in `also`, each with its meaning.

    open_low, open_high: the end itself is not allowed. No range contains NaN, and infinity only
    where `also` names it.
    """

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    also: tuple[tuple[float, str], ...] = ()

    def has(self, value: float) -> bool:
        """Return True if the value is allowed."""
        if any(value == extra for extra, _ in self.also):
            return True
        if not math.isfinite(value):
            return False
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return above and below

    def words(self) -> str:
        """Return the range in words: "at least 1, or -1 (no limit)"."""
        parts = []
        if math.isfinite(self.low):
            parts.append(f"{'more than' if self.open_low else 'at least'} {self.low:g}")
        if math.isfinite(self.high):
            parts.append(f"{'less than' if self.open_high else 'at most'} {self.high:.10g}")
        shown = " and ".join(parts) or "any finite number"
        return shown + "".join(f", or {value:g} ({words})" for value, words in self.also)


FINITE = Range()
POSITIVE = Range(0, open_low=True)
COUNT = Range(1)
FROM_0 = Range(0)
PROBABILITY = Range(0, 1)
FRACTION = Range(0, 1, open_high=True)
SEED = Range(0, 2**32 - 1)
OFF = Range(-1)  # limits that fairseq takes as "off" at -1 and 0
NO_LIMIT = Range(1, also=((-1, "off"),))


def _all(limits: Range, names: str) -> dict[str, Range]:
    """Return the same range for several options."""
    return {name: limits for name in names.split()}


# by the name that argparse stores: the option without its hyphens
RANGES: dict[str, Range] = {
    # what every command has
    "seed": SEED,
    "fixed_validation_seed": FINITE,  # of torch alone, which takes negative ones
    **_all(
        COUNT,
        "log_interval fp16_scale_window amp_scale_window all_gather_list_size model_parallel_size",
    ),
    **_all(POSITIVE, "fp16_init_scale amp_init_scale threshold_loss_scale"),
    **_all(PROBABILITY, "fp16_scale_tolerance"),
    **_all(FROM_0, "min_loss_scale amp_batch_retries"),
    "empty_cache_freq": OFF,
    # data and batches
    **_all(
        COUNT,
        "max_tokens batch_size max_tokens_valid batch_size_valid required_batch_size_multiple "
        "required_seq_len_multiple validate_interval num_shards",
    ),
    **_all(FROM_0, "num_workers max_valid_steps shard_id"),
    **_all(
        OFF,
        "data_buffer_size validate_interval_updates validate_after_updates curriculum "
        "num_batch_buckets",
    ),
    # several processes
    **_all(COUNT, "distributed_world_size distributed_num_procs bucket_cap_mb nprocs_per_node"),
    **_all(COUNT, "localsgd_frequency"),
    **_all(FROM_0, "distributed_rank pipeline_chunks"),
    "distributed_port": Range(0, 65535, also=((-1, "no port"),)),
    # optimisation
    **_all(FROM_0, "max_epoch max_update lr"),
    "stop_time_hours": OFF,
    "clip_norm": Range(-1, also=((math.inf, "measured only"),)),  # off at 0 and below
    "update_freq": COUNT,
    "stop_min_lr": FINITE,
    **_all(FROM_0, "adam_eps adadelta_eps adamax_eps lamb_eps weight_decay adadelta_rho"),
    **_all(FRACTION, "momentum"),
    **_all(
        FROM_0,
        "warmup_updates warmup_steps hold_steps decay_steps min_lr end_learning_rate lr_patience",
    ),
    **_all(POSITIVE, "lr_shrink lr_decay t_mult"),
    **_all(FINITE, "warmup_init_lr power lr_threshold"),
    "total_num_update": POSITIVE,
    "lr_deacy_period": COUNT,
    "lr_period_updates": OFF,  # then from --max-update
    # checkpoints
    "save_interval": COUNT,
    "save_interval_updates": OFF,
    "keep_interval_updates_pattern": NO_LIMIT,
    **_all(OFF, "keep_interval_updates keep_last_epochs keep_best_checkpoints patience"),
    "checkpoint_shard_count": COUNT,
    "ema_decay": PROBABILITY,
    "ema_start_update": FROM_0,
    "ema_update_freq": COUNT,
    # search
    **_all(COUNT, "beam nbest iter_decode_with_beam softmax_batch"),
    **_all(FROM_0, "max_len_a min_len iter_decode_max_iter buffer_size"),
    "max_len_b": FINITE,  # below 0 with --max-len-a: `_lengths_in_order`
    **_all(OFF, "prefix_size no_repeat_ngram_size context_window"),
    **_all(FINITE, "lenpen unkpen diverse_beam_strength diversity_rate lm_weight"),
    "iter_decode_eos_penalty": FINITE,
    "sampling_topk": OFF,
    # fairseq takes 0 as "off": all words instead of the likeliest
    "sampling_topp": Range(0, 1, open_low=True, also=((-1, "off"),)),
    "temperature": POSITIVE,
    "diverse_beam_groups": OFF,
    # fairseq-preprocess
    **_all(OFF, "thresholdsrc thresholdtgt padding_factor nwordssrc nwordstgt"),
    "workers": COUNT,
    # criterions and tasks
    "label_smoothing": FRACTION,
    "ignore_prefix_size": OFF,
    # wav2vec's spans overlap: its probability may be above 1
    "mask_prob": FROM_0,
    **_all(PROBABILITY, "leave_unmasked_prob random_token_prob"),
    "mask_multiple_length": COUNT,
    **_all(COUNT, "tokens_per_sample max_source_positions max_target_positions"),
    # architectures
    **_all(FROM_0, "encoder_layers decoder_layers"),
    **_all(
        PROBABILITY,
        "dropout attention_dropout activation_dropout relu_dropout weight_dropout input_dropout "
        "encoder_dropout_in encoder_dropout_out decoder_dropout_in decoder_dropout_out "
        "adaptive_softmax_dropout encoder_layerdrop decoder_layerdrop quant_noise_pq "
        "quant_noise_scalar",
    ),
    **_all(
        COUNT,
        "encoder_embed_dim encoder_ffn_embed_dim encoder_attention_heads encoder_hidden_size "
        "decoder_embed_dim decoder_ffn_embed_dim decoder_attention_heads decoder_hidden_size "
        "decoder_input_dim decoder_output_dim decoder_out_embed_dim quant_noise_pq_block_size "
        "encoder_conv_dim decoder_conv_dim",
    ),
}
