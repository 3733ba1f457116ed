"""Reference implementations of sequence-to-sequence papers, as a fairseq plugin."""

from typing import TYPE_CHECKING, Any

from . import compat

compat.require_fairseq()
compat.activate()

if TYPE_CHECKING:
    from .inference.model import Model

# importing a system registers what it defines
from . import common, dual, duo, multiway, routed, twin  # noqa: E402,F401

__version__ = "0.1.0"


def load(*checkpoint_and_data: Any, **options: Any) -> "Model":
    """Return a trained model: ``load(CHECKPOINT, DATA, "de-en", device="cpu")``.

    The arguments are those of ``fairseq_ext.inference.loading.load``, which is imported here: the
    commands of fairseq do without it.
    """
    from .inference.loading import load as load_model

    return load_model(*checkpoint_and_data, **options)
