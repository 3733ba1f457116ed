"""Kernels of another number of layers (fairseq_ext/compat/architectures/listed_kernels.py)."""

from argparse import Namespace

import fairseq.models  # noqa: F401  (registers the architectures)
import pytest
from fairseq.models import ARCH_CONFIG_REGISTRY

from fairseq_ext.compat.user_errors import OptionError


@pytest.mark.parametrize(
    "arch, side",
    [
        ("lightconv", "encoder"),
        ("lightconv", "decoder"),
        ("lightconv_iwslt_de_en", "decoder"),
        ("lightconv_lm", "decoder"),
        ("lightconv_lm_gbw", "decoder"),
    ],
)
def test_kernels_of_another_number_of_layers(arch, side):
    args = Namespace(**{f"{side}_kernel_size_list": [3, 5], f"{side}_layers": 4})
    message = f"--{side}-kernel-size-list .3, 5.: .* 2 layers with --{side}-layers 4; .*, or 4"
    with pytest.raises(OptionError, match=message):
        ARCH_CONFIG_REGISTRY[arch](args)


def test_one_kernel_is_of_all_layers():
    args = Namespace(encoder_kernel_size_list=[3], encoder_layers=4)
    ARCH_CONFIG_REGISTRY["lightconv"](args)
    assert args.encoder_kernel_size_list == [3] * 4
