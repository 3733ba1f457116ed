"""The `fairseq-ext` command, and what its sub-commands share."""

import argparse
import ast
import errno
import importlib
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from common.full_disk import largest_file
from tools.commandline import REPOSITORY, cli

from fairseq_ext import __main__ as command
from fairseq_ext.tools import AddValues, UsageError, atomic_path, save_atomically, write_texts
from fairseq_ext.tools.installation import user_dir

# ---------------------------------------------------------------- the command itself


@pytest.mark.parametrize("name", command.COMMANDS)
def test_every_command_has_a_module_and_help(name, capsys):
    entry = command.COMMANDS[name]
    module = importlib.import_module(f"fairseq_ext.{entry.module}")
    assert callable(getattr(module, entry.function))
    with pytest.raises(SystemExit) as end:
        command.main([name, "--help"])
    assert end.value.code == 0
    assert f"fairseq-ext {name}" in capsys.readouterr().out


def test_values_of_a_repeated_option_add_up():
    parser = argparse.ArgumentParser()
    parser.add_argument("--metric", nargs="+", action=AddValues, default=["bleu"])
    parser.add_argument("--seed", nargs="+", action=AddValues, type=int)
    assert parser.parse_args([]) == argparse.Namespace(metric=["bleu"], seed=None)
    words = ["--metric", "ter", "--seed", "1", "2", "--metric", "chrf", "bleu", "--seed", "3"]
    expected = argparse.Namespace(metric=["ter", "chrf", "bleu"], seed=[1, 2, 3])
    assert parser.parse_args(words) == expected
    assert parser.parse_args([]).metric == ["bleu"]


@pytest.mark.parametrize("name", command.COMMANDS)
def test_no_command_forgets_values_of_a_repeated_option(name):
    parser = argparse.ArgumentParser()
    importlib.import_module(f"fairseq_ext.{command.COMMANDS[name].module}").add_arguments(parser)
    for action in parser._actions:
        if action.option_strings and action.nargs == "+":
            assert isinstance(action, (AddValues, argparse._AppendAction)), action.option_strings


def test_no_script_forgets_values_of_a_repeated_option():
    """argparse alone keeps those of the last place."""
    forgetful = []
    for folder in ("benchmarks", "docs", "examples", "fairseq_ext", "tests"):
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for call in ast.walk(ast.parse(text)) if "nargs=" in text else ():
                if isinstance(call, ast.Call) and call.args:
                    words = {word.arg: ast.unparse(word.value) for word in call.keywords}
                    is_option = ast.unparse(call.args[0]).startswith("'-")
                    is_forgetful = words.get("action") not in ("AddValues", "'extend'", "'append'")
                    if is_option and words.get("nargs") in ("'+'", "'*'") and is_forgetful:
                        forgetful.append(f"{path.name}: {ast.unparse(call.args[0])}")
    assert not forgetful


def test_ctrl_c_while_torch_is_imported(monkeypatch, capsys):
    entry = importlib.import_module("_fairseq_ext_cli")

    class Interrupting:
        def find_spec(self, name, *_):
            if name == "fairseq_ext.__main__":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["fairseq-ext", "list"])
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "fairseq_ext.__main__", raising=False)
    assert entry.main() == 130
    assert capsys.readouterr().err == "fairseq-ext: interrupted\n"


def test_unknown_command_names_what_is_allowed(capsys):
    with pytest.raises(SystemExit) as end:
        command.main(["lst"])
    assert end.value.code == 2
    message = capsys.readouterr().err
    assert "'lst'" in message and "did you mean list?" in message
    assert all(name in message for name in command.COMMANDS)


def test_without_a_command_it_prints_the_table(capsys):
    assert command.main([]) == 2
    printed = capsys.readouterr().err
    assert all(name in printed for name in command.COMMANDS)


@pytest.mark.slow
def test_python_m_is_the_same_command(run, user_dir):
    """It prints nothing else, although modules of fairseq log what is not installed."""
    assert run("python", "-m", "fairseq_ext", "user-dir", cwd=REPOSITORY) == f"{user_dir}\n"


def test_user_dir_imports_neither_torch_nor_fairseq(run, user_dir):
    code = (
        "import sys, _fairseq_ext_cli; sys.argv = ['fairseq-ext', 'user-dir'];"
        "status = _fairseq_ext_cli.main();"
        "sys.exit(status or sorted({'torch', 'fairseq', 'numpy'} & set(sys.modules)) or 0)"
    )
    assert run("python", "-c", code, cwd=REPOSITORY) == f"{user_dir}\n"


@pytest.mark.slow
def test_a_closed_pipe_is_no_traceback(run):
    script = "import sys; from fairseq_ext import __main__ as m"
    script += "; m.COMMANDS['list'] = m.COMMANDS['list']._replace(entry_point='tools.loud:shout')"
    script += "; import types; loud = types.ModuleType('loud'); loud.add_arguments = lambda p: 0"
    script += "; loud.shout = lambda a: [print('x' * 70) for _ in range(10000)]"
    script += "; sys.modules['fairseq_ext.tools.loud'] = loud; sys.exit(m.main(['list']))"
    pipe = f'"{sys.executable}" -c "{script}" | head -n 1; exit ${{PIPESTATUS[0]}}'
    output = run("bash", "-c", pipe, cwd=REPOSITORY, fails=True)
    assert "Traceback" not in output and "BrokenPipe" not in output


