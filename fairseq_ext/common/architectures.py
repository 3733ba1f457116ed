"""Named architectures: a model under another name, with other default values."""

from argparse import Namespace
from typing import Any

from fairseq.models import register_model_architecture


def architecture(model: str, name: str, **values: Any) -> None:
    """Register ``model`` under ``name``; ``values`` are the defaults of its options."""

    def set_defaults(args: Namespace) -> None:
        for option, value in values.items():
            if not hasattr(args, option):
                setattr(args, option, value)

    register_model_architecture(model, name)(set_defaults)
