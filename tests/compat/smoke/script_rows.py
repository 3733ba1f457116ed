"""Smoke runs of scripts of fairseq's examples, and of what a model of an example needs of them."""

from .example_rows import EXAMPLES, HYDRA
from .rows import OPTIMISE, SAVE, SHARED, row
from .speech_rows import PRETRAIN, STEPS, TUNE
from .text_rows import GENERATE, TRAIN

SOUND = ("soundfile", "editdistance")
UNSUPERVISED = "{examples}/wav2vec/unsupervised"


def back_translation():
    """Rows of scripts on files of text."""
    data = "--srclang yy --tgtlang xx --output {out}/back"
    yield row(
        "example backtranslation: extract_bt_data.py",
        f"{TRAIN} --arch transformer {SHARED}",
        f"{GENERATE} --results-path {{out}}",
        "python {examples}/backtranslation/extract_bt_data.py --minlen 1 --maxlen 250 --ratio 9 "
        f"{data} {{out}}/generate-test.txt",
        "python {examples}/backtranslation/deduplicate_lines.py --workers 2 {out}/back.xx",
        expect="an[0-9] av[0-9] an[0-9]",
    )
    yield row(
        "example backtranslation: deduplicate_lines.py",
        "python {examples}/backtranslation/deduplicate_lines.py --workers 2 {text}/test.xx",
        expect="an[0-9] av[0-9] an[0-9]",
    )
    yield row(
        "example unsupervised_quality_estimation: repeat_lines.py",
        "python {examples}/unsupervised_quality_estimation/repeat_lines.py -n 2 -i {text}/test.xx",
        expect=r"(an[0-9] [^\n]*)\n\1\n",
    )


def text():
    """Rows of other scripts on files of text."""
    copied = "{text}/test.xx"
    pointer = "python {examples}/pointer_generator"
    yield row(
        "example pointer_generator: preprocess.py, postprocess.py",
        f"{pointer}/preprocess.py --source {copied} --target {copied} --vocab {{vocabulary}} "
        "--source-out {out}/source --target-out {out}/target",
        f"{pointer}/postprocess.py --source {copied} --target {{out}}/target --target-out "
        "{out}/words",
        f"fairseq-score --sys {{out}}/words --ref {copied}",
        expect=r"BLEU4 = 100\.00",
    )
    yield row(
        "example roberta: multiprocessing_bpe_encoder.py",
        "python {examples}/roberta/multiprocessing_bpe_encoder.py --keep-empty --workers 1 "
        "--encoder-json {bytes_of_gpt2}/encoder.json --vocab-bpe {bytes_of_gpt2}/vocab.bpe",
        expect=r"(^|\n)104 195 169\n\n33\n",
        stdin="h\u00e9\n\n!\n",
    )
    scripts = "env WORKDIR_ROOT=/ python {examples}/multilingual/data_scripts"
    yield row(
        "example multilingual: dedup_all.py, check_self_overlaps.py",
        f"{scripts}/dedup_all.py --from-folder {{overlapping_pair}} --to-folder {{out}}",
        f"{scripts}/check_self_overlaps.py --folder {{overlapping_pair}}",
        expect=r"number of duplication: 2.*\nxx-yy\t 1\t1\t1\t2\t5\n",
    )
    yield row(
        "example translation_moe: score.py, with python -m",
        "python -m examples.translation_moe.score --sys {mixture}/first {mixture}/second "
        "--ref {mixture}/references",
        expect=r"#refs covered: 2\.00",
    )
    yield row(
        "example discriminative_reranking_nmt: prep_data.py, drnmt_rerank.py",
        *reranking(),
        expect=r"before reranking, BLEU: 100\.0.*after reranking with fw_weight=999.*BLEU: 100\.0",
        needs=("sentencepiece",),
    )


