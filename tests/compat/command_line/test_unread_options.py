"""Options of fairseq that do nothing are named."""

import contextlib
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from common import inprocess  # noqa: F401  (registers the models)

from fairseq_ext.compat.command_line import companion_options, unread_options
from fairseq_ext.compat.command_line.option_checks import check
from fairseq_ext.compat.command_line.unread_options import UNREAD
from fairseq_ext.compat.user_errors import OptionError, option_of

DECLARATION = r"add_argument|^\s*(['\"]--|\w+: .*= field)"
# hands an option on to models, whose methods take it and do not look at it
HANDED_ON = r"decoding_format(=getattr| = decoding_format|\": self\.decoding_format)"


@pytest.fixture(autouse=True)
def nothing_said():
    unread_options._warn.cache_clear()


def test_fairseq_reads_them_nowhere():
    folders = [Path(find_spec(name).submodule_search_locations[0]) for name in
               ("fairseq", "fairseq_cli")]  # fmt: skip
    files = [file for folder in folders for file in folder.rglob("*.py")]
    lines = [line for file in files if "examples" not in file.parts
             for line in file.read_text(encoding="utf-8", errors="replace").splitlines()
             if not re.search(f"{DECLARATION}|{HANDED_ON}", line)]  # fmt: skip
    read = re.compile(rf"(\.|['\"])({'|'.join(UNREAD)})\b")
    assert [line for line in lines if read.search(line)] == []
    declared = " ".join(file.read_text(encoding="utf-8") for file in files
                        if file.parent.name in ("optim", "tasks", "dataclass"))  # fmt: skip
    for name in UNREAD:
        assert re.search(rf"\b{name}: |--{name.replace('_', '-')}'", declared), name


def test_each_is_named_once(caplog):
    for _ in range(2):
        check({"anneal_eps": True, "no_early_stop": False, "baseline_model": ""})
    assert caplog.messages == [
        "--anneal-eps does nothing in fairseq 0.12.2: --adadelta-eps stays as it is"
    ]


@pytest.mark.parametrize("name, option", [("adaptive_input", "--adaptive-input"),
                                          ("char_inputs", "--char-inputs")])  # fmt: skip
def test_models_of_translation_do_not_read_them(name, option, caplog):
    check({name: True, "arch": "transformer_iwslt_de_en"})
    (message,) = caplog.messages
    assert message.startswith(f"{option} does nothing with --arch transformer_iwslt_de_en: ")
    for arch in ("twin_transformer_tiny", "tagged_transformer", "dual_supervised_transformer"):
        with pytest.raises(OptionError, match=f"{option} does nothing with --arch {arch}"):
            check({name: True, "arch": arch})
    check({name: True, "arch": "transformer_lm"})
    check({name: False, "arch": "tagged_transformer"})
    check({name: True, "quant_noise_pq": 0.1, "arch": "transformer"})
    assert len(caplog.messages) == 1


def test_a_language_model_without_weight_is_named(caplog):
    check({"lm_path": "lm.pt", "lm_weight": 0.5})
    check({"lm_path": None, "lm_weight": 0.0})
    assert caplog.messages == []
    check({"lm_path": "lm.pt", "lm_weight": 0.0})
    assert caplog.messages == [
        "--lm-path does nothing with --lm-weight 0, the default: give it a weight"
    ]


def test_clusters_of_another_criterion(caplog):
    cutoff = {"adaptive_softmax_cutoff": "10,20", "criterion": "cross_entropy"}
    check({**cutoff, "arch": "lstm"})
    check({**cutoff, "arch": "lstm_lm"})
    assert [message.partition(" with --arch ")[2].split(":")[0] for message in caplog.messages] == [
        "lstm and --criterion cross_entropy",
        "lstm_lm and --criterion cross_entropy",
    ]
    with pytest.raises(OptionError, match="cutoff 10,20 does nothing with --arch twin_lstm and"):
        check({**cutoff, "arch": "twin_lstm", "criterion": "twin"})
    # the preset of every training, and models that form them with any criterion
    check({**cutoff, "arch": "twin_lstm", "adaptive_softmax_cutoff": "10000,50000,200000"})
    check({**cutoff, "arch": "lstm", "criterion": "adaptive_loss"})
    check({**cutoff, "arch": "transformer"})
    assert len(caplog.messages) == 2


