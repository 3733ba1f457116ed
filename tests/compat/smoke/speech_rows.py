"""Smoke runs of speech."""

from .rows import OPTIMISE, OWN, SAVE, SMOOTHED, TRAINED, row, sizes

STEPS = OPTIMISE.replace("--max-tokens 800", "--max-tokens 40000")
CONVOLUTIONS = "[(16,10,5)]+[(16,8,4)]+[(16,4,4)]*2"  # a frame of 320 samples
WAV2VEC2 = (
    f"--conv-feature-layers {CONVOLUTIONS} --encoder-layers 1 --encoder-embed-dim 16 "
    "--encoder-ffn-embed-dim 16 --encoder-attention-heads 2 --final-dim 16 --conv-pos 8 "
    "--conv-pos-groups 2"
)
SOUND = ("soundfile",)
TUNE = (
    "fairseq-train {waves} --task audio_finetuning --labels ltr --normalize --w2v-path "
    f"{{out}}/pretrained/checkpoint_last.pt {STEPS} --mask-prob 0.3 --mask-length 2 {SAVE}"
)
PRETRAIN = (
    f"fairseq-train {{waves}} --task audio_pretraining --normalize --arch wav2vec2 {WAV2VEC2} "
    f"--quantize-targets --latent-vars 8 --mask-length 2 --mask-prob 0.5 --num-negatives 5 "
    f"--criterion wav2vec --loss-weights [0.1,10] --infonce --log-keys "
    f'["prob_perplexity","code_perplexity","temp"] {STEPS} '
)


def waveforms():
    """Rows of models of the waveform."""
    first = PRETRAIN + SAVE.replace("{out}", "{out}/pretrained")
    yield row("audio_pretraining: wav2vec2", PRETRAIN + SAVE, expect=TRAINED, needs=SOUND)
    yield row(
        "audio_pretraining: wav2vec",
        "fairseq-train {waves} --task audio_pretraining --arch wav2vec --conv-feature-layers "
        "[(16,10,5)]+[(16,8,4)]+[(16,4,4)]*2 --conv-aggregator-layers [(16,2,1)]*2 "
        "--prediction-steps 2 --num-negatives 2 --max-sample-size 8000 --min-sample-size 1000 "
        f"--criterion wav2vec {STEPS} {SAVE}",
        expect=TRAINED,
        needs=SOUND,
    )
    yield row(
        "audio_finetuning: wav2vec_ctc",
        first,
        f"{TUNE} --arch wav2vec_ctc --criterion ctc --post-process letter",
        expect=TRAINED,
        needs=(*SOUND, "editdistance"),
    )
    yield row(
        "audio_finetuning: wav2vec_seq2seq",
        first,
        f"{TUNE} --arch wav2vec_seq2seq --criterion cross_entropy --autoregressive "
        "--encoder-embed-dim 16 --decoder-layers 1 --decoder-embed-dim 16 "
        "--decoder-ffn-embed-dim 16 --decoder-attention-heads 2",
        expect=TRAINED,
        needs=SOUND,
    )
    hubert = (
        f'fairseq-train {{waves}} --task hubert_pretraining --labels ["km"] --label-rate 50 '
        f"--arch hubert {WAV2VEC2} --mask-length 2 --mask-prob 0.5 --criterion hubert {STEPS}"
    )
    yield row("hubert_pretraining: hubert", f"{hubert} {SAVE}", expect=TRAINED, needs=SOUND)
    yield row(
        "hubert_pretraining: hubert_ctc",
        f"{hubert} " + SAVE.replace("{out}", "{out}/pretrained"),
        'fairseq-train {waves} --task hubert_pretraining --fine-tuning --labels ["ltr"] '
        "--single-target --arch hubert_ctc --w2v-path {out}/pretrained/checkpoint_last.pt "
        f"--criterion ctc --post-process letter {STEPS} {SAVE}",
        expect=TRAINED,
        needs=(*SOUND, "editdistance"),
    )


