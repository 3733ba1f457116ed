"""What no smoke run tries, and what fairseq 0.12.2 cannot do: the last rows of the page."""

# {what: why}; a name in backticks is a task or an architecture
UNTRIED = {
    "`speech_unit_modeling`, `transformer_ulm`": "not tried: needs amfm_decompy and librosa",
    "`roberta_enc_dec`": "not tried: the model has no options for its size, 124M parameters",
    "`xm_transformer`": "not tried: it is made of a pretrained wav2vec 2.0 and a pretrained mBART",
    "`pipeline_parallel_transformer`": "not tried: needs fairscale and several GPUs",
    "`model_parallel_transformer`, `model_parallel_roberta`": "as `transformer_lm_megatron`: need "
    "fairseq's submodule megatron and several GPUs",
    "`dummy_model`": "not tried: the model of fairseq's own benchmark",
    "example `truncated_bptt`": "does not work: imports `transformers.configuration_transfo_xl`, "
    "which transformers dropped in version 4",
    "example `simultaneous_translation`": "does not work: see `simul_text_to_text`",
    "example `speech_recognition`": "does not work: reads recordings with `torchaudio.load_wav`, "
    "which torchaudio dropped; its ASG loss and decoders need flashlight",
    "example `roberta/wsc`, task wsc": "not tried: needs sacremoses, spacy and its model "
    "en_core_web_lg; without them, use `winogrande`",
    "example `noisychannel`": "not tried: reads the scores of the language model from what "
    "fairseq-eval-lm printed; fairseq 0.12.2 logs them instead",
    "`extract_bt_data.py` of backtranslation with a ratio, without a minimal length": "does not "
    "work: ends in a ZeroDivisionError at an empty line; use its minimal length 1, as its README "
    "does. The script imports nothing of fairseq, so that no patch can reach it",
    "example `paraphraser`": "not tried: needs sacremoses and two pretrained models; its user-dir "
    "must be named, because the folder that it looks for is called `translation_moe_src` now",
    "example `criss`": "does not work: `save_encoder.py` ends in an AttributeError with the task "
    "translation, and takes the output of an encoder, a dict, for a tuple of names; its retrieval "
    "gives numpy a view of a dict, which numpy refuses; its mining needs faiss and GPUs",
    "`aggregate_scores.py`, `meteor.py` of unsupervised_quality_estimation": "the first runs by "
    "hand, and leaves out a last group with too few scores; the second was not tried: needs Java",
    "`preprocess_nli.py` of xmod": "runs by hand, on made data, with sentencepiece; it ends well "
    "also if the fairseq-preprocess that it starts fails",
    "example `MMPT`": "not tried: needs transformers and features of videos; without transformers, "
    "its import ends in a NameError",
    "example `hubert/simple_kmeans`": "not tried: needs soundfile, scikit-learn and "
    "npy_append_array; `hubert/update_ckpt` reads a file of its authors",
    "scripts of `examples/wav2vec`": "not tried: need soundfile, those "
    "of wav2vec-U also npy_append_array, faiss, fasttext or g2p_en",
    "scripts of `examples/speech_synthesis`, `examples/speech_to_text`, "
    "`examples/speech_to_speech`": "not tried: need pandas, soundfile and torchaudio",
    "example `textless_nlp`": "not tried: needs soundfile, librosa, scikit-learn and others",
    "scripts of `examples/constrained_decoding`, "
    "`examples/megatron_11b`": "not tried: need sacremoses",
    "scripts of `examples/multilingual`, `examples/m2m_100`, "
    "`examples/womens_bios`": "not tried: need data from the web, and pandas, "
    "fasttext, pythainlp, indicnlp or SPARQLWrapper",
    "`--ddp-backend fully_sharded`": "not tried: needs fairscale and GPUs",
}
