"""Smoke runs of what is no task by itself: options, sub-words, examples, and what needs more."""

from .language_rows import DECODER, ENCODER, EVALUATE, LANGUAGE_MODEL
from .rows import BOTH, OPTIMISE, OWN, SAVE, SHARED, SMOOTHED, TRAINED, row
from .speech_rows import CONVOLUTIONS, PRETRAIN, SOUND, STEPS
from .text_rows import GENERATE, HYPOTHESIS, PAIR, TRAIN

TRANSFORMER = f"{TRAIN} --arch transformer {SHARED}"
EXAMPLES = "--user-dir {examples}"
HYDRA = (
    "fairseq-hydra-train --multirun task=language_modeling task.data={lm} "
    "task.tokens_per_sample=32 model=transformer_lm model.decoder_layers=1 "
    "model.decoder_embed_dim=16 model.decoder_ffn_embed_dim=16 model.decoder_attention_heads=2 "
    "model.share_decoder_input_output_embed=true criterion=cross_entropy optimizer=adam "
    "lr_scheduler=fixed dataset.max_tokens=400 common.log_format=simple "
    "optimization.lr=[0.001],[0.002] optimization.max_update=2 hydra.sweep.dir={out}/sweep"
)


def more_architectures():
    """Rows of architectures that need other data or another checkpoint."""
    alignments = TRANSFORMER.replace(PAIR, "{aligned} -s xx -t yy").replace(
        SMOOTHED, "--criterion label_smoothed_cross_entropy_with_alignment --load-alignments"
    )
    yield row(
        "translation: transformer_align",
        alignments.replace("--arch transformer ", "--arch transformer_align --alignment-layer 0 "),
        expect=TRAINED,
    )
    convolutions = "[(16,3)]*2"
    yield row(
        "translation: fconv_self_att",
        f"{TRAIN} --arch fconv_self_att --encoder-embed-dim 16 --decoder-embed-dim 16 "
        f"--encoder-layers {convolutions} --decoder-layers {convolutions} --decoder-out-embed-dim "
        "16 --encoder-attention [False]*2 --decoder-attention [True]*2 "
        "--self-attention [False]*2 --encoder-attention-nheads 1 "
        "--multihead-attention-nheads 1 --project-input False "
        "--gated-attention False --downsample False",
        GENERATE,
        expect=HYPOTHESIS,
    )
    xlm = (
        "fairseq-train {languages} --task cross_lingual_lm --monolingual-langs xx,yy --criterion "
        f"legacy_masked_lm_loss --masked-lm-only {OPTIMISE} --tokens-per-sample 32 --arch xlm_base "
        f"--num-segment 2 {ENCODER} " + SAVE.replace("{out}", "{out}/xlm")
    )
    yield row(
        "translation_from_pretrained_xlm",
        xlm,
        f"fairseq-train {{shared}} -s xx -t yy {OPTIMISE} {SMOOTHED} {SAVE} --task "
        f"translation_from_pretrained_xlm --arch transformer_from_pretrained_xlm {SHARED} "
        "--pretrained-xlm-checkpoint {out}/xlm/checkpoint_last.pt --activation-fn gelu "
        "--encoder-learned-pos --decoder-learned-pos "
        "--max-source-positions 32 --max-target-positions 32",
        expect=TRAINED,
    )
    yield row(
        "translation: roberta_enc_dec",
        "fairseq-train {lm} --task masked_lm --criterion masked_lm --arch roberta_base "
        f"{ENCODER} --tokens-per-sample 32 {OPTIMISE} " + SAVE.replace("{out}", "{out}/roberta"),
        f"fairseq-train {{shared_pair}} -s xx -t yy {OPTIMISE} {SMOOTHED} {SAVE} "
        "--arch roberta_enc_dec --share-all-embeddings --max-source-positions 32 "
        "--max-target-positions 32 "
        "--pretrained-mlm-checkpoint {out}/roberta/checkpoint_last.pt",
        expect="num_updates 2.*num_updates 2",
    )
    yield row(
        "model_parallel: transformer_lm_megatron",
        f"{LANGUAGE_MODEL} --arch transformer_lm_megatron {DECODER} --model-parallel-size 2",
        expect="install the megatron submodule",
        fails=True,
    )


