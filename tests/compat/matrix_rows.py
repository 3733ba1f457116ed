"""The commands of the matrix: every feature of stock fairseq that we say works.

A row is a name, command lines, what their output must match, and what they read from stdin.
Names in braces are filled in by test_matrix.py: data {two} {lm} {text}, checkpoints {trained}
{trained_lm}, the row's own folder {out}, the plugin {plugin}, and those below.
"""

from typing import NamedTuple, Tuple

SIZES = " ".join(
    f"--{side}-layers 1 --{side}-embed-dim 16 --{side}-ffn-embed-dim 16 --{side}-attention-heads 2"
    for side in ("encoder", "decoder")
)
OPTIMISE = (
    "--optimizer adam --lr 1e-3 --lr-scheduler inverse_sqrt --warmup-updates 4 --max-tokens 800 "
    "--max-update 4 --log-interval 1 --log-format simple --seed 1"
)
SMOOTHED = "--criterion label_smoothed_cross_entropy --label-smoothing 0.1"
PAIR = "{two} -s xx -t yy"
TRAIN = f"fairseq-train {PAIR} --arch transformer --share-all-embeddings {SIZES} {OPTIMISE} "
TRAIN += SMOOTHED
GENERATE = f"fairseq-generate {PAIR} --max-len-b 8 --max-tokens 400"
TRAINED = "--path {trained}/checkpoint_last.pt"
OWN = "--path {out}/checkpoint_last.pt"
SAVE = "--save-dir {out} --no-epoch-checkpoints"
LANGUAGE_MODEL = (
    f"fairseq-train {{lm}} {OPTIMISE} --task language_modeling --tokens-per-sample 32 "
    "--decoder-layers 1 --decoder-embed-dim 16 --decoder-ffn-embed-dim 16 "
    "--decoder-attention-heads 2"
)
EVAL_LM = "fairseq-eval-lm {lm} --max-tokens 400 --tokens-per-sample 32"
MULTILINGUAL = "--lang-pairs xx-yy,yy-xx --encoder-langtok src --decoder-langtok"
HYDRA = (
    "fairseq-hydra-train task=language_modeling task.data={lm} task.tokens_per_sample=32 "
    "model=transformer_lm model.decoder_layers=1 model.decoder_embed_dim=16 "
    "model.decoder_ffn_embed_dim=16 model.decoder_attention_heads=2 "
    "model.share_decoder_input_output_embed=true criterion=cross_entropy optimizer=adam "
    "lr_scheduler=fixed dataset.max_tokens=400 common.log_format=simple optimization.lr=[0.001] "
    "checkpoint.save_dir={out}/saved"
)
WORKERS = (
    "--distributed-no-spawn --distributed-backend gloo --distributed-world-size 2 --cpu --no-save"
)
TORCHRUN = "torchrun --nproc_per_node 2 --standalone {scripts}/"
NAT = f"{PAIR} --task translation_lev --share-all-embeddings {SIZES} {OPTIMISE} "
NAT += "--criterion nat_loss --save-dir {out}"
PLUGIN = (
    f"--task plugin_translation --arch plugin_transformer --plugin-scale 2 {SIZES} {OPTIMISE} "
    "--share-all-embeddings --criterion plugin_criterion --extra-weight 0.3"
)


class Row(NamedTuple):
    """One line of the matrix."""

    name: str
    commands: Tuple[str, ...]
    expect: str = ""
    stdin: str = ""


def row(name, *commands, expect="", stdin=""):
    """A Row."""
    return Row(name, commands, expect, stdin)


def data_parallel():
    """Rows for two workers on CPU."""
    two = f"{TORCHRUN}{TRAIN}"
    for backend in ("legacy_ddp", "no_c10d", "pytorch_ddp", "c10d"):
        yield row(f"workers {backend}", f"{two} {WORKERS} --ddp-backend {backend}")
    yield row("workers find unused", f"{two} {WORKERS} --find-unused-parameters")
    yield row(
        "workers torch.distributed.launch",
        "python -m torch.distributed.launch --nproc_per_node 2 --standalone {scripts}/"
        f"{TRAIN} {WORKERS} --ddp-backend legacy_ddp",
    )
    saving = WORKERS.replace("--no-save", SAVE) + " --ddp-backend legacy_ddp"
    yield row(
        "workers resume",
        f"{two} {saving}",
        f"{two} {saving} --max-update 6",
        expect="@ 4 updates.*num_updates 6",
    )
    hydra = (
        f"{TORCHRUN}{HYDRA} distributed_training.distributed_world_size=2 common.cpu=true "
        "distributed_training.distributed_backend=gloo distributed_training.ddp_backend=legacy_ddp "
        "distributed_training.distributed_no_spawn=true optimization.max_update="
    )
    yield row("workers hydra resume", hydra + "3", hydra + "5")
    yield row("workers bf16", f"{two} {WORKERS} --ddp-backend legacy_ddp --bf16")


