"""Reference implementations of sequence-to-sequence papers, as a fairseq plugin."""

import logging
import os
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from . import compat

compat.require_fairseq()
compat.activate()

if TYPE_CHECKING:
    from .inference.model import Model

# modules of fairseq configure the logging of the process that imports them, and one logs that
# tensorboardX is not installed
_root = logging.getLogger()
_logging_before = _root.level, list(_root.handlers), logging.root.manager.disable
logging.disable(max(logging.INFO, _logging_before[2]))

# importing a system registers what it defines
from . import common, dual, duo, multiway, routed, twin  # noqa: E402,F401

_root.setLevel(_logging_before[0])
_root.handlers[:] = _logging_before[1]
logging.disable(_logging_before[2])

__version__ = "0.1.0"


def load(
    checkpoint: "Union[str, os.PathLike[str], Sequence[Union[str, os.PathLike[str]]]]",
    data: "Union[str, os.PathLike[str], None]" = None,
    direction: Optional[str] = None,
    **options: Any,
) -> "Model":
    """Return a trained model: ``load("checkpoint.pt", "bin", "de-en").translate(["Hallo"])``.

    The arguments are those of ``fairseq_ext.inference.loading.load``: ``device``, ``dtype``,
    ``subwords``, ``bpe`` and ``tokenizer``. It is imported here, since the commands of fairseq do
    without it.
    """
    from .inference.loading import load as load_model

    return load_model(checkpoint, data, direction, **options)
