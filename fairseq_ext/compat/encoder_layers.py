"""Encoder layers of stock transformers without the fused path of torch 1.12.

fairseq 0.12.2 copies the weights of every encoder layer into eight more parameters for
`torch._transformer_encoder_layer_fwd`. The copies are never trained and stay zero until a
checkpoint is loaded, yet they are counted, optimised over, sent between workers and saved.
"""

from .registry import patch

COPIES = (
    "in_proj_weight",
    "in_proj_bias",
    "out_proj_weight",
    "out_proj_bias",
    "fc1_weight",
    "fc1_bias",
    "fc2_weight",
    "fc2_bias",
)


@patch(
    "fairseq.modules.transformer_layer",
    because="fairseq 0.12.2 with any torch: 8 parameters per encoder layer are there twice; torch "
    "1.13 and later: 'Mask Type should be defined' in evaluation of post-norm encoders",
)
def encoder_layers_without_copies(module):
    """Build encoder layers without the copies, with the fused path off; drop them on loading.

    Deviation from the stock class: checkpoints are written without the copies. Stock fairseq loads
    such checkpoints as well, because it fills the copies from the other weights while loading.
    """
    layer = module.TransformerEncoderLayerBase
    build = layer.__init__
    load = super(layer, layer)._load_from_state_dict

    def __init__(self, *args, **named):
        build(self, *args, **named)
        for name in COPIES:
            # raises if the class no longer has them: then this patch is not needed any more
            delattr(self, name)
        self.BT_version = False
        self.can_use_fastpath = False

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        for name in COPIES:
            state_dict.pop(prefix + name, None)
        load(self, state_dict, prefix, *rest)

    layer.__init__ = __init__
    layer._load_from_state_dict = _load_from_state_dict
    # a constant lets TorchScript leave out the branch that reads the copies
    layer.__constants__ = [*getattr(layer, "__constants__", ()), "BT_version"]
