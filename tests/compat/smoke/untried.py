"""What no smoke run tries, and what fairseq 0.12.2 cannot do: the last rows of the page."""

# {what: why}; a name in backticks is a task or an architecture
UNTRIED = {
    "`pipeline_parallel_transformer`": "not tried: needs fairscale and several GPUs",
    "`model_parallel_transformer`, `model_parallel_roberta`": "as `transformer_lm_megatron`: need "
    "fairseq's submodule megatron and several GPUs",
    "example `truncated_bptt`": "trains, validates and evaluates by hand, with a stand-in for "
    "Transformer-XL; not tried with that of transformers, which 4.36 moved and 5 removed",
    "`simul_t2t_enja.py` of simultaneous_translation": "not tried: needs simuleval",
    "example `speech_recognition`": "`new/infer.py` runs by hand, with decoding.type=viterbi and "
    "+task._name=audio_finetuning +task.data=FOLDER; the option of `infer.py` that reads emissions "
    "ends in an AttributeError, as in stock; the task and `asr_prep_json.py` do not work: they "
    "call functions for recordings that torchaudio dropped; not tried: what needs flashlight, "
    "kenlm or kaldi, such as the other decoders and asg_loss",
    "example `roberta/wsc`, task wsc": "not tried: needs sacremoses, spacy and its model "
    "en_core_web_lg; without them, use `winogrande`",
    "example `noisychannel`": "`test_noisy_reranking.py` runs `rerank.py` and computes its choice "
    "apart; `rerank_tune.py` runs by hand. It writes beside itself: run a copy. With codes of "
    "other models it needs subword-nmt (a stand-in was run); rescoring by other codes than those "
    "of the hypotheses (`diff_bpe`) ends in an UnboundLocalError, as in stock",
    "`extract_bt_data.py` of backtranslation with a ratio, without a minimal length": "does not "
    "work: ends in a ZeroDivisionError at an empty line; use its minimal length 1, as its README "
    "does. The script imports nothing of fairseq, so that no patch can reach it",
    "example `paraphraser`": "runs by hand, on two small models, with a stand-in for sacremoses; "
    "its user-dir must be named, because the folder that it looks for is called "
    "`translation_moe_src` now",
    "`get_bitext.py` of byte_level_bpe": "runs by hand, with a stand-in for sacremoses; its bytes, "
    "letters and sub-words were joined to the text again",
    "`summarize.py` of bart, `preprocess_RACE.py` of roberta": "run by hand; the first writes one "
    "summary more than it is asked for, as in stock",
    "`speech_text_pretrain_compound` of speech_text_joint_to_text": "does not work: in stock, the "
    "model gives CTC its frames in another order, without their lengths",
    "other parts of speech_text_joint_to_text": "`convert_model.py` runs by hand; not tried: "
    "dual_input_xm_transformer, which needs pretrained models, paired_denoising without speech, "
    "and `g2p_encode.py`, which needs g2p_en",
    "example `criss`": "`save_encoder.py` runs by hand, its means were computed apart; with "
    "`python -m examples.criss...` retrieval runs, and mining, with a stand-in for faiss",
    "`aggregate_scores.py`, `meteor.py` of unsupervised_quality_estimation": "the first runs by "
    "hand, and leaves out a last group with too few scores; the second was not tried: needs Java",
    "`preprocess_nli.py` of xmod": "runs by hand, on made data, with sentencepiece; it ends well "
    "also if the fairseq-preprocess that it starts fails",
    "example `MMPT`": "not tried: needs transformers and features of videos; without transformers, "
    "its import ends in a NameError",
    "example `hubert/simple_kmeans`": "runs by hand; needs soundfile, scikit-learn, "
    "npy_append_array, torchaudio, and a GPU for features of models; `hubert/update_ckpt` "
    "reads a file of its authors",
    "other scripts of `examples/wav2vec`": "run by hand, most of them; need soundfile, "
    "npy_append_array, faiss and a GPU; `remove_silence` needs torchcodec too, not tried: `vads`, "
    "what needs fasttext, g2p_en, h5py, kaldi_io or kenlm, and the decoders of `w2vu_generate.py` "
    "with a language model",
    "scripts of `examples/speech_to_text`": "`prep_mustc_data` and `seg_mustc_data` run by hand, "
    "on made data; of `prep_covost_data`, the functions that torchaudio dropped are tested, not "
    "the whole, which needs pandas, torchcodec and recordings of Common Voice; "
    "not tried: `prep_mtedx_data`, `prep_librispeech_data`",
    "scripts of `examples/speech_to_speech`": "run by hand; need pandas, soundfile, librosa, and "
    "torchcodec for spectrograms; `benchmarking` needs pypapi, not tried",
    "scripts of `examples/speech_synthesis`": "spectrograms, generation and evaluation run by "
    "hand; need pandas, librosa, torchaudio with torchcodec; pitch needs pyworld, not tried; "
    "`get_common_voice_audio_manifest` and `get_speaker_embedding` do not work: torchaudio dropped "
    "what they import or call",
    "example `textless_nlp`": "units of speech, Tacotron's spectrograms and the pitch of pgslm run "
    "by hand; need soundfile, librosa, scikit-learn, amfm_decompy and others; `dump_feats` does "
    "not work: it declares an option twice; `self_auto_bleu.py` and `continuation_eval.py` run by "
    "hand on Python before 3.12, which dropped an argument of `Fraction` that they give; "
    "`ulm/sample.py` samples by hand, with a stand-in for a GPU; not tried: speech from units, "
    "samples of pgslm, and `ppx.py`, which needs the web",
    "scripts of `examples/constrained_decoding`, `examples/megatron_11b`": "run by hand; "
    "need sacremoses",
    "other scripts of `examples/multilingual`": "`remove_valid_test_in_train.py`, "
    "`check_valid_test_overlaps.py` and `binarize.py` run by hand, with a stand-in for pandas; a "
    "second run of the last leaves what the first has binarised, and says so; not tried: what "
    "needs data from the web, or fasttext",
    "scripts of `examples/womens_bios`": "not tried: need the web, and SPARQLWrapper",
    "scripts of `examples/m2m_100`": "`clean_histogram` runs by hand; `tokenize_zh` does not work: "
    "sacrebleu dropped the function; `remove_too_much_punc` writes the first line only; not tried: "
    "what needs pythainlp or indicnlp, and `dedup_data`, which has its folders in its text",
    "`--ddp-backend fully_sharded`": "not tried: needs fairscale and GPUs",
}