@pytest.mark.parametrize(
    "values, message",
    [
        ({"keep_interval_updates": 2}, "--keep-interval-updates does nothing without --save-inte"),
        ({"keep_interval_updates_pattern": 2}, "--keep-interval-updates-pattern does nothing wit"),
        ({"ema_decay": 0.5}, "--ema-decay does nothing without --store-ema: no averages are com"),
        ({"ema_seed_model": "a.pt"}, "--ema-seed-model does nothing without --store-ema"),
        ({"patience": 1, "disable_validation": True}, "--patience does nothing with --disable-v"),
        ({"keep_best_checkpoints": 3, "disable_validation": True}, "--keep-best-checkpoints does"),
    ],
    ids=str,
)
def test_trainings_without_the_other_option(values, message, caplog, tmp_path, monkeypatch):
    from fairseq import options

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pt").touch()

    words = ["data", "--arch", "transformer", "--max-tokens", "9"]
    parsed = vars(options.parse_args_and_arch(options.get_training_parser(), words))
    assert caplog.messages == []  # nothing of the defaults
    del parsed["min_lr"]  # --stop-min-lr under its former name: of cosine, another option
    check({**parsed, **values})
    (text,) = caplog.messages
    assert text.startswith(message)
    check({**parsed, **values, "save_interval_updates": 5, "store_ema": True,
           "disable_validation": False})  # fmt: skip
    del parsed["update_freq"]
    check({**parsed, **values})  # of fairseq-generate, which reads none of them
    assert caplog.messages == [text]


def test_language_models_without_what_they_declare(caplog):
    training = {"update_freq": [1], "decoder_embed_dim": 16}
    check({**training, "arch": "fconv_lm", "decoder_out_embed_dim": 16})
    check({**training, "arch": "lstm_lm", "decoder_attention": "0", "decoder_out_embed_dim": 8})
    check({**training, "arch": "fconv", "decoder_attention": "True", "decoder_out_embed_dim": 8})
    assert caplog.messages == []
    check({**training, "arch": "fconv_lm", "decoder_out_embed_dim": 8})
    check({**training, "arch": "lstm_lm", "decoder_attention": "1"})
    assert caplog.messages == [
        "--decoder-out-embed-dim 8 does nothing with --arch fconv_lm: its output has the width of "
        "--decoder-embed-dim",
        "--decoder-attention 1 does nothing with --arch lstm_lm: it has no source",
    ]
    check({**training, "arch": "twin_lstm_lm_tiny", "decoder_attention": "0"})
    with pytest.raises(OptionError, match="^--decoder-attention 1 does nothing with --arch twin_"):
        check({**training, "arch": "twin_lstm_lm_tiny", "decoder_attention": "1"})


def test_alignments_that_no_criterion_reads(caplog):
    training = {"update_freq": [1], "load_alignments": True, "criterion": "cross_entropy"}
    check({**training, "arch": "transformer", "load_alignments": False})
    check({**training, "arch": "transformer_align", "criterion": unread_options.ALIGNING})
    check({**training, "update_freq": None, "arch": "duo_transformer", "criterion": None})
    assert caplog.messages == []
    with pytest.raises(OptionError, match="^--load-alignments does nothing with --criterion cross"):
        check({**training, "arch": "duo_transformer"})
    check({**training, "arch": "transformer"})
    (message,) = caplog.messages
    assert message.startswith("--load-alignments does nothing with --criterion cross_entropy: ")


