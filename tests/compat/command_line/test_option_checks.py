"""Options whose values make no sense are refused when they are read, by name."""

import math

import pytest

from fairseq_ext.compat.command_line.option_checks import check
from fairseq_ext.compat.user_errors import OptionError

REFUSED = [
    ("update_freq", [0]), ("update_freq", [2, -1]), ("lr", [-1.0]), ("lr", [math.nan]),
    ("batch_size", 0), ("batch_size", -3), ("max_tokens", 0), ("max_tokens_valid", "0"),
    ("beam", 0), ("beam", -2), ("nbest", 0), ("lenpen", math.nan), ("unkpen", math.inf),
    ("buffer_size", -1), ("num_workers", -1), ("dropout", -0.1), ("dropout", 1.1),
    ("clip_norm", -2.0), ("clip_norm", math.nan), ("temperature", 0.0), ("patience", -2),
    ("sampling_topp", 1.5), ("sampling_topp", 0.0), ("sampling_topk", -2), ("max_len_b", -1),
    ("keep_interval_updates_pattern", 0),
    ("label_smoothing", 1.0), ("seed", -1), ("seed", 2**32), ("shard_id", -1),
    ("log_interval", 0), ("save_interval", 0), ("validate_interval", 0),
    ("warmup_updates", -1), ("tokens_per_sample", 0), ("encoder_embed_dim", 0),
    ("adam_betas", "garbage"), ("adam_betas", "(0.9, 1.0)"), ("adam_betas", "(0.9,)"),
    ("adafactor_eps", "garbage"), ("adafactor_eps", "1e-30"), ("adafactor_eps", "(1e-30, -1)"),
    ("adafactor_eps", "(1e-30,)"), ("adafactor_eps", ""), ("adafactor_eps", "(1e999, 1)"),
    ("conv_kernel_sizes", ""), ("conv_kernel_sizes", "5,"), ("conv_kernel_sizes", "(5, 5)"),
    ("conv_kernel_sizes", "5,4"), ("conv_kernel_sizes", "-3"), ("conv_feature_layers", "[]"),
    ("conv_feature_layers", ""), ("conv_aggregator_layers", "[(8, 3)]"),
    ("model_overrides", "garbage"), ("model_overrides", "[1]"), ("optimizer_overrides", "1"),
    ("model_overrides", "{1: 2}"), ("optimizer_overrides", "{None: 1}"),
    ("eval_bleu_args", "beam"), ("eval_bleu_args", "[4]"), ("eval_bleu_detok_args", "{"),
    # fairseq-generate reads these, the search of a validation does not
    ("eval_bleu_args", '{"prefix_size": 1}'), ("eval_bleu_args", '{"lm_path": "lm.pt"}'),
    ("eval_bleu_args", '{"retain_dropout": true}'), ("eval_bleu_args", '{"replace_unk": ""}'),
    ("eval_bleu_args", '{"score_reference": true}'),
    ("eval_bleu_args", '{"constraints": "ordered"}'),
    ("epoch2lr", "{-1: 0.1}"), ("epoch2lr", "{'1-2': 0.1"), ("update2lr", "{'a': 0.1}"),
    ("update2lr", "{'1': 'x'}"), ("num_batch_buckets", 2),
    ("workers", 0), ("nwordssrc", -2), ("thresholdtgt", -2), ("softmax_batch", 0),
    ("post_process", "@@"), ("eval_bleu_remove_bpe", "sentencepeice"),
]  # fmt: skip
ACCEPTED = [
    ("update_freq", [1, 4]), ("lr", [0.0]), ("lr", [1e-4, 1e-5]), ("batch_size", None),
    ("beam", 1), ("lenpen", -1.0), ("clip_norm", 0.0), ("clip_norm", math.inf),
    ("dropout", 0), ("dropout", 1.0), ("patience", -1), ("patience", 0), ("sampling_topk", -1),
    ("sampling_topp", -1.0), ("sampling_topp", 1.0), ("seed", 2**32 - 1), ("max_tokens", None),
    ("adam_betas", "(0.9, 0.98)"), ("adam_betas", (0.9, 0.999)), ("adam_eps", 0.0),
    ("adafactor_eps", "(1e-30, 1e-3)"), ("adafactor_eps", None), ("conv_kernel_sizes", "5, 3"),
    ("model_overrides", "{'data': 'x'}"), ("eval_bleu_args", '{"beam": 4}'),
    ("eval_bleu_args", '{"prefix_size": 0, "replace_unk": null}'),
    ("eval_bleu_args", None), ("post_process", "@@ "), ("eval_bleu_remove_bpe", None),
    ("total_num_update", "${optimization.max_update}"),
    ("nwordssrc", -1), ("distributed_port", -1), ("lr_period_updates", -1.0),
    # what fairseq takes as "off" or "no limit"
    ("stop_time_hours", -1), ("clip_norm", -1.0), ("curriculum", -1), ("max_epoch", 0),
    ("max_update", 0), ("keep_last_epochs", -1), ("keep_interval_updates_pattern", -1),
    ("validate_interval_updates", -1), ("save_interval_updates", -1), ("data_buffer_size", -1),
    ("epoch2lr", "{1: 0.1}"), ("update2lr", "{'1-2': 0.1, '3,4': 1, ' 5 ': 0.2}"),
    ("num_batch_buckets", -1), ("empty_cache_freq", -1), ("lr_period_updates", 0),
    ("sampling_topk", 0), ("diverse_beam_groups", 0),
    ("prefix_size", -1), ("no_repeat_ngram_size", -1), ("context_window", -1),
    ("ignore_prefix_size", -1), ("nwordssrc", 0), ("thresholdsrc", -1), ("padding_factor", -1),
    ("max_valid_steps", 0), ("fixed_validation_seed", -1), ("warmup_init_lr", -1),
    ("stop_min_lr", -1.0), ("mask_prob", 1.2), ("min_len", 0), ("update_freq", [4, 2, 1]),
    ("eval_bleu_args", '{"beam": 4, "max_len_a": 1.2, "max_len_b": 10}'),
]  # fmt: skip


