"""fairseq-interactive is another function once fairseq_cli.interactive is imported."""

import types

from fairseq_ext.compat.command_line import interactive_command
from fairseq_ext.compat.command_line.interactive import every_line_has_its_answer
from fairseq_ext.compat.patch_registry import all_patches


def test_the_command_takes_the_place_of_fairseqs():
    module = types.SimpleNamespace(main=None, cli_main="stays")
    every_line_has_its_answer(module)
    assert module.main is interactive_command.main and module.cli_main == "stays"


def test_the_patch_is_for_the_module_of_the_command():
    (patch,) = (entry for entry in all_patches() if entry.function is every_line_has_its_answer)
    assert patch.modules == ("fairseq_cli.interactive",)