def reranking():
    """Yield the commands by which a reranker is trained and used."""
    example = "{examples}/discriminative_reranking_nmt"
    for split in ("train", "valid"):
        yield (
            f"python {example}/scripts/prep_data.py --input-source {{text}}/{split}.xx "
            f"--input-target {{text}}/{split}.yy --input-hypo {{reranked}}/{split}.hypotheses "
            f"--output-dir {{out}} --split {split} --beam 2 --n-proc 1 "
            "--sentencepiece-model {reranked}/pieces.model"
        )
    data = "{out}/bleu/split1"
    for side in ("src", "tgt"):
        folder = f"{data}/input_{side}"
        yield (
            f"fairseq-preprocess --only-source --trainpref {folder}/train.bpe --validpref "
            f"{folder}/valid.bpe --destdir {folder} --srcdict {{reranked}}/dict.txt"
        )
    yield (
        f"fairseq-hydra-train --config-dir {example}/config --config-name deen "
        f"common.user_dir={example} common.fp16=false dataset.valid_subset=valid "
        f"distributed_training.distributed_world_size=1 task.num_data_splits=1 task.data={data} "
        f"task.mt_beam=2 +task.max_positions=64 {HYDRA} dataset.batch_size=4 "
        "dataset.required_batch_size_multiple=2 model.pretrained_model='' +model.embed_dim=16 "
        "+model.ffn_embed_dim=16 +model.encoder_layers=1 +model.attention_heads=2 "
        "optimization.update_freq=[1] optimization.max_update=2 checkpoint.save_dir={out}"
    )
    yield (
        f"python {example}/drnmt_rerank.py {data} --path {{out}}/checkpoint_best.pt --in-text "
        f"{{reranked}}/valid.output --target-text {{text}}/valid.yy --user-dir {example} "
        "--bpe sentencepiece --sentencepiece-model {reranked}/pieces.model --beam 2 "
        "--batch-size 2 --metric bleu --fw-weight 999 --lenpen 1"
    )


def labels():
    """Rows of scripts of wav2vec and HuBERT on transcripts."""
    for name, result in (("ltr", "letters"), ("wrd", "words")):
        yield row(
            f"example wav2vec: libri_labels.py, {result}",
            "python {examples}/wav2vec/libri_labels.py {librispeech}/train.tsv --output-dir {out} "
            "--output-name train",
            f"fairseq-score --sys {{out}}/train.{name} --ref {{librispeech}}/{result}",
            expect=r"BLEU4 = 100\.00",
        )
    scripts = f"python {UNSUPERVISED}/scripts"
    for script, stdin, expected, needs in (
        ("normalize_text.py", '\u00bfHe,  "said"? 12-3\n', "He said 12-3\n", ("regex",)),
        ("wrd_to_ltr.py", "HE SAID\n", r"H E \| S A I D \|\n", ()),
        ("ltr_to_wrd.py", "H E | S A I D |\n", "HE SAID\n", ()),
        (
            "phonemize_with_sil.py --surround --lexicon {phones}/lexicon",
            "HE WAS\nHE SAID\n",
            r"^<SIL> HH IY S EH D <SIL>\n$",
            (),
        ),
        (
            "filter_lexicon.py --unit-dict {phones}/dict.txt",
            "HE HH IY\nSO S OW\n",
            r"HE HH IY\n$",
            (),
        ),
        (
            "filter_tsv.py --tsv {librispeech}/train.tsv",
            "/root\n1-7-1.wav\t4\n1-7-2.wav\t5\n",
            r"^/root\n1-7-2.wav\t5\n$",
            (),
        ),
        (
            "wer.py -s {phones}/hypotheses -r {phones}/references",
            "",
            r"UER: 50\.00%",
            ("editdistance",),
        ),
    ):
        yield row(
            f"example wav2vec-U: {script.split()[0]}",
            f"{scripts}/{script}",
            expect=expected,
            stdin=stdin,
            needs=needs,
        )
    yield row(
        "example hubert: measure_teacher_quality.py",
        "python {examples}/hubert/measure_teacher_quality.py {teacher} {teacher} km --phn_dir "
        "{teacher} --phn_sets dev",
        expect=r"\n +0\.8571 +0\.7143 +0\.9557 +1\.0790 +0\.6829 ",
        needs=("tabulate",),
    )


def decoding():
    """Rows of programs that decode speech without flashlight."""
    adam = "~optimizer.groups.{0}.optimizer.amsgrad"
    yield row(
        "example wav2vec-U: w2vu_generate.py, viterbi",
        f"fairseq-hydra-train --config-dir {UNSUPERVISED}/config/gan --config-name "
        f"w2vu common.user_dir={UNSUPERVISED} task.data={{unpaired_speech}} "
        f"task.text_data={{unpaired_speech}}/phones task.kenlm_path=null {HYDRA} "
        f"{adam.format('generator')} {adam.format('discriminator')} "
        "common.tensorboard_logdir=null dataset.batch_size=4 model.input_dim=16 "
        "checkpoint.best_checkpoint_metric=uer model.discriminator_dim=16 "
        "optimization.max_update=4 checkpoint.save_dir={out}",
        f"python {UNSUPERVISED}/w2vu_generate.py --config-dir {UNSUPERVISED}/config/generate "
        f"--config-name viterbi fairseq.common.user_dir={UNSUPERVISED} "
        "fairseq.task.data={unpaired_speech} results_path={out}/results "
        "fairseq.common_eval.path={out}/checkpoint_last.pt fairseq.dataset.gen_subset=valid",
        expect=r"Processed 8 sentences .*WER: \d",
        needs=("editdistance",),
    )
    yield row(
        "example speech_recognition: infer.py, viterbi",
        PRETRAIN + SAVE.replace("{out}", "{out}/pretrained"),
        f"{TUNE} --arch wav2vec_ctc --criterion ctc --post-process letter",
        "python {examples}/speech_recognition/infer.py {waves} --task audio_finetuning --path "
        "{out}/checkpoint_last.pt --gen-subset test --results-path {out}/results --w2l-decoder "
        "viterbi --criterion ctc --labels ltr --post-process letter --normalize",
        expect=r"TARGET:RED GREEN\b.*Processed 4 sentences",
        needs=SOUND,
    )


