"""fairseq-interactive: the command of `interactive_command.py` takes the place of fairseq's."""

from __future__ import annotations

from ..patch_registry import PatchedModule, patch


@patch(
    "fairseq_cli.interactive",
    because="fairseq 0.12.2: one line that is too long or not UTF-8 ends the session, other "
    "characters than a line feed end a line, and `<pad>` in a text is padding",
)
def every_line_has_its_answer(module: PatchedModule) -> None:
    """Answer each line, in order, whatever it holds."""
    # imports fairseq, which this package must not do before fairseq itself is imported
    from .interactive_command import main

    module.main = main
