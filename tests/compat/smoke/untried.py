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
    "example `wav2vec-U`": "does not work from the archive: imports "
    "`examples.speech_recognition`, as in a clone",
    "example `truncated_bptt`": "does not work: imports `transformers.configuration_transfo_xl`, "
    "which transformers dropped in version 4",
    "example `simultaneous_translation`": "does not work: see `simul_text_to_text`",
    "`--ddp-backend fully_sharded`": "not tried: needs fairscale and GPUs",
}