def joint():
    """Rows of the training on speech, phones and text together, and what continues from it."""
    plugin = EXAMPLES + "/speech_text_joint_to_text"
    sizes = " ".join(
        f"--{side}-{name}"
        for side in ("encoder", "decoder")
        for name in ("embed-dim 16", "ffn-embed-dim 16", "attention-heads 2")
    )
    model = (
        f"{sizes} --speech-encoder-layers 1 --text-encoder-layers 3 --decoder-layers 1 "
        "--speech-conv-bias --no-scale-feature --activation-fn gelu --speech-extractor-mode "
        "default --encoder-normalize-before --decoder-normalize-before --encoder-learned-pos "
        "--decoder-learned-pos"
    )
    subsets = " ".join(
        f"--{kind}-{split}-subset {split}_{name}"
        for kind, name in (("sup-speech", "aligned"), ("sup-speech-s2s", "translated"))
        for split in ("train", "valid")
    )
    pretrain = (
        f"fairseq-train {{joint}}/text {plugin} --task speech_text_joint_denoising --arch "
        f"speech_text_pretrain_bart_base_stack {model} --criterion "
        "speech_text_pretrain_cross_entropy --report-accuracy --lang-pairs pho-wrd --config-yaml "
        "config_s2p.yaml --config-s2s-yaml config.yaml --sup-speech-data {joint} "
        f"--sup-speech-s2s-data {{joint}} {subsets} --unsup-speech-train-data "
        "{joint}/train_alone.tsv --unsup-speech-valid-data {joint}/valid_alone.tsv --mask 0.3 "
        "--mask-length span-poisson --use-mask-whole-words --no-emb-update-unsup "
        f"--stacked-encoder all {OPTIMISE} --max-update 8 --batch-size 4 --batch-size-valid 4 "
        "--valid-subset valid,valid_sup_speech,valid_sup_speech_s2s,valid_unsup_speech "
        "--min-sample-size 100 --max-text-tokens 200 --max-speech-tokens 75000 "
        "--max-speech-positions 60000 --max-tokens-valid 75000 --same-data-update "
    )
    task = f"{{joint}} {plugin} --task speech_text_joint_to_text --config-yaml config.yaml"
    first = "{out}/pretrained/checkpoint_last.pt"
    positions = "--max-source-positions 60000 --max-tokens 60000"
    yield row(
        "example speech_text_joint_to_text: pre-training, and tuning of the waveform model",
        pretrain + SAVE.replace("{out}", "{out}/pretrained"),
        f"fairseq-train {task} --arch dualinputs2twavtransformer_base_stack {model} "
        f"--load-pretrained-speech-text-encoder {first} --load-pretrained-speech-text-decoder "
        f"{first} --speech-mask-length 3 --layernorm-embedding {STEPS} {positions} {SAVE} "
        "--train-subset train_translated --valid-subset valid_translated --langpairs pho-wrd "
        "--parallel-text-data {joint}/text --max-tokens-text 100 --max-positions-text 1024 "
        "--criterion guided_label_smoothed_cross_entropy_with_accuracy --label-smoothing 0.1 "
        "--guide-alpha 0.8 --text-input-cost-ratio 0.5 --update-mix-data",
        f"fairseq-generate {task} --path {{out}}/checkpoint_last.pt --gen-subset "
        f"valid_translated --load-speech-only --beam 2 --max-len-b 5 {positions}",
        expect=r"'valid_unsup_speech' subset.*num_updates 2\b.*\nH-7\t",
        needs=SOUND[:1],
    )


ROWS = [*back_translation(), *text(), *labels(), *decoding(), *joint()]
