"""A --user-dir that cannot be imported (fairseq_ext/compat/command_line/plugin_errors.py)."""

import sys
from argparse import Namespace

import pytest
from fairseq import utils

from fairseq_ext.compat.user_errors import exit_message, reports_user_errors

RAISING = "import json\n\ndef read():\n    return json.loads('{')\n\nread()\n"


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Function: {file: text} -> Path of a plugin of these files, with a name of its own."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("FAIRSEQ_EXT_USER_DIRS", "")

    def write(files, name="faulty_plugin"):
        for file, text in files.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / name

    yield write
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "faulty_plugin":
            del sys.modules[name]


def use(folder):
    utils.import_user_module(Namespace(user_dir=str(folder)))


@pytest.mark.parametrize(
    "files, file, line, cause",
    [
        ({"__init__.py": "def f(:\n"}, "__init__.py", 1, "SyntaxError: invalid syntax: def f(:"),
        (
            {"__init__.py": "from . import m\n", "m.py": "\nimport not_there_at_all\n"},
            "m.py",
            2,
            "ModuleNotFoundError: No module named 'not_there_at_all'",
        ),
        (
            {"__init__.py": "import soundfile.nowhere\n"},
            "__init__.py",
            1,
            "ModuleNotFoundError: No module named 'soundfile",
        ),
        (
            {"__init__.py": "", "tasks/t.py": "x = = 1\n"},
            "tasks/t.py",
            1,
            "SyntaxError: invalid syntax: x = = 1",
        ),
        ({"__init__.py": RAISING}, "__init__.py", 4, "JSONDecodeError: Expecting property name"),
        ({"__init__.py": "from . import m\n"}, "__init__.py", 1, "ImportError: cannot import name"),
    ],
    ids=["syntax", "package", "optional package", "task", "exception", "own module"],
)
def test_file_line_and_cause_are_named(plugin, files, file, line, cause):
    folder = plugin(files)
    with pytest.raises(Exception) as raised:
        use(folder)
    start = f"--user-dir {folder} cannot be imported: {folder / file}, line {line}: {cause}"
    assert exit_message(raised.value).message.startswith(start)
    # in Python, where no command ends, it is the exception of the plugin
    assert type(raised.value).__name__ == cause.partition(":")[0]


def test_an_exception_is_traced_from_the_plugin_on(plugin, capsys):
    folder = plugin({"__init__.py": RAISING})
    with pytest.raises(SystemExit) as leaving:
        reports_user_errors("fairseq-train", use)(folder)
    lines = capsys.readouterr().err.splitlines()
    assert leaving.value.code == 2
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{folder / "__init__.py"}", line 6, in <module>'
    assert any("json" in line and "in loads" in line for line in lines)
    assert not any("importlib" in line for line in lines)
    assert lines[-1].startswith(f"fairseq-train: error: --user-dir {folder} cannot be imported")


def test_a_missing_package_needs_no_traceback(plugin, capsys):
    folder = plugin({"__init__.py": "import not_there_at_all\n"})
    with pytest.raises(SystemExit):
        reports_user_errors("fairseq-train", use)(folder)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_plugin_that_was_mended_is_imported(plugin):
    """Stock notes the folder before it imports it, and a second call does nothing."""
    folder = plugin({"__init__.py": "value = 1\n", "models/m.py": "value = \n"})
    for _ in range(2):
        with pytest.raises(SyntaxError, match="m.py, line 1"):
            use(folder)
    (folder / "models" / "m.py").write_text("value = 22\n", encoding="utf-8")
    use(folder)
    assert sys.modules["faulty_plugin.models.m"].value == 22


@pytest.mark.parametrize("name, other", [("random", r"random\.py"), ("xml", "xml/__init__.py")])
def test_a_folder_needs_a_name_of_its_own(plugin, name, other):
    import xml  # noqa: F401

    folder = plugin({"__init__.py": ""}, name)
    with pytest.raises(ImportError, match=f"there is another module {name}, .*{other}; allowed"):
        use(folder)


def test_a_name_that_no_module_has(plugin):
    folder = plugin({"__init__.py": ""}, "my.plugin")
    with pytest.raises(ImportError) as raised:
        use(folder)
    allowed = "allowed: a folder, or a file .py, with the name of a module"
    assert exit_message(raised.value).message.endswith(allowed)


def test_a_folder_that_imports_nothing_is_named(plugin, caplog):
    folder = plugin({"model.py": "value = 1\n"})
    use(folder)
    assert f"{folder}: nothing is imported" in caplog.text and "no __init__.py" in caplog.text