@pytest.mark.parametrize("name, value", REFUSED, ids=str)
def test_refused_by_name(name, value):
    with pytest.raises(OptionError) as raised:
        check({name: value})
    message = str(raised.value)
    assert message.startswith("--" + name.replace("_", "-")) and "allowed: " in message


@pytest.mark.parametrize("name, value", ACCEPTED, ids=str)
def test_accepted(name, value):
    check({name: value, "sampling": True})


@pytest.mark.parametrize(
    "values, option",
    [
        ({"beam": 2, "nbest": 5}, "--nbest 5"),
        ({"min_len": 9, "max_len_a": 0, "max_len_b": 8}, "--min-len 9"),
        ({"shard_id": 2, "num_shards": 2}, "--shard-id 2"),
        (
            {"valid_subset": "valid,test", "combine_valid_subsets": True},
            "--valid-subset valid,test",
        ),
        ({"encoder_embed_dim": 10, "encoder_attention_heads": 4}, "--encoder-attention-heads 4"),
        ({"lr_scheduler": "inverse_sqrt", "warmup_updates": 0}, "--warmup-updates 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused_together(values, option):
    with pytest.raises(OptionError, match=option):
        check(values)
    for name in values:
        check({name: values[name]})


@pytest.mark.parametrize(
    "values, option",
    [
        ({"sampling_topp": 0.5}, "--sampling-topp 0.5: allowed with --sampling"),
        ({"sampling": True, "sampling_topk": 2, "sampling_topp": 0.5}, "leave one out"),
        ({"sampling": True, "match_source_len": True}, "--sampling with --match-source-len, ano"),
        ({"diversity_rate": 0.5, "diverse_beam_groups": 1}, "groups 1 with --diversity-rate 0.5"),
        ({"replace_unk": "", "print_alignment": "soft", "buffer_size": 1}, "allowed with hard"),
    ],
    ids=str,
)
def test_refused_where_another_is_missing(values, option):
    with pytest.raises(OptionError, match=option):
        check(values)


TRAINING = {"update_freq": [1], "optimizer": "adam"}
TIED = {
    "tie_adaptive_weights": True,
    "adaptive_input": True,
    "adaptive_softmax_cutoff": "4,6",
    "adaptive_input_cutoff": "4,6",
    "decoder_input_dim": 8,
    "decoder_output_dim": 8,
}
SHARED = {"share_all_embeddings": True, "decoder_embed_dim": 8, "decoder_output_dim": 6}


RATES = [
    ("cosine", {"min_lr": 0.1, "max_update": 9}, "--min-lr 0.1 with --lr 0.1: allowed: less"),
    ("cosine", {"lr_period_updates": -1, "max_update": 0}, "cosine: nothing says how long a per"),
    ("step", {"min_lr": 0.2}, "--min-lr 0.2 with --lr 0.1: allowed: less than --lr"),
    ("step", {"lr_decay": 2.0}, "--lr-decay 2 with --lr-scheduler step, .*; allowed: at most 1"),
    ("triangular", {"max_lr": 0.1}, "--max-lr 0.1 with --lr 0.1, the lowest .*: allowed: more"),
    ("triangular", {"lr_period_updates": 1.0}, "--lr-period-updates 1 with .*: *.*at least 2"),
    ("tri_stage", {"hold_steps": 1, "final_lr_scale": 0.0}, "--final-lr-scale 0: .*more than 0"),
    ("tri_stage", {"hold_steps": 0}, "tri_stage: its stages have no updates; allowed: with --w"),
    ("tri_stage", {"phase_ratio": "(0.5, 0.5, 0)"}, "--phase-ratio .* without --max-update, of"),
    ("tri_stage", {"phase_ratio": [0.5, 0.5, 0.1], "max_update": 9}, "ratio .*: .* sum is 1"),
    ("polynomial_decay", {"total_num_update": None}, "--total-num-update is missing with --lr-s"),
    ("polynomial_decay", {"total_num_update": "${optimization.max_update}"}, "is missing with"),
]


@pytest.mark.parametrize("schedule, settings, message", RATES, ids=str)
def test_schedules_without_rates(schedule, settings, message):
    """Other commands than fairseq-train do not read them."""
    values = {"lr_scheduler": schedule, "lr": [0.1], **settings}
    check(values)
    with pytest.raises(OptionError, match=message):
        check({**values, "update_freq": [1]})


@pytest.mark.parametrize(
    "values",
    [
        {"lr_scheduler": "cosine", "lr": "${optimization.lr}", "max_update": 9, "min_lr": 0.1},
        {"lr_scheduler": "cosine", "lr": [0.1], "lr_period_updates": 5.0, "max_update": None},
        {"lr_scheduler": "triangular", "lr": [0.1], "max_lr": 0.2, "lr_period_updates": 2},
        {"lr_scheduler": "tri_stage", "lr": [0.1], "phase_ratio": "(.7,.2,.1)", "max_update": 9},
        {"lr_scheduler": "polynomial_decay", "lr": [0.1], "max_update": 9},
        {"lr_scheduler": "polynomial_decay", "lr": [0.1], "total_num_update": 9.0},
        {
            "lr_scheduler": "polynomial_decay",
            "lr": [0.1],
            "total_num_update": "9",
        },  # of fairseq-train
        {"lr_scheduler": "inverse_sqrt", "lr": [0.1], "min_lr": 1.0},
    ],
    ids=str,
)
def test_schedules_with_rates(values):
    check({**values, "update_freq": [1]})


@pytest.mark.parametrize("name", ["dual_alpha", "max_tokens"])
def test_searches_of_validations_read_no_other_options_of_the_run(name):
    with pytest.raises(OptionError, match=f"--eval-bleu-args: '{name}' is an option of the run"):
        check({name: 1, "eval_bleu_args": f'{{"beam": 4, "{name}": 2}}'})


@pytest.mark.parametrize(
    "values, message",
    [
        ({"optimizer": "composite"}, "--optimizer composite: .*fairseq-hydra-train; allowed: an"),
        ({"lr_scheduler": "pass_through"}, "pass_through with --optimizer adam, .*; allowed: an"),
        ({"zero_sharding": "os"}, "--zero-sharding os: fairscale is not .* without it: none"),
        ({"ddp_backend": "fully_sharded"}, "--ddp-backend fully_sharded: .* without it: pytorch_"),
        ({"ddp_backend": "slowmo"}, "--ddp-backend slowmo: fairscale is not installed"),
        ({"profile": True}, "--profile: torch sees no GPU, .*; allowed: leave it out"),
        (SHARED, "--decoder-output-dim 6 with --share-all-embeddings, .* 8; allowed: 8"),
        # as the command line gives it
        ({**SHARED, "decoder_output_dim": "6"}, "--decoder-output-dim 6 with --share-all-embed"),
        ({**TIED, "adaptive_input": False}, "--tie-adaptive-weights: .*; allowed: with --adaptive"),
        ({**TIED, "adaptive_input_cutoff": "4"}, "-cutoff 4,6 with .* --adaptive-input-cutoff 4;"),
        ({**TIED, "decoder_input_dim": 6}, "-dim 8 with --tie-adaptive-weights and .*-input-dim 6"),
        ({"arch": "transformer_lm", "past_target": True}, "--past-target: .*; allowed: --fut"),
        ({"arch": "fconv", "left_pad_target": True}, "--left-pad-target with --arch fconv, "),
        ({"arch": "lightconv", "left_pad_target": "True"}, "--left-pad-target .*; allowed: leave"),
        ({"arch": "lstm", "left_pad_target": True}, "--left-pad-target with --arch lstm, "),
        ({"attn_type": "esp", "pos_enc_type": "abs"}, "--attn-type esp is not known; allowed: esp"),
        ({"attn_type": None, "pos_enc_type": "rope"}, "--pos-enc-type rope: .* --attn-type espnet"),
        ({"attn_type": "", "pos_enc_type": "rel"}, "--pos-enc-type rel is not known; allowed: abs"),
        ({"amp": True, "bf16": True}, "--amp with --bf16: .*; allowed: one of the two"),
        ({"amp": True, "fp16": True}, "--amp with --fp16: .*; allowed: one of the two"),
        (
            {"amp": True, "bf16": True, "memory_efficient_bf16": True},
            "--amp with --memory-efficient-bf16: ",
        ),
    ],
    ids=str,
)
def test_trainings_that_lack_something(values, message, monkeypatch):
    import torch
    from fairseq import models  # noqa: F401  (architectures)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(OptionError, match=message):
        check({**TRAINING, **values})


@pytest.mark.parametrize(
    "values",
    [
        {"zero_sharding": "os"},  # of fairseq-generate, which reads none of it
        {"profile": True},
        {"amp": True, "bf16": True},
        {**TRAINING, "amp": True},
        {**TRAINING, "optimizer": "composite", "groups": {"default": {}}},
        {**TRAINING, "optimizer": "composite", "groups": {"a": {}}, "lr_scheduler": "pass_through"},
        {**SHARED, "adaptive_softmax_cutoff": [4]},
        {**SHARED, "decoder_output_dim": 8},
        {**TRAINING, **TIED},
        {**TRAINING, "arch": "transformer_lm", "future_target": True},
        {**TRAINING, "arch": "transformer", "left_pad_target": True},
        {**TRAINING, "arch": "fconv", "left_pad_target": "False"},
        {**TRAINING, "attn_type": "espnet", "pos_enc_type": "rope"},
        {**TRAINING, "attn_type": "", "pos_enc_type": "abs"},
        {**TRAINING, "arch": "roberta_base", "self_target": True},
        {**SHARED, "share_all_embeddings": False},
        {**SHARED, "arch": "transformer_lm", "decoder_input_dim": 6},
    ],
    ids=str,
)
def test_trainings_that_have_all(values, monkeypatch):
    from fairseq import models  # noqa: F401  (architectures)

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    check(values)


@pytest.mark.parametrize(
    "values",
    [
        {"max_len_a": 1.0, "max_len_b": -2, "min_len": 1},
        {"encoder_conv_dim": 12, "encoder_embed_dim": 10, "encoder_attention_heads": 4},
        {"sampling": True, "beam": 3, "nbest": 3},
        {"max_tokens": None, "batch_size": 4, "batch_size_valid": None},
        {"eval_bleu_args": '{"beam": "4", "nbest": 2}'},
    ],
    ids=str,
)
def test_accepted_together(values):
    check(values)


@pytest.mark.parametrize(
    "detok, arguments, message",
    [
        ("none", "{}", r"--eval-bleu-detok 'none' is not allowed; allowed: moses, nltk, space"),
        ("space", '{"target_lang": "fr"}', r"-args: 'target_lang' .*; allowed: none"),
        ("moses", '{"target_lnag": "fr"}', r"-args: 'target_lnag' .*; allowed: moses_no_dash"),
    ],
)
def test_words_are_joined_by_a_tokenizer_and_its_options(detok, arguments, message):
    from fairseq.data import encoders  # noqa: F401  (the tokenisers)

    values = {"eval_bleu_detok": detok, "eval_bleu_detok_args": arguments}
    check({**values, "eval_bleu": False})
    check({"eval_bleu": True, "eval_bleu_detok": "moses", "eval_bleu_detok_args": ""})
    check({"eval_bleu": True, **values, "eval_bleu_detok": "space", "eval_bleu_detok_args": "{}"})
    with pytest.raises(OptionError, match=message):
        check({**values, "eval_bleu": True})


@pytest.fixture
def foreign_task(monkeypatch):
    """The name of a task of another project, whose options are named as fairseq's."""
    from fairseq import tasks

    class Captions(tasks.LegacyFairseqTask):
        @staticmethod
        def add_args(parser):
            parser.add_argument("--temperature", type=float)
            parser.add_argument("--mask-prob", type=float)

    Captions.__module__ = "other_project.tasks"
    monkeypatch.setitem(tasks.TASK_REGISTRY, "other_captions", Captions)
    return "other_captions"


def test_options_of_other_projects_are_theirs(foreign_task):
    check({"task": foreign_task, "temperature": -1.0, "mask_prob": -1.0, "beam": 5, "nbest": 9})
    check({"task": foreign_task, "encoder_embed_dim": 10, "encoder_attention_heads": 4})
    check({"task": foreign_task, "eval_bleu_args": '{"own_option": 4}'})
    with pytest.raises(OptionError, match="--beam 0"):
        check({"task": foreign_task, "beam": 0})
    with pytest.raises(OptionError, match="--temperature -1"):
        check({"task": "translation", "temperature": -1.0})


def test_arguments_by_position():
    """fairseq.options takes all its arguments by position, too."""
    from fairseq import options

    words = ["data", "--arch", "transformer", "--max-tokens", "9"]
    parsed = options.parse_args_and_arch(options.get_training_parser(), words, False, True)
    assert parsed.max_tokens == 9 and not hasattr(parsed, "lr_shrink")


def test_a_trial_may_end_within_the_warmup():
    check({"lr_scheduler": "polynomial_decay", "warmup_updates": 9, "total_num_update": 5})


def test_classifiers_give_more_labels_than_a_beam():
    check({"beam": 5, "nbest": 8, "task": "text_classification"})
    check({"beam": 5, "nbest": 8, "task": "dual_translation"})  # which checks its searches itself


def test_constraints_are_typed():
    with pytest.raises(OptionError, match="^--constraints: "):
        check({"constraints": "ordered", "beam": 5})
    check({"constraints": "ordered", "beam": 5, "buffer_size": 1})


@pytest.mark.parametrize("switch", [True, "True"])
def test_prefixes_are_first(switch):
    """fairseq takes the first columns of a batch, whatever stands there."""
    with pytest.raises(OptionError, match="^--prefix-size 2 with --left-pad-target: "):
        check({"prefix_size": 2, "left_pad_target": switch})
    for off in (False, "False", None):
        check({"prefix_size": 2, "left_pad_target": off})
    check({"prefix_size": 0, "left_pad_target": switch})


def test_typed_lines_have_no_references():
    with pytest.raises(OptionError, match="^--score-reference: "):
        check({"score_reference": True, "beam": 5, "buffer_size": 1})
    check({"score_reference": True, "beam": 5})


@pytest.mark.parametrize(
    "name, value",
    [("sampling", True), ("match_source_len", True), ("diverse_beam_groups", 2)]
    + [("diversity_rate", 0.0)],
)
def test_constraints_have_a_search(name, value):
    """fairseq begins the other search, and ends in a NotImplementedError at the first line."""
    words = f"^--constraints with --{name.replace('_', '-')}, a search that knows no constraints"
    typed = {"beam": 4, "buffer_size": 1, name: value}
    with pytest.raises(OptionError, match=words):
        check({"constraints": "ordered", **typed})
    check({"constraints": None, **typed})
    off = {"sampling": False, "match_source_len": False}
    off.update({"diverse_beam_groups": -1, "diversity_rate": -1.0})
    check({"constraints": "ordered", "beam": 4, "buffer_size": 1, **off})


@pytest.mark.parametrize(
    "name, value",
    [("lm_path", "lm.pt"), ("temperature", 2.0), ("unkpen", 1), ("lenpen", 0.6)],
)
def test_references_are_scored_by_the_models_alone(name, value):
    """fairseq's scorer reads no option of the search: the scores would be those without it."""
    words = f"^--{name.replace('_', '-')} {value} with --score-reference"
    with pytest.raises(OptionError, match=words):
        check({"score_reference": True, name: value})
    check({"score_reference": False, name: value})
    check({"score_reference": True, "lm_path": None, "temperature": 1.0, "unkpen": 0})
    with pytest.raises(OptionError, match="^--unnormalized with --score-reference"):
        check({"score_reference": True, "unnormalized": True})
    check({"score_reference": True, "lenpen": 1.0, "unnormalized": False})


def test_defaults_that_a_program_sets_are_no_mistakes():
    """Programs that translate in Python set options of the parser that they do not use."""
    from fairseq import options

    def read(*words):
        parser = options.get_generation_parser(interactive=True)  # each reads one command line
        parser.set_defaults(num_workers=-1, path="model.pt")
        return options.parse_args_and_arch(parser, ["data", *words])

    assert read().num_workers == -1
    with pytest.raises(OptionError, match="--num-workers -2 is not allowed"):
        read("--num-workers=-2")