def precisions():
    """Rows for number formats and the trainer's options."""
    for name, options in (
        ("bf16", "--bf16"),
        ("bf16 memory efficient", "--memory-efficient-bf16"),
        ("bf16 converted on CPU", "--bf16 --on-cpu-convert-precision"),
        ("fp16 memory efficient", "--memory-efficient-fp16"),
        ("fp16 not flat", "--fp16 --fp16-no-flatten-grads"),
        ("tensorboard", "--tensorboard-logdir {out}/events"),
        ("loader workers", "--num-workers 2"),
        ("update-freq, clip-norm", "--update-freq 2 --clip-norm 1 --validate-interval-updates 2"),
        ("buckets", "--num-batch-buckets 2"),
    ):
        yield row(f"train {name}", f"{TRAIN} --no-save --cpu {options}", expect="num_updates 4")
    ema = f"{TRAIN} {SAVE} --store-ema --ema-fp32 --ema-decay 0.9"
    yield row("train ema resume", ema, f"{ema} --max-update 6", expect="@ 4 updates")


def generation():
    """Rows that use the trained transformer."""
    for name, options in (
        ("beam", "--beam 5 --remove-bpe sentencepiece"),
        ("ensemble", "--path {trained}/checkpoint_last.pt:{trained}/checkpoint_best.pt --nbest 2"),
        ("sampling", "--sampling --sampling-topk 5 --beam 2 --nbest 2"),
        ("sacrebleu", "--scoring sacrebleu --beam 2"),
        ("diverse", "--beam 4 --diverse-beam-groups 2 --diverse-beam-strength 0.5 --lenpen 0.8"),
        ("alignment", "--beam 2 --print-alignment --no-repeat-ngram-size 2"),
        ("score reference", "--score-reference"),
        ("prefix", "--prefix-size 1 --beam 2"),
        ("results file", "--results-path {out} --beam 2"),
        ("bf16", "--bf16 --beam 2"),
    ):
        path = "" if name == "ensemble" else TRAINED
        expect = "" if name == "results file" else r"(?m)^H-23\t"
        yield row(f"generate {name}", f"{GENERATE} {path} {options}", expect=expect)
    interactive = f"fairseq-interactive {PAIR} {TRAINED} --beam 3 --max-len-b 8"
    yield row("interactive", interactive, expect=r"(?m)^H-1\t", stdin="an1 av2 an3\nan2 av1 an4\n")
    yield row(
        "interactive constraints",
        f"{interactive} --constraints --batch-size 1",
        expect=r"(?m)^H-0\t.*un5",
        stdin="an1 av2 an3\tun5\n",
    )
    yield row("validate", f"fairseq-validate {PAIR} {TRAINED} --task translation --max-tokens 400")


