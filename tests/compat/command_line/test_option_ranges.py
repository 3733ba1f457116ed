"""Every number that stock fairseq reads has a range, and every stock value is inside."""

from fairseq_ext.compat.command_line.option_checks import check
from fairseq_ext.compat.command_line.option_ranges import RANGES


def test_every_stock_default_is_accepted():
    from fairseq import options

    for parser in (
        options.get_training_parser(),
        options.get_interactive_generation_parser(),
        options.get_eval_lm_parser(),
        options.get_validation_parser(),
        options.get_preprocessing_parser(),
    ):
        values = {action.dest: action.default for action in parser._actions}
        check({name: value for name, value in values.items() if value != "==SUPPRESS=="})


def test_every_number_of_stock_has_a_range():
    """A numeric option without a range is listed here with the reason."""
    from fairseq import options

    free = {"device_id", "heartbeat_timeout", "slowmo_momentum"}  # set by launchers; unused here
    for parser in (
        options.get_training_parser(),
        options.get_interactive_generation_parser(),
        options.get_eval_lm_parser(),
        options.get_preprocessing_parser(),
    ):
        for action in parser._actions:
            if action.type in (int, float):
                assert action.dest in RANGES or action.dest in free, action.dest


def test_every_preset_of_every_architecture_is_accepted():
    import argparse

    from fairseq.models import ARCH_CONFIG_REGISTRY

    import fairseq_ext  # noqa: F401

    for name, preset in ARCH_CONFIG_REGISTRY.items():
        args = argparse.Namespace()
        try:
            preset(args)
        except (AttributeError, TypeError):
            continue  # needs options that its add_args defines
        check(vars(args)), name
