"""The table of sub-commands: systems register theirs, and reading it imports no system."""

import pytest
from tools.commandline import REPOSITORY

from fairseq_ext import __main__ as command
from fairseq_ext.tools import commands


def test_a_command_belongs_to_the_system_of_its_module():
    table = commands.command_table()
    assert table["twin-distance"].group == "twin" and table["tune-alpha"].group == "dual"
    for entry in table.values():
        folder = entry.module.partition(".")[0]
        assert entry.group == (commands.ALL_SYSTEMS if folder == "tools" else folder)


def test_help_groups_the_commands_by_system(capsys):
    command.overview().print_help()
    text = capsys.readouterr().out
    starts = [text.index(f"commands for {group}:") for group in (commands.ALL_SYSTEMS, "twin")]
    assert starts[0] < text.index("  evaluate ") < starts[1] < text.index("  twin-distance ")


def test_help_imports_neither_torch_nor_fairseq(run):
    code = (
        "import sys, _fairseq_ext_cli; sys.argv = ['fairseq-ext', '--help']\n"
        "try: _fairseq_ext_cli.main()\n"
        "except SystemExit: sys.exit(sorted({'torch', 'fairseq'} & set(sys.modules)) or 0)"
    )
    assert "twin-distance" in run("python", "-c", code, cwd=REPOSITORY)


def test_a_name_is_given_once(monkeypatch, tmp_path):
    folder = tmp_path / "other" / "commands"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text('COMMANDS = {"plot": ("plot", "another")}\n')
    monkeypatch.setattr(commands, "PACKAGE", tmp_path)
    with pytest.raises(ValueError, match="other: the command plot exists already"):
        commands.command_table()