def test_run_gives_stock_commands_the_user_dir(run, user_dir, toy_corpus, tmp_path):
    words = ["fairseq-train", toy_corpus.two, "--user-dir", user_dir, "--max-update", 1]
    words += ["--task", "dual_translation", "-s", "xx", "-t", "yy", "--save-dir", tmp_path]
    words += ["--arch", "dual_transformer_tiny", "--optimizer", "adam", "--max-tokens", 200]
    words += ["--criterion", "cross_entropy", "--no-save", "--disable-validation"]
    assert "done training" in cli(run, "run", *words)


# ---------------------------------------------------------------- atomic writing


def test_atomic_path_leaves_the_old_file_when_writing_fails(tmp_path):
    path = tmp_path / "result.txt"
    path.write_text("old")
    with pytest.raises(ValueError, match="half way"):
        with atomic_path(path) as temporary:
            temporary.write_text("new but incompl")
            raise ValueError("half way")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_atomic_path_does_not_write_over_a_folder(tmp_path):
    with pytest.raises(UsageError, match="it is a folder"):
        with atomic_path(tmp_path):
            raise AssertionError
    assert list(tmp_path.iterdir()) == []


def test_atomic_path_writes_a_file_of_ordinary_mode(tmp_path):
    plain, path = tmp_path / "plain", tmp_path / "result.txt"
    plain.write_text("")
    with atomic_path(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert path.stat().st_mode == plain.stat().st_mode


def test_atomic_path_names_a_missing_folder(tmp_path):
    with pytest.raises(UsageError, match="is not a folder"):
        with atomic_path(tmp_path / "none" / "result.txt"):
            pass


def test_atomic_path_replaces_the_file_behind_a_link(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    with atomic_path(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink() and target.read_text() == "new"


def test_atomic_path_does_not_replace_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="cannot write .*pipe: it is no regular file"):
        with atomic_path(tmp_path / "pipe"):
            pass
    assert (tmp_path / "pipe").is_fifo()


def test_an_interrupted_command_ends_in_one_line(monkeypatch, capsys):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(user_dir, "print_user_dir", interrupted)
    assert command.main(["user-dir"]) == 130
    assert capsys.readouterr().err == "fairseq-ext user-dir: interrupted\n"


WRITES_FOR_A_MINUTE = """
import sys, time
import _fairseq_ext_cli
_fairseq_ext_cli._bare_package()
from fairseq_ext import __main__ as command
from fairseq_ext.compat.atomic_files import folder_beside
from fairseq_ext.tools import atomic_path
from fairseq_ext.tools.installation import user_dir

def write(arguments):
    with atomic_path(sys.argv[1] + ".tsv") as file, folder_beside(sys.argv[1]) as folder:
        for path in (file, folder + "/part"):
            open(path, "w").write("half")
        print("half-written", flush=True)
        time.sleep(60)

user_dir.print_user_dir = write
sys.exit(command.main(["user-dir"]))
"""


def test_a_command_that_sigterm_ends_leaves_nothing_half_written(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITES_FOR_A_MINUTE, str(tmp_path / "output")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        cwd=REPOSITORY,
    )
    assert process.stdout.readline() == "half-written\n"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM and os.listdir(tmp_path) == []
    assert errors == "\nfairseq-ext user-dir: ended by SIGTERM; none of its files is half-written\n"


def test_a_table_is_printed_where_the_terminal_has_ascii_alone(run, tmp_path):
    for name in ("hyp", "ref"):
        (tmp_path / name).write_text("a b c d e\n" * 3)
    words = ["evaluate", "--hyp", tmp_path / "hyp", "--ref", tmp_path / "ref", "--samples", 9]
    assert "\\xb1" in cli(run, *words, env={"PYTHONIOENCODING": "ascii"})


@pytest.mark.parametrize("is_torch", [False, True])
def test_a_full_disk_names_the_file_that_was_asked_for(tmp_path, is_torch):
    """torch.save alone hides the reason, and Python's error names no file."""
    path = tmp_path / "output.pt"
    path.write_bytes(b"before")
    with largest_file(10_000), pytest.raises(OSError) as caught:
        if is_torch:
            save_atomically(torch.zeros(100_000), path)
        else:
            with atomic_path(path) as temporary:
                temporary.write_bytes(bytes(100_000))
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_of_several_texts_the_one_that_does_not_fit_is_named(tmp_path, place):
    """The others are not written either."""
    paths = [tmp_path / name for name in ("a.xx", "a.yy", "a.tsv")]
    paths[1].write_text("before")
    texts = {path: ["line\n"] * (10_000 if path == paths[place] else 2) for path in paths}
    with largest_file(10_000), pytest.raises(OSError) as caught:
        write_texts(texts)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(paths[place]))
    assert os.listdir(tmp_path) == ["a.yy"] and paths[1].read_text() == "before"
    write_texts({path: ["one\n", "two\n"] for path in paths})
    assert [path.read_text() for path in paths] == ["one\ntwo\n"] * 3


def test_arrays_on_a_full_disk_name_the_file_too(tmp_path):
    path = tmp_path / "features.npy"
    with largest_file(10_000), pytest.raises(OSError, match=re.escape(f"{path}: ")):
        with atomic_path(path) as temporary:
            np.save(temporary, np.zeros(100_000))
    assert not os.listdir(tmp_path)


def test_errors_of_other_files_stay_as_they_are(tmp_path):
    for error in (FileNotFoundError(errno.ENOENT, "no", "input.txt"), OSError("malformed input")):
        with pytest.raises(OSError) as caught, atomic_path(tmp_path / "output.txt"):
            raise error
        assert caught.value is error