@pytest.mark.parametrize("name, value, companion, setting", [
    ("eval_bleu_args", '{"beam": 2}', "eval_bleu", True),
    ("eval_bleu_remove_bpe", "@@ ", "eval_bleu", True),
    ("eval_tokenized_bleu", True, "eval_bleu", True),
    ("adaptive_softmax_dropout", 0.1, "adaptive_softmax_cutoff", "100"),
    ("adaptive_softmax_factor", 2.0, "adaptive_softmax_cutoff", "100"),
    ("tie_adaptive_proj", True, "adaptive_softmax_cutoff", "100"),
    ("quant_noise_pq_block_size", 4, "quant_noise_pq", 0.1),
    ("no_decoder_final_norm", True, "decoder_normalize_before", True),
    ("base_sublayers", 2, "base_layers", 1),
    ("base_shuffle", 1, "base_layers", 1),
    ("adaptive_input_factor", 2, "adaptive_input", True),
    ("character_embedding_dim", 8, "character_embeddings", True),
    ("amp_init_scale", 4, "amp", True),
    ("freq_weighted_replacement", True, "random_token_prob", 0.1),
])  # fmt: skip
def test_options_of_what_is_switched_off(name, value, companion, setting, caplog):
    training = {"update_freq": [1], name: value}
    check({**training, companion: setting, "distributed_world_size": 2})
    check({name: value, companion: None})  # of another command
    check(training)  # a task or model of another project
    check({**training, name: companion_options.OF_TRAININGS[name].neutral, companion: None})
    assert caplog.messages == []
    check({**training, companion: None})
    (message,) = caplog.messages
    assert f" does nothing without {option_of(companion)}: " in message


@pytest.mark.parametrize("name, value, companion, settings", [
    ("base_sublayers", 2, "--base-layers", {"arch": "transformer"}),  # which sets no base_layers
    ("min_params_to_wrap", 5, "--ddp-backend fully_sharded", {"ddp_backend": "no_c10d"}),
    ("cpu_offload", True, "--ddp-backend fully_sharded", {"ddp_backend": "pytorch_ddp"}),
    ("localsgd_frequency", 5, "--ddp-backend slowmo", {"ddp_backend": "no_c10d"}),
    ("ddp_comm_hook", "fp16", "--ddp-backend pytorch_ddp or --ddp-backend c10d",
     {"ddp_backend": "legacy_ddp"}),
    ("fp16_init_scale", 4, "--fp16 or --memory-efficient-fp16",
     {"fp16": False, "memory_efficient_fp16": False}),
    ("shorten_data_split_list", "train",
     "--shorten-method truncate or --shorten-method random_crop", {"shorten_method": "none"}),
])  # fmt: skip
def test_options_of_a_setting(name, value, companion, settings, caplog):
    training = {"update_freq": [1], name: value}
    check({**training, **settings})
    (message,) = caplog.messages
    assert message.startswith(f"{option_of(name)} does nothing without {companion}: ")
    on = {"fp16": True, "shorten_method": "truncate", "arch": None}
    on.update({"ddp_backend": "pytorch_ddp"} if name == "ddp_comm_hook" else {})
    check({**training, **{other: on.get(other) for other in settings if other in on}})
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("name, value, other", [
    ("keep_last_epochs", 2, "no_epoch_checkpoints"),
    ("decoder_learned_pos", True, "no_token_positional_embeddings"),
    ("finetune_from_model", "a.pt", "continue_once"),
    ("optimizer_overrides", "{'lr': 1}", "reset_optimizer"),
    ("eval_bleu", True, "disable_validation"),
    ("validate_interval_updates", 5, "disable_validation"),
])  # fmt: skip
def test_options_beside_others_in_a_training(name, value, other, caplog):
    check({"update_freq": [1], name: value, other: False})
    check({name: value, other: True})
    assert caplog.messages == []
    check({"update_freq": [1], name: value, other: True})
    (message,) = caplog.messages
    assert message.startswith(f"{option_of(name)} does nothing with {option_of(other)}: ")


