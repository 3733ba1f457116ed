"""Which options of a model change what parameters of the same names and shapes compute.

An option is in one of three groups: it changes the function (`FUNCTION`), it leaves the function
of a trained model as it is (`NEUTRAL`), or neither is known. No option is in both lists.
A warning asks `may_change_function`, a refusal `changes_function`.
"""

from __future__ import annotations

import re

# heads, activations, norms, positions, shared parameters, and what layers add or leave out
FUNCTION = re.compile(
    r"heads|activation_fn|\bactivation$|normalize_before|layer_norm_first|scale_embedding"
    r"|positional|pos_enc_type|\bshare_|\btie_|cross_self_|duo_norm|duo_attention|meta_embedding"
    r"|residual|skip_connections|_glu$|_conv_type|weight_softmax|time_reduction|src_embedding_copy"
    r"|pred_length_offset|adaptor_stride|zoneout|log_compression|agg_zero_pad|logit_temp"
)
# dropout, longest texts, layers that are left out, memory, files with which a training began, and
# widths: parameters of others do not fit
NEUTRAL = re.compile(
    r"drop|_dim(_[sp])?$|max_\w*positions$|^tokens_per_sample$|layers_to_keep$|_activations$"
    r"|^min_params_to_wrap$|_path$|_from$|pretrained|freeze|frozen|quant_noise|^data$|^tpu$"
    r"|^base_shuffle$"
)


def changes_function(option: str) -> bool:
    """True for an option, "NAME" or "GROUP.NAME", that is known to change the function."""
    return FUNCTION.search(option) is not None


def may_change_function(option: str) -> bool:
    """True unless the option, "NAME" or "GROUP.NAME", is known to leave the function as it is."""
    return NEUTRAL.search(option) is None