def spectrograms():
    """Rows of speech_to_text and its relatives."""
    both = sizes("encoder", "decoder")
    train = f"fairseq-train {{speech}} --task speech_to_text {STEPS} {SMOOTHED} {SAVE}"
    generate = f"fairseq-generate {{speech}} --task speech_to_text {OWN} --beam 2 --max-len-b 5"
    for arch, options in (
        ("s2t_transformer_xs", f"{both} --conv-channels 16"),
        (
            "s2t_conformer",
            f"{both} --conv-channels 16 --input-feat-per-channel 80 "
            "--depthwise-conv-kernel-size 3 --attn-type espnet --pos-enc-type rel_pos",
        ),
        (
            "s2t_berard",
            "--input-layers [16,16] --conv-layers [(4,3,2)] --num-blstm-layers 1 "
            "--lstm-size 8 --decoder-embed-dim 16 --decoder-num-layers 1 --decoder-hidden-dim 16 "
            "--attention-dim 16 --output-layer-dim 16",
        ),
        ("convtransformer", f"{both} --conv-out-channels 4"),
    ):
        yield row(
            f"speech_to_text: {arch}",
            f"{train} --arch {arch} {options}",
            generate,
            expect=r"num_updates 2.*\nH-3\t",
        )
    yield row(
        "speech_to_text: s2t_transformer from wav",
        f"{train} --arch s2t_transformer_xs {both} --conv-channels 16".replace(
            "{speech}", "{speech_from_waves}"
        ),
        expect=TRAINED,
        needs=(*SOUND, "torchaudio"),
    )


def synthesis():
    """Rows of text_to_speech and speech_to_speech."""
    both = sizes("encoder", "decoder")
    short = both.replace("--encoder-ffn-embed-dim 16", "").replace("--decoder-ffn-embed-dim 16", "")
    layers = both.replace("-layers", "-transformer-layers")
    spectrum = both.replace("--decoder-layers", "--decoder-transformer-layers")
    train = f"fairseq-train {{synthesis}} --task text_to_speech {STEPS} {SAVE}"
    yield row(
        "text_to_speech: tts_transformer",
        f"{train} --arch tts_transformer {layers} --prenet-dim 16 --postnet-conv-dim 16 "
        "--encoder-conv-layers 1 --encoder-conv-kernel-size 3 --criterion tacotron2 "
        "--output-frame-dim 80",
        expect=TRAINED,
    )
    yield row(
        "text_to_speech: tacotron_2",
        f"{train} --arch tacotron_2 --encoder-embed-dim 16 --encoder-lstm-layers 1 "
        "--decoder-lstm-dim 16 --prenet-dim 16 --postnet-conv-dim 16 --attention-dim 16 "
        "--output-frame-dim 80 --criterion tacotron2",
        expect=TRAINED,
    )
    yield row(
        "text_to_speech: fastspeech2",
        f"{train} --arch fastspeech2 {short} --fft-hidden-dim 16 --output-frame-dim 80 "
        "--var-pred-hidden-dim 16 --var-pred-n-bins 4 --criterion fastspeech2",
        expect=TRAINED,
    )
    yield row(
        "frm_text_to_speech: tts_transformer",
        f"{train} --arch tts_transformer {layers} --prenet-dim 16 --postnet-conv-dim 16 "
        "--encoder-conv-layers 1 --encoder-conv-kernel-size 3 --output-frame-dim 80 "
        "--criterion tacotron2".replace("text_to_speech", "frm_text_to_speech"),
        expect=TRAINED,
    )
    yield row(
        "speech_to_speech: s2ut_transformer",
        f"fairseq-train {{units}} --task speech_to_speech --target-is-code --target-code-size 5 "
        f"--vocoder code_hifigan --criterion speech_to_unit --label-smoothing 0.1 {STEPS} {SAVE} "
        f"--arch s2ut_transformer {both} --conv-channels 16",
        expect=TRAINED,
    )
    yield row(
        "speech_to_speech: s2spect_transformer",
        f"fairseq-train {{spectrograms}} --task speech_to_speech --criterion "
        f"speech_to_spectrogram {STEPS} {SAVE} --arch s2spect_transformer {spectrum} "
        "--conv-channels 16 --prenet-dim 16 --postnet-conv-dim 16",
        expect=TRAINED,
    )


ROWS = [*waveforms(), *spectrograms(), *synthesis()]
