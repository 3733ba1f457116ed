"""Smoke runs of language models, and of models that are pretrained on text and then tuned."""

from .rows import OPTIMISE, OWN, SAVE, SHARED, TRAINED, row, sizes

DECODER = sizes("decoder")
ENCODER = sizes("encoder")
LANGUAGE_MODEL = (
    f"fairseq-train {{lm}} --task language_modeling {OPTIMISE} --tokens-per-sample 32 {SAVE}"
)
EVALUATE = f"fairseq-eval-lm {{lm}} --max-tokens 400 --tokens-per-sample 32 {OWN}"
SAMPLES = "--tokens-per-sample 32 --sample-break-mode complete --batch-size 8"
MASKED = f"fairseq-train {{lm}} --task masked_lm --criterion masked_lm {OPTIMISE} {SAMPLES} {SAVE}"
BART = f"{SHARED} --layernorm-embedding"


def language_models():
    """Rows of the task language_modeling."""
    convolutions = "--decoder-layers [(16,2)] --decoder-embed-dim 16"
    for arch, options in (
        ("transformer_lm", DECODER),
        ("lstm_lm", "--decoder-embed-dim 16 --decoder-hidden-size 16 --decoder-out-embed-dim 16"),
        ("fconv_lm", convolutions),
        ("lightconv_lm", f"{DECODER} --decoder-kernel-size-list [3]"),
    ):
        yield row(
            f"language_modeling: {arch}",
            f"{LANGUAGE_MODEL} --arch {arch} {options}",
            EVALUATE,
            expect=r"num_updates 2.*Perplexity",
        )
    yield row(
        "language_modeling: hf_gpt2",
        f"{LANGUAGE_MODEL} --arch hf_gpt2 --embed-dim 16 --num-attention-heads 2 --num-layers 1",
        expect=TRAINED,
        needs=("transformers",),
    )
    yield row(
        "multilingual_language_modeling",
        f"fairseq-train {{several}} --task multilingual_language_modeling --langs xx,yy {OPTIMISE} "
        f"--tokens-per-sample 32 {SAVE} --arch transformer_lm {DECODER}",
        expect=TRAINED,
    )


def pretraining():
    """Rows of masked language models and denoising."""
    yield row(
        "masked_lm: roberta",
        f"{MASKED} --arch roberta_base {ENCODER}",
        f"fairseq-validate {{lm}} --task masked_lm {OWN} --batch-size 8",
        expect=TRAINED,
    )
    yield row(
        "masked_lm: roberta_prenorm", f"{MASKED} --arch roberta_prenorm {ENCODER}", expect=TRAINED
    )
    yield row(
        "legacy_masked_lm: masked_lm",
        "fairseq-train {lm} --task legacy_masked_lm --criterion legacy_masked_lm_loss "
        f"--dataset-impl mmap --break-mode none {OPTIMISE} --tokens-per-sample 32 --arch bert_base "
        f"{ENCODER} {SAVE}",
        expect=TRAINED,
    )
    yield row(
        "cross_lingual_lm: xlm_base",
        "fairseq-train {languages} --task cross_lingual_lm --monolingual-langs xx,yy --criterion "
        f"legacy_masked_lm_loss --masked-lm-only {OPTIMISE} --tokens-per-sample 32 --arch xlm_base "
        f"--num-segment 2 {ENCODER} {SAVE}",
        expect=TRAINED,
    )
    several = f"fairseq-train {{several}} --task multilingual_masked_lm {OPTIMISE} {SAMPLES} {SAVE}"
    yield row(
        "multilingual_masked_lm: roberta",
        f"{several} --criterion masked_lm --arch roberta_base {ENCODER}",
        expect=TRAINED,
    )
    yield row(
        "multilingual_masked_lm: xmod",
        f"{several} --criterion masked_lm --arch xmod_base_13 {ENCODER}",
        expect=TRAINED,
    )
    noise = "--mask 0.3 --replace-length 1 --mask-length subword --permute-sentences 1.0"
    denoise = f"--criterion cross_entropy {OPTIMISE} --tokens-per-sample 32 {SAVE} {noise}"
    yield row(
        "denoising: bart",
        f"fairseq-train {{lm}} --task denoising --arch bart_base {BART} {denoise}",
        expect=TRAINED,
    )
    yield row(
        "multilingual_denoising: mbart",
        "fairseq-train {several} --task multilingual_denoising --langs xx,yy --add-lang-token "
        f"--arch mbart_base {BART} {denoise}",
        expect=TRAINED,
    )


def tuning():
    """Rows of models that are tuned on labels."""
    labels = f"{OPTIMISE} --batch-size 8 {SAVE} --init-token 0 --separator-token 2 "
    labels += "--max-positions 32"
    start = f"{MASKED} --arch roberta_base {ENCODER}"
    restore = (
        "--restore-file {out}/pretrained.pt --reset-optimizer --reset-dataloader --reset-meters"
    )
    pretrain = start.replace("--save-dir {out}", "--save-dir {out}/pretrained")
    restore = restore.replace("pretrained.pt", "pretrained/checkpoint_last.pt")
    classify = "fairseq-train {sentences} --num-classes 2 --criterion sentence_prediction"
    yield row(
        "sentence_prediction: roberta",
        pretrain,
        f"{classify} --task sentence_prediction --arch roberta_base {ENCODER} {labels} {restore}",
        f"fairseq-validate {{sentences}} --task sentence_prediction --num-classes 2 {OWN} "
        "--criterion sentence_prediction "
        "--batch-size 8",
        expect="accuracy",
    )
    yield row(
        "sentence_prediction: bart",
        f"{classify} --task sentence_prediction --arch bart_base {BART} {labels} "
        "--add-prev-output-tokens",
        expect=TRAINED,
    )
    yield row(
        "sentence_prediction_adapters: xmod",
        f"{classify}_adapters --task sentence_prediction_adapters --arch xmod_base_13 {ENCODER} "
        f"{labels}",
        expect=TRAINED,
    )
    yield row(
        "sentence_ranking: roberta",
        "fairseq-train {ranking} --task sentence_ranking --criterion sentence_ranking "
        f"--num-classes 2 --arch roberta_base {ENCODER} {labels}",
        expect=TRAINED,
    )


def dummies():
    """Rows of the tasks that make up data, to measure speed."""
    for name, arch, criterion in (
        ("dummy_lm", f"transformer_lm {DECODER}", "cross_entropy"),
        ("dummy_masked_lm", f"roberta_base {ENCODER}", "masked_lm"),
        ("dummy_masked_lm: dummy_model", "dummy_model --num-layers 1 --embed-dim 16", "masked_lm"),
        ("dummy_mt", f"transformer {SHARED}", "cross_entropy"),
    ):
        task = name.split(":")[0]
        options = "--tokens-per-sample 32" if task != "dummy_mt" else "--src-len 8 --tgt-len 8"
        yield row(
            name,
            f"fairseq-train --task {task} --arch {arch} --criterion {criterion} "
            f"{OPTIMISE} --dict-size 99 --dataset-size 20 {options} --batch-size 4 {SAVE}",
            expect=TRAINED,
        )


ROWS = [*language_models(), *pretraining(), *tuning(), *dummies()]
