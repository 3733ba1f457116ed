"""Smoke runs of translation, without speech."""

from .rows import BOTH, OPTIMISE, OWN, SAVE, SHARED, SMOOTHED, TRAINED, row

PAIR = "{two} -s xx -t yy"
TRAIN = f"fairseq-train {PAIR} {OPTIMISE} {SMOOTHED} {SAVE}"
GENERATE = f"fairseq-generate {PAIR} {OWN} --beam 2 --max-len-b 8"
EMBED = "--encoder-embed-dim 16 --decoder-embed-dim 16"
CONVOLUTIONS = "--encoder-layers [(16,3)]*2 --decoder-layers [(16,3)]*2"
NAT = f"{PAIR} --task translation_lev {SHARED} {OPTIMISE} --criterion nat_loss {SAVE}"
REFINE = (
    f"fairseq-generate {PAIR} {OWN} --task translation_lev --iter-decode-max-iter 2 "
    "--iter-decode-eos-penalty 0"
)
HYPOTHESIS = r"num_updates 2.*\nH-23\t"


def translation():
    """Rows of the task translation."""
    for arch, options in (
        ("transformer", SHARED),
        ("transformer_tiny", "--share-all-embeddings"),
        (
            "lstm",
            f"{EMBED} --encoder-hidden-size 16 --decoder-hidden-size 16 --decoder-out-embed-dim 16",
        ),
        ("fconv", f"{EMBED} {CONVOLUTIONS} --decoder-out-embed-dim 16"),
        (
            "lightconv",
            f"{BOTH} --encoder-conv-dim 16 --decoder-conv-dim 16 "
            "--encoder-kernel-size-list [3] --decoder-kernel-size-list [3] --encoder-conv-type "
            "lightweight --decoder-conv-type lightweight",
        ),
        (
            "lightconv",
            f"{BOTH} --encoder-conv-dim 16 --decoder-conv-dim 16 "
            "--encoder-kernel-size-list [3] --decoder-kernel-size-list [3] --encoder-conv-type "
            "dynamic --decoder-conv-type dynamic",
        ),
    ):
        kind = " dynamic" if "dynamic" in options else ""
        yield row(
            f"translation: {arch}{kind}",
            f"{TRAIN} --arch {arch} {options}",
            GENERATE,
            expect=HYPOTHESIS,
        )


def refinement():
    """Rows of the task translation_lev."""
    for arch, options in (
        ("nonautoregressive_transformer", "--noise full_mask --length-loss-factor 0.1"),
        ("nacrf_transformer", "--noise full_mask --length-loss-factor 0.1 --crf-beam-approx 16"),
        ("iterative_nonautoregressive_transformer", "--noise full_mask --train-step 2"),
        ("cmlm_transformer", "--noise random_mask"),
        ("levenshtein_transformer", "--noise random_delete"),
        ("insertion_transformer", "--noise random_delete"),
    ):
        generate = f"{REFINE} --iter-decode-with-beam 1"
        yield row(
            f"translation_lev: {arch}",
            f"fairseq-train {NAT} --arch {arch} {options}",
            generate,
            expect=HYPOTHESIS,
        )
    twice = OWN + ":{out}/checkpoint_best.pt"
    for arch in ("cmlm_transformer", "levenshtein_transformer"):
        noise = "random_mask" if arch == "cmlm_transformer" else "random_delete"
        yield row(
            f"translation_lev: {arch}, ensemble",
            f"fairseq-train {NAT} --arch {arch} --noise {noise}",
            REFINE.replace(OWN, twice),
            expect=HYPOTHESIS,
        )


def several_languages():
    """Rows of the tasks for several languages."""
    pairs = "--lang-pairs xx-yy,yy-xx"
    multi = f"--arch multilingual_transformer --share-encoders --share-decoders {BOTH}"
    train = f"fairseq-train {{shared}} {OPTIMISE} {SMOOTHED} {SAVE}"
    generate = f"fairseq-generate {{shared}} -s xx -t yy {OWN} --beam 2 --max-len-b 8"
    options = f"--task multilingual_translation {pairs}"
    yield row(
        "multilingual_translation",
        f"{train} {options} {multi}",
        f"{generate} {options}",
        expect=HYPOTHESIS,
    )
    options = f"--task translation_multi_simple_epoch {pairs} --langs xx,yy --encoder-langtok src"
    yield row(
        "translation_multi_simple_epoch",
        f"{train} {options} --arch transformer {SHARED}",
        f"{generate} {options}",
        expect=HYPOTHESIS,
    )
    options = f"--task semisupervised_translation {pairs}"
    unpaired = f"fairseq-train {{unpaired}} {OPTIMISE} {SMOOTHED} {SAVE} {options} {multi}"
    weights = "--lambda-otf-bt-config 1.0 --lambda-denoising-config 1.0"
    yield row("semisupervised_translation", f"{unpaired} {weights} ", expect=TRAINED)
    yield row(
        "online_backtranslation",
        f"fairseq-train {{several}} {OPTIMISE} {SMOOTHED} {SAVE} --task online_backtranslation "
        f"--mono-langs xx,yy --valid-lang-pairs xx-yy --arch transformer {SHARED}",
        expect=TRAINED,
    )
    yield row(
        "translation_from_pretrained_bart",
        f"{train} --task translation_from_pretrained_bart -s xx -t yy --langs xx,yy --arch "
        f"mbart_base {SHARED} --layernorm-embedding",
        f"{generate} --task translation_from_pretrained_bart --langs xx,yy",
        expect=HYPOTHESIS,
    )


ROWS = [*translation(), *refinement(), *several_languages()]
