"""Smoke runs of fairseq's examples that have their own tasks, models or criteria."""

from .language_rows import DECODER, ENCODER, LANGUAGE_MODEL
from .rows import BOTH, OPTIMISE, OWN, SAVE, SHARED, SMOOTHED, TRAINED, row
from .speech_rows import STEPS
from .text_rows import GENERATE, HYPOTHESIS, TRAIN

EXAMPLES = "--user-dir {examples}"
CLASSIFIER = f"{OPTIMISE} {SAVE} --arch roberta_base {ENCODER} --max-positions 64"
ACCURACY = "--best-checkpoint-metric accuracy --maximize-best-checkpoint-metric"
HYDRA = "common.log_format=simple common.log_interval=1 dataset.num_workers=0"
SPOKEN = r"num_updates [24]\b.*\nH-3\t"


def translation():
    """Rows of examples for translation."""
    plugin = EXAMPLES + "/byte_level_bpe/gru_transformer"
    yield row(
        "example byte_level_bpe: gru_transformer",
        f"{TRAIN} {plugin} --arch gru_transformer {SHARED}",
        f"{GENERATE} {plugin}",
        expect=HYPOTHESIS,
    )
    plugin = EXAMPLES + "/latent_depth/latent_depth_src"
    options = (
        f"{plugin} --task multilingual_translation_latent_depth --lang-pairs xx-yy,yy-xx "
        "--decoder-langtok --decoder-latent-layer"
    )
    # the loss of the number of layers begins after the updates of both other options
    yield row(
        "example latent_depth",
        f"fairseq-train {{shared}} {OPTIMISE} {SMOOTHED} {SAVE} {options} --arch "
        f"latent_multilingual_transformer --share-encoders --share-decoders {BOTH} "
        "--decoder-layers 3 --share-decoder-input-output-embed --target-layers 2 --share-weight "
        "0.1 --sparsity-weight 0.1 --anneal-updates 1 --soft-update 1 --max-update 4",
        f"fairseq-generate {{shared}} -s xx -t yy {OWN} --beam 2 --max-len-b 8 {options}",
        expect=r"num_updates 4.*\nH-23\t",
    )
    pair = "{shared_pair} -s xx -t yy"
    train = f"fairseq-train {pair} {OPTIMISE} {SMOOTHED} --arch transformer {SHARED}"
    yield row(
        "example fast_noisy_channel",
        f"{LANGUAGE_MODEL} --arch transformer_lm {DECODER}".replace("{out}", "{out}/lm"),
        f"{train} {SAVE}",
        f"{train} {SAVE}".replace("-s xx -t yy", "-s yy -t xx").replace("{out}", "{out}/back"),
        f"fairseq-generate {pair} {OWN} --beam 2 --max-len-b 8 {EXAMPLES}/fast_noisy_channel "
        "--task noisy_channel_translation --combine-method noisy_channel --k2 3 --ch-wt 0.3 "
        "--lm-wt 0.5 --lm-model {out}/lm/checkpoint_last.pt --lm-data {lm} "
        "--channel-model {out}/back/checkpoint_last.pt",
        expect=HYPOTHESIS,
    )


def criteria():
    """Rows of examples that train translation models or rerankers with other losses."""
    noised = TRAIN.replace("label_smoothed_cross_entropy", "label_smoothed_cross_entropy_r3f")
    yield row(
        "example rxf: translation",
        f"{noised} {EXAMPLES}/rxf/rxf_src --arch transformer {SHARED}",
        expect=TRAINED,
    )
    yield row(
        "example discriminative_reranking_nmt",
        "fairseq-hydra-train --config-dir {examples}/discriminative_reranking_nmt/config "
        "--config-name deen common.user_dir={examples}/discriminative_reranking_nmt "
        "common.fp16=false distributed_training.distributed_world_size=1 task.num_data_splits=1 "
        f"task.data={{hypotheses}} task.mt_beam=2 +task.max_positions=64 {HYDRA} "
        "dataset.batch_size=4 dataset.required_batch_size_multiple=2 dataset.valid_subset=valid "
        "model.pretrained_model='' +model.embed_dim=16 +model.ffn_embed_dim=16 "
        "+model.encoder_layers=1 +model.attention_heads=2 +model.joint_classification=sent "
        "optimization.update_freq=[1] optimization.max_update=2 checkpoint.save_dir={out}",
        expect=r"bleu [\d.]+ .*num_updates 2",
    )
    laser = f"fairseq-train {{laser}} {EXAMPLES}/laser/laser_src --task laser {OPTIMISE} {SAVE}"
    for arch, options in (
        (
            "laser_lstm",
            "--encoder-bidirectional --encoder-layers 1 --encoder-hidden-size 16 --decoder-layers "
            "1 --decoder-hidden-size 16 --encoder-embed-dim 16 --decoder-embed-dim 16",
        ),
        ("laser_transformer", BOTH),
    ):
        yield row(
            f"example laser: {arch}",
            f"{laser} --arch {arch} {options} --decoder-lang-embed-dim 4 --disable-validation",
            expect=TRAINED,
        )


