"""Layers of a Transformer read options that fairseq's TransformerConfig does not declare."""

import pytest
from fairseq.models.transformer_lm import TransformerLanguageModel, TransformerLanguageModelConfig
from fairseq.tasks.translation import TranslationTask
from omegaconf import OmegaConf

SIZES = {"decoder_embed_dim": 8, "decoder_ffn_embed_dim": 8, "decoder_attention_heads": 2}
# {option of transformer_lm: the parameter of each layer that it adds}
ADDED = {
    "scale_attn": "attn_ln.weight",
    "scale_fc": "ffn_layernorm.weight",
    "scale_heads": "c_attn",
    "scale_resids": "w_resid",
}


def parameters(dictionary, **chosen):
    """Names of the parameters of a language model's layer."""
    cfg = OmegaConf.structured(TransformerLanguageModelConfig)
    cfg.update({**SIZES, "decoder_layers": 1, "decoder_output_dim": 8, "decoder_input_dim": 8})
    cfg.update({"max_target_positions": 16, "tokens_per_sample": 16, **chosen})
    task = TranslationTask.__new__(TranslationTask)
    task.tgt_dict = task.src_dict = TranslationTask.load_dictionary(str(dictionary))
    model = TransformerLanguageModel.build_model(cfg, task)
    return {name.partition("layers.0.")[2] for name, _ in model.named_parameters()}


@pytest.mark.parametrize("option", ADDED)
def test_scales_of_language_models_are_there(option, toy_corpus):
    assert ADDED[option] not in parameters(toy_corpus.dictionary)
    assert ADDED[option] in parameters(toy_corpus.dictionary, **{option: True})
