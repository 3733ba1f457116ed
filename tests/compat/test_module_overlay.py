"""A module overlay changes names for one module alone."""

import numpy
import pytest

from fairseq_ext.compat.module_overlay import ModuleOverlay, overlay_names


def test_shadow_adds_names_for_one_module_only():
    import types

    module = types.ModuleType("user")
    module.np = numpy
    overlay_names(module, "np", gone=1)
    overlay_names(module, "np", other=2)
    assert (module.np.gone, module.np.other) == (1, 2)
    assert module.np.zeros is numpy.zeros and not hasattr(numpy, "gone")
    assert isinstance(module.np, ModuleOverlay) and {"gone", "zeros"} <= set(dir(module.np))
    with pytest.raises(AttributeError):
        _ = module.np.never_there
    with pytest.raises(AttributeError):
        overlay_names(module, "torch", load=None)