def more_speech():
    """Rows of speech models that are built on another one."""
    conformer = (
        f"fairseq-train {{units}} --task speech_to_speech --target-is-code --target-code-size 5 "
        f"--vocoder code_hifigan --criterion speech_to_unit --label-smoothing 0.1 {STEPS} {SAVE} "
        f"--arch s2ut_conformer {BOTH} --conv-channels 16 --depthwise-conv-kernel-size 3 "
        "--attn-type espnet --pos-enc-type rel_pos"
    )
    yield row("speech_to_speech: s2ut_conformer", conformer, expect=TRAINED)
    task = "{recordings_with_text} --task speech_to_text --max-source-positions 99999"
    yield row(
        "speech_to_text: xm_transformer",
        PRETRAIN + SAVE.replace("{out}", "{out}/pretrained"),
        f"fairseq-train {task} {STEPS} {SMOOTHED} {SAVE} --arch xm_transformer --normalize "
        "--w2v-path {out}/pretrained/checkpoint_last.pt --decoder-layers 1 --decoder-embed-dim 8 "
        "--decoder-ffn-embed-dim 8 --decoder-attention-heads 2 --adaptor-n-layers 1",
        f"fairseq-generate {task} {OWN} --beam 2 --max-len-b 5",
        expect=r"num_updates 2.*num_updates 2.*\nH-3\t",
        needs=SOUND,
    )
    yield row(
        "speech_unit_modeling: transformer_ulm",
        f"fairseq-train {{prosody}}/config.json --task speech_unit_modeling {OPTIMISE} {SAVE} "
        f"--arch transformer_ulm_tiny {DECODER} --criterion speech_unit_lm_criterion "
        "--loss-weights 1;0.5;0.5 --discrete-duration --discrete-f0 --log-f0 --normalize-f0-mean "
        "--stream-shifts 1,1 --ignore-unused-valid-subsets",
        expect=TRAINED,
    )


def options():
    """Rows of options."""
    average = f"{TRANSFORMER} --store-ema --ema-decay 0.9"
    yield row("EMA, resumed", average, f"{average} --max-update 4", expect="num_updates 4")
    # weights that weight_norm computes are averaged as well
    layers = "[(16,3)]*2"
    fconv = (
        f"{TRAIN} --arch fconv --encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-layers "
        f"{layers} --decoder-layers {layers} --decoder-out-embed-dim 16 --store-ema"
    )
    yield row("EMA of fconv, resumed", fconv, f"{fconv} --max-update 4", expect="num_updates 4")
    yield row(
        "--distributed-world-size 2 --cpu",
        f"{TRANSFORMER} --distributed-world-size 2 --cpu",
        GENERATE,
        expect=HYPOTHESIS,
    )
    model = f"{LANGUAGE_MODEL} --arch transformer_lm {DECODER}"
    yield row(
        "--use-plasma-view",
        f"{model} --use-plasma-view --plasma-path {{out}}/plasma --num-workers 2",
        EVALUATE,
        expect="num_updates 2.*Perplexity",
    )
    yield row(
        "LM fusion",
        f"{model} " + SAVE.replace("{out}", "{out}/lm"),
        f"{TRANSFORMER}".replace(PAIR, "{shared_pair} -s xx -t yy"),
        GENERATE.replace(PAIR, "{shared_pair} -s xx -t yy")
        + " --lm-path {out}/lm/checkpoint_last.pt --lm-weight 0.2",
        expect=HYPOTHESIS,
    )
    yield row("hydra --multirun", HYDRA, expect="num_updates 2.*num_updates 2")
    interactive = f"fairseq-interactive {PAIR} {OWN} --beam 2 --max-len-b 6"
    for tokenizer, package in (("space", None), ("moses", "sacremoses")):
        yield row(
            f"--tokenizer {tokenizer}",
            TRANSFORMER,
            f"{interactive} --tokenizer {tokenizer}",
            expect=r"\nD-0\t",
            stdin="an1 av2 an3\n",
            needs=(package,) if package else (),
        )
    for bpe, package in (("characters", None), ("bytes", None), ("byte_bpe", "sentencepiece")):
        more = " --sentencepiece-model-path {spm}" if bpe == "byte_bpe" else ""
        yield row(
            f"--bpe {bpe}",
            TRANSFORMER,
            f"{interactive} --bpe {bpe}{more}",
            expect=r"\nD-0\t",
            stdin="an1 av2\n",
            needs=(package,) if package else (),
        )


def examples():
    """Rows of fairseq's examples, which the archive on PyPI holds."""
    moe = EXAMPLES + "/translation_moe/translation_moe_src"
    yield row(
        "example translation_moe",
        f"{TRANSFORMER} {moe} --task translation_moe --method hMoElp --mean-pool-gating-network "
        "--num-experts 2 --mean-pool-gating-network-encoder-dim 16",
        expect=TRAINED,
    )
    pointer = EXAMPLES + "/pointer_generator/pointer_generator_src"
    yield row(
        "example pointer_generator",
        f"{TRAIN} {pointer} --arch transformer_pointer_generator {BOTH} --share-all-embeddings "
        "--alignment-layer -1 --alignment-heads 1 --source-position-markers 0",
        GENERATE + f" {pointer}",
        expect=HYPOTHESIS,
    )
    linear = EXAMPLES + "/linformer/linformer_src"
    yield row(
        "example linformer",
        f"fairseq-train {{lm}} {linear} --task masked_lm --criterion masked_lm {OPTIMISE} "
        "--tokens-per-sample 32 --sample-break-mode complete --batch-size 8 --arch "
        f"linformer_roberta_base {ENCODER} --user-dir {{examples}}/linformer/linformer_src {SAVE}",
        expect=TRAINED,
    )