def language():
    """Rows of examples for language models and classification."""
    plugin = EXAMPLES + "/adaptive_span"
    options = f"{{lm}} {plugin} --task truncated_bptt_lm --tokens-per-sample 16 --batch-size 4"
    yield row(
        "example adaptive_span",
        f"fairseq-train {options} --arch adaptive_span --n-layer 2 --d-model 16 --n-head 2 "
        "--d-inner 16 --attn-span 32 --optimizer adagrad_with_grad_clip --adagrad-clip 0.03 --lr "
        "0.07 --criterion adaptive_span_loss --aux-loss-scaler 5e-07 --max-update 2 --log-format "
        f"simple --log-interval 1 --seed 1 {SAVE}",
        f"fairseq-eval-lm {options} {OWN}",
        expect="num_updates 2.*Perplexity",
    )
    yield row(
        "example rxf: sentence_prediction",
        f"fairseq-train {{sentences}} {EXAMPLES}/rxf/rxf_src --task sentence_prediction "
        f"--criterion sentence_prediction_r3f --num-classes 2 --init-token 0 {CLASSIFIER} "
        f"--noise-type uniform --r3f-lambda 0.7 {ACCURACY}",
        expect=TRAINED,
    )
    yield row(
        "example roberta/commonsense_qa",
        f"fairseq-train {{questions}} {EXAMPLES}/roberta/commonsense_qa --task commonsense_qa "
        f"--criterion sentence_ranking --num-classes 5 --init-token 0 {CLASSIFIER} --batch-size 4 "
        f"{ACCURACY}",
        expect=TRAINED,
    )
    for loss, option in (("margin", ""), ("cross entropy", "--wsc-cross-entropy")):
        yield row(
            f"example roberta/wsc: winogrande, {loss}",
            f"fairseq-train {{schemas}} {EXAMPLES}/roberta/wsc --task winogrande "
            f"--criterion winogrande {CLASSIFIER} --batch-size 4 {ACCURACY} {option}",
            expect=TRAINED,
        )


def speech():
    """Rows of examples for speech."""
    plugin = EXAMPLES + "/attention_head_selection/src"
    options = (
        f"{{domains}} {plugin} --task speech_to_text_head_selection "
        "--train-subset train_aa_aa_talks,train_bb_aa_talks"
    )
    yield row(
        "example attention_head_selection",
        f"fairseq-train {options} --valid-subset valid_aa_aa_talks --arch "
        f"head_selection_s2t_transformer_s {BOTH} --conv-channels 16 {STEPS} {SMOOTHED} {SAVE} "
        "--encoder-attn-head-select --total-encoder-attention-heads 4 "
        "--decoder-self-attn-head-select --total-decoder-attention-heads 4 "
        "--attn-head-select-strategy subset --kl-weight 0.1",
        f"fairseq-generate {options} --gen-subset test_bb_aa_talks {OWN} --beam 2 --max-len-b 5",
        expect=SPOKEN,
    )
    plugin = EXAMPLES + "/speech_text_joint_to_text"
    options = f"{{transcripts}} {plugin} --task speech_text_joint_to_text --config-yaml config.yaml"
    sizes = BOTH.replace("--encoder-layers 1", "--encoder-shared-layers 1")
    yield row(
        "example speech_text_joint_to_text",
        f"fairseq-train {options} --arch dualinputs2ttransformer_s {sizes} --conv-channels 16 "
        f"--speech-encoder-layers 2 --text-encoder-layers 1 {STEPS} {SAVE} --max-tokens-text 100 "
        "--criterion guided_label_smoothed_cross_entropy_with_accuracy --label-smoothing 0.1 "
        "--guide-alpha 0.8 --attentive-cost-regularization 0.02 --text-input-cost-ratio 0.5 "
        "--enc-grad-mult 2.0 --add-speech-eos --update-mix-data --max-positions-text 100 "
        "--parallel-text-data {transcripts}/text --langpairs en-de",
        f"fairseq-generate {options} {OWN} --load-speech-only --beam 2 --max-len-b 5",
        expect=SPOKEN,
    )
    adam = "~optimizer.groups.{0}.optimizer.amsgrad"
    yield row(
        "example wav2vec-U, its configuration without amsgrad",
        "fairseq-hydra-train --config-dir {examples}/wav2vec/unsupervised/config/gan --config-name "
        "w2vu common.user_dir={examples}/wav2vec/unsupervised task.data={unpaired_speech} "
        f"task.text_data={{unpaired_speech}}/phones task.kenlm_path=null {HYDRA} "
        f"{adam.format('generator')} {adam.format('discriminator')} "
        "common.tensorboard_logdir=null dataset.batch_size=4 dataset.validate_interval=1 "
        "checkpoint.best_checkpoint_metric=uer model.input_dim=16 model.discriminator_dim=16 "
        "optimization.max_update=4 checkpoint.save_dir={out}",
        expect="num_updates 4",
        needs=("editdistance",),
    )


ROWS = [*translation(), *criteria(), *language(), *speech()]
