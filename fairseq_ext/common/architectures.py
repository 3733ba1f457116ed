"""Named architectures: a model under another name, with other default values."""

from fairseq.models import register_model_architecture


def architecture(model: str, name: str, **values) -> None:
    """Register ``model`` under ``name``; the ``values`` stand for options that are not given."""

    def set_defaults(args):
        for option, value in values.items():
            if not hasattr(args, option):
                setattr(args, option, value)

    register_model_architecture(model, name)(set_defaults)