def architectures():
    """Rows that train another model and use it."""
    generate_own = f"{GENERATE} {OWN} --beam 2"
    lstm = "--encoder-hidden-size 16 --decoder-hidden-size 16 --decoder-out-embed-dim 16"
    embed = "--encoder-embed-dim 16 --decoder-embed-dim 16"
    yield row(
        "lstm",
        f"fairseq-train {PAIR} --arch lstm {embed} {lstm} {OPTIMISE} {SMOOTHED} {SAVE}",
        generate_own,
    )
    conv = "--encoder-layers [(16,3)]*2 --decoder-layers [(16,3)]*2 --decoder-out-embed-dim 16"
    yield row(
        "fconv",
        f"fairseq-train {PAIR} --arch fconv_iwslt_de_en {embed} {conv} {OPTIMISE} {SMOOTHED} "
        f"{SAVE}",
        generate_own,
    )
    crf = "--arch nacrf_transformer --noise full_mask --length-loss-factor 0.1"
    crf += " --crf-beam-approx 16"  # not more than the words of the toy corpus
    yield row("nat crf", f"fairseq-train {NAT} {crf} --src-embedding-copy --pred-length-offset")
    mlm = (
        "fairseq-train {lm} --task masked_lm --arch roberta_base --criterion masked_lm "
        f"{OPTIMISE} --encoder-layers 1 --encoder-embed-dim 16 --encoder-ffn-embed-dim 16 "
        "--encoder-attention-heads 2 --tokens-per-sample 32 --sample-break-mode complete "
        f"--batch-size 8 {SAVE}"
    )
    validate = f"fairseq-validate {{lm}} --task masked_lm {OWN} --batch-size 8"
    yield row("masked lm", mlm, validate)
    multi = f"--task multilingual_translation {MULTILINGUAL}"
    yield row(
        "multilingual",
        f"fairseq-train {{two}} {multi} --arch multilingual_transformer --share-encoders "
        f"--share-decoders --share-decoder-input-output-embed {SIZES} {OPTIMISE} {SMOOTHED} {SAVE}",
        f"{GENERATE} {multi} {OWN} --beam 2",
    )
    epoch = f"--task translation_multi_simple_epoch {MULTILINGUAL} --langs xx,yy"
    yield row(
        "multi simple epoch",
        f"fairseq-train {{two}} {epoch} --sampling-method temperature --sampling-temperature 1.5 "
        f"--arch transformer --share-all-embeddings {SIZES} {OPTIMISE} {SMOOTHED} {SAVE}",
        f"{GENERATE} {epoch} {OWN} --beam 2",
    )


def language_models():
    """Rows about language models, hydra's command among them."""
    yield row("eval-lm", f"{EVAL_LM} --path {{trained_lm}}/checkpoint_last.pt", expect="Perplexity")
    yield row(
        "generate lm",
        "fairseq-generate {lm} --task language_modeling --path {trained_lm}/checkpoint_last.pt "
        "--max-tokens 400 --beam 2 --prefix-size 2 --max-len-b 6 --sample-break-mode eos",
    )
    yield row(
        "adaptive lm",
        f"{LANGUAGE_MODEL} --arch transformer_lm --adaptive-softmax-cutoff 10,20 --criterion "
        f"adaptive_loss --ddp-backend legacy_ddp --optimizer nag --clip-norm 0.1 --lr-scheduler "
        f"cosine --warmup-updates 1 {SAVE}",
        f"{EVAL_LM} {OWN}",
    )
    yield row(
        "hydra train, resume, eval",
        f"{HYDRA} optimization.max_update=3",
        f"{HYDRA} optimization.max_update=5",
        f"{EVAL_LM} --path {{out}}/saved/checkpoint_last.pt",
    )
    yield row("hydra bf16", f"{HYDRA} optimization.max_update=3 common.bf16=true")


def plugins():
    """Rows about --user-dir."""
    train = f"fairseq-train {PAIR} {PLUGIN} --user-dir"
    yield row("user-dir absolute", f"{train} {{plugin}} --no-save")
    yield row("user-dir relative", f"{train} tiny_plugin --no-save")
    yield row("user-dir dot slash", f"{train} ./tiny_plugin/ --no-save")
    yield row("user-dir loader workers", f"{train} {{plugin}} --no-save --num-workers 2")
    yield row(
        "user-dir generate",
        f"{train} {{plugin}} {SAVE}",
        f"{GENERATE} --user-dir {{plugin}} --task plugin_translation {OWN} --beam 2",
    )


ROWS = [
    row(
        "train eval-bleu, resume",
        f"{TRAIN} {SAVE} --eval-bleu --eval-bleu-detok space --best-checkpoint-metric bleu "
        "--maximize-best-checkpoint-metric --eval-bleu-print-samples",
        f"{TRAIN} {SAVE} --max-update 6",
        expect="@ 4 updates.*num_updates 6",
    ),
    row(
        "preprocess workers",
        "fairseq-preprocess -s xx -t yy --trainpref {text}/train --destdir {out}/bin --workers 2",
    ),
    *generation(),
    *precisions(),
    *architectures(),
    *language_models(),
    *plugins(),
    *data_parallel(),
]