@pytest.mark.parametrize("words, message", [
    ("--lm-weight 0.5", "--lm-weight does nothing without --lm-path: no language model is read"),
    ("--diverse-beam-strength 0.1", "--diverse-beam-strength does nothing without --diverse-beam"),
    ("--retain-dropout-modules A", "--retain-dropout-modules does nothing without --retain-drop"),
    ("--lenpen 2 --unnormalized", "--lenpen does nothing with --unnormalized: scores are sums"),
    ("--score-reference --sampling", "--sampling does nothing with --score-reference: reference"),
    ("--score-reference --nbest 2", "--nbest does nothing with --score-reference: references"),
])  # fmt: skip
def test_options_of_a_search(words, message, caplog):
    from fairseq import options

    options.parse_args_and_arch(options.get_generation_parser(), ["data", "--max-tokens", "9"])
    assert caplog.messages == []  # nothing of the defaults
    options.parse_args_and_arch(options.get_generation_parser(), ["data", *words.split()])
    (text,) = caplog.messages
    assert text.startswith(message)


def test_options_of_other_commands_in_a_training(caplog):
    check({"update_freq": [1], "gen_subset": "test", "num_shards": 1, "shard_id": 0})
    assert caplog.messages == []
    check({"update_freq": [1], "num_shards": 2, "shard_id": 0})
    assert caplog.messages == ["--num-shards 2 does nothing in fairseq-train"]


def test_sizes_of_recordings_are_those_of_their_file(caplog):
    values = {"update_freq": [1], "task": "speech_to_text", "arch": "s2t_transformer"}
    check({**values, "input_feat_per_channel": 80, "input_channels": 1})
    assert caplog.messages == []
    check({**values, "input_feat_per_channel": 40})
    assert caplog.messages == [
        "--input-feat-per-channel 40 does nothing: --config-yaml has its value"
    ]
    for name, value in (("input_feat_per_channel", 40), ("speaker_to_id", "x")):
        with pytest.raises(OptionError, match=f"{option_of(name, value)}: the task, from the sett"):
            check({**values, "arch": "twin_speech_lstm", name: value})


@pytest.mark.parametrize("arch", ["lstm", "twin_lstm"])
def test_attention_of_lstms_is_on_or_off(arch):
    values = {"update_freq": [1], "arch": arch}
    for value in ("True", "False", "1", "0"):
        check({**values, "decoder_attention": value})
    for value in ("nofile", "0.5", "3", "true"):
        with pytest.raises(OptionError, match=f"^--decoder-attention {value} is not allowed; all"):
            check({**values, "decoder_attention": value})


def test_experts_have_workers(monkeypatch):
    values = {"update_freq": [1], "base_layers": 1, "arch": "transformer_lm"}
    for name in ("WORLD_SIZE", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(OptionError, match="^--base-layers 1 with one worker"):
        check({**values, "distributed_world_size": 1})
    check({**values, "distributed_world_size": 2})
    monkeypatch.setenv("WORLD_SIZE", "2")
    check({**values, "distributed_world_size": 1})


def test_no_architecture_sets_what_it_does_not_read(caplog):
    from argparse import Namespace

    from fairseq.models import ARCH_CONFIG_REGISTRY

    for arch, preset in ARCH_CONFIG_REGISTRY.items():
        options = Namespace(update_freq=[1])
        with contextlib.suppress(AttributeError):  # those of options without a default
            preset(options)
            check(vars(options))
        assert caplog.messages == [], arch


@pytest.mark.parametrize("layers, arch", [(1, "lstm_lm"), (2, "lstm_lm"), (1, "transformer_lm")])
def test_residuals_of_one_layer(layers, arch, caplog):
    values = {"update_freq": [1], "residuals": True, "decoder_layers": layers}
    check({**values, "arch": arch})
    expected = ["--residuals does nothing with --decoder-layers 1: they are between two layers"]
    assert caplog.messages == (expected if (layers, arch) == (1, "lstm_lm") else [])
    with pytest.raises(OptionError, match="^--residuals does nothing .* or more layers$"):
        check({**values, "arch": "twin_lstm_lm_tiny", "decoder_layers": 1})


@pytest.mark.parametrize("is_there", [False, True])
def test_export_of_norms_that_are_not_fused(is_there, caplog, monkeypatch):
    monkeypatch.setattr(unread_options, "find_spec", lambda name: "a spec" if is_there else None)
    check({"update_freq": [1], "arch": "transformer", "export": True})
    assert len(caplog.messages) == 1 - is_there