def simultaneous():
    """Rows of simultaneous translation."""
    example = EXAMPLES + "/simultaneous_translation"
    one_by_one = "--batch-size 1 --beam 1"
    right = f"{example} --left-pad-source False"
    train = f"{TRAIN} {right} {SHARED} --arch transformer_monotonic --simul-type"
    generate = GENERATE.replace("--beam 2", one_by_one) + f" {right}"
    yield row(
        "simul_text_to_text",
        f"{train} infinite_lookback --task simul_text_to_text --latency-avg-weight 0.1 "
        "--criterion latency_augmented_label_smoothed_cross_entropy --latency-var-weight 0.1",
        f"{generate} --task simul_text_to_text",
        expect=HYPOTHESIS,
    )
    for kind, options in (
        ("hard_aligned", ""),
        ("waitk", "--waitk-lagging 2"),
        ("chunkwise", "--mocha-chunk-size 2"),
        ("waitk_fixed_pre_decision", "--waitk-lagging 1 --fixed-pre-decision-ratio 2"),
    ):
        yield row(
            f"translation: transformer_monotonic, {kind}",
            f"{train} {kind} {options}",
            generate,
            expect=HYPOTHESIS,
        )
    speech = "{speech} --task simul_speech_to_text"
    ratio = "--waitk-lagging 1 --fixed-pre-decision-ratio 3"
    yield row(
        "simul_speech_to_text",
        f"fairseq-train {speech} {STEPS} {SMOOTHED} {SAVE} {example} --arch "
        f"convtransformer_simul_trans_espnet --simul-type waitk_fixed_pre_decision {ratio} {BOTH}",
        f"fairseq-generate {speech} {OWN} {example} {one_by_one} --max-len-b 5",
        expect=TRAINED + r".*\nH-",
    )
    yield row(
        "simul_speech_to_text: convtransformer_augmented_memory, convtransformer_emformer",
        f"fairseq-train {speech} {STEPS} {SMOOTHED} {SAVE} {example} --arch "
        f"convtransformer_augmented_memory --simul-type waitk_fixed_pre_decision {ratio} {BOTH}",
        expect="PyPI lacks fairseq/models/speech_to_text/modules",
        fails=True,
    )


def data2vec():
    """Rows of data2vec, with the configuration of the example and smaller sizes."""
    small = " ".join(
        f"model.transformer.encoder.{name}"
        for name in ("layers=2", "embed_dim=16", "ffn_embed_dim=16", "attention_heads=2")
    )
    yield row(
        "example data2vec: text",
        "fairseq-hydra-train --config-dir {examples}/data2vec/config/text/pretraining "
        "--config-name base common.user_dir={examples}/data2vec common.fp16=false "
        "common.log_format=simple common.log_interval=1 common.tensorboard_logdir=null "
        "distributed_training.distributed_world_size=1 task.data={lm} task.tokens_per_sample=32 "
        "task.sample_break_mode=complete dataset.max_tokens=400 lr_scheduler.warmup_updates=1 "
        f"model.average_top_k_layers=1 {small} "
        "optimization.max_update=2 checkpoint.save_dir={out}",
        expect=TRAINED,
    )
    tiny = (
        "common.log_format=simple common.log_interval=1 common.tensorboard_logdir=null "
        "distributed_training.distributed_world_size=1 dataset.num_workers=0 "
        "optimization.max_update=2 checkpoint.save_dir={out}"
    )
    ten = tiny.replace("max_update=2", "max_update=10")  # its schedule has three phases
    audio = (
        "fairseq-hydra-train --config-dir {examples}/data2vec/config/audio/pretraining "
        "--config-name base_librispeech common.user_dir={examples}/data2vec common.fp16=false "
        "task.data={waves} task.min_sample_size=1000 dataset.max_tokens=40000 "
        f"+model.conv_feature_layers='{CONVOLUTIONS}' +model.encoder_layers=2 "
        "model.encoder_embed_dim=16 +model.encoder_ffn_embed_dim=16 "
        "+model.encoder_attention_heads=2 model.conv_pos=6 +model.conv_pos_groups=2 "
        "model.pos_conv_depth=2 model.mask_length=2 "
        f"model.average_top_k_layers=1 lr_scheduler.phase_ratio=[0.1,0.5,0.4] {ten}"
    )
    # also what weight_norm computes is averaged
    whole = audio.replace("pos_conv_depth=2", "pos_conv_depth=1")
    whole += " model.ema_layers_only=false"
    for name, command in (("audio", audio), ("audio, whole encoder averaged", whole)):
        yield row(
            f"example data2vec: {name}", command, expect="num_updates 10", needs=("soundfile",)
        )


ROWS = [
    *more_architectures(),
    *more_speech(),
    *options(),
    *examples(),
    *simultaneous(),
    *data2vec(),
]
