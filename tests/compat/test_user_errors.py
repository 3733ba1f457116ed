"""A user's mistake ends a command in one line; a fault of a program keeps its traceback."""

import contextlib
import os
import subprocess
import sys

import pytest

from fairseq_ext.__main__ import main
from fairseq_ext.compat import user_errors
from fairseq_ext.compat.versions import missing_files

PROGRAM = "fairseq-train"


@pytest.fixture
def finish(capsys):
    """Function: a command that raises the error -> (exit status, stderr)."""

    def finish(error):
        def command():
            print("written before")
            raise error

        with pytest.raises(SystemExit) as leaving:
            user_errors.reports_user_errors(PROGRAM, command)()
        return leaving.value.code, capsys.readouterr().err

    return finish


# torch's, with several workers and parameters without a gradient; and as a spawned worker ends
UNUSED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This "
    "error indicates that your module has parameters that were not used in producing loss."
)
FLAT = "chosen optimizer FairseqAdafactor does not support flat params, please set "
FLAT += "--fp16-no-flatten-grads"
TRACE = f'Traceback (most recent call last):\n  File "a.py", line 1, in f\nRuntimeError: {UNUSED}\n'


class ProcessRaisedException(Exception):
    """By its name torch.multiprocessing's, whose text is the traceback of a worker."""


@pytest.mark.parametrize(
    "error, status, line",
    [
        (user_errors.OptionError("--beam 0 is not allowed"), 2, "--beam 0 is not allowed"),
        (FileNotFoundError(2, "No such file or directory", "a/b"), 1, "a/b: No such file"),
        (ValueError("first\n\n  second"), 1, "first; second"),
        (AssertionError("--path required for generation!"), 2, "--path required"),
        (ValueError("--twin-weight -1.0: must be at least 0"), 2, "--twin-weight -1.0: must be"),
        (FileNotFoundError("--user-dir none: no such folder"), 2, "--user-dir none: no such"),
        (ValueError("a-b.txt: --lang-pairs names it"), 1, "a-b.txt: --lang-pairs"),
        (AssertionError("Criterion does not match; please reset"), 1, "Criterion does not match"),
        (AssertionError("Optimizer does not match; please reset"), 1, "Optimizer does not match"),
        (Exception("Could not infer language pair, please"), 1, "name the languages with"),
        (Exception("Size of sample #4 is invalid (=(np.int32(1701), 3))"), 1, "(=(1701, 3))"),
        (ImportError("Please install sacremoses with: pip"), 1, "Please install sacremoses"),
        (FileNotFoundError(2, "No such file", "a/dict.xx.txt"), 1, "has made for the language xx"),
        (FileNotFoundError(2, "No such file", "a/dict.txt"), 1, "has made with --only-source"),
        (RuntimeError(UNUSED), 1, "several workers: --find-unused-parameters, or --ddp-backend le"),
        (ProcessRaisedException(TRACE), 1, "workers: --find-unused-parameters, or --ddp-backend"),
        (RuntimeError(FLAT), 1, "does not support flat params, please set --fp16-no-flatten-grads"),
        (ModuleNotFoundError("No module", name="soundfile"), 1, "pip install soundfile"),
        (ModuleNotFoundError(missing_files.REMEDY, name="x"), 1, "a clone of fairseq's repository"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_mistakes_end_in_one_line(finish, error, status, line):
    code, text = finish(error)
    assert code == status
    assert text.startswith(f"{PROGRAM}: error: ") and line in text
    assert len(text.splitlines()) == 1


def test_a_task_that_reads_an_option_of_another_criterion(finish):
    """As those of sentence_prediction do, with the criterion that is the default."""
    from fairseq import criterions  # noqa: F401  (their options)
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationKeyError

    options = {"task": {"head": "${criterion.classification_head_name}"}, "criterion": {}}
    with pytest.raises(InterpolationKeyError) as caught:
        OmegaConf.to_container(OmegaConf.create(options), resolve=True)
    code, text = finish(caught.value)
    assert code == 2
    assert text.startswith(
        f"{PROGRAM}: error: --criterion: this task reads --classification-head-name of the "
        "criterion; allowed: sentence_prediction"
    )


def test_a_model_that_reads_an_option_of_another_task(finish):
    """As twin_speech_lstm does with speech_to_text, which has no dataclass and so no defaults."""
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationKeyError

    import fairseq_ext  # noqa: F401  (its tasks)

    options = {"model": {"longest": "${task.max_source_positions}"}, "task": {}}
    with pytest.raises(InterpolationKeyError) as caught:
        OmegaConf.to_container(OmegaConf.create(options), resolve=True)
    code, text = finish(caught.value)
    assert code == 2
    start = f"{PROGRAM}: error: --task: this model reads --max-source-positions of the task; "
    assert text.startswith(f"{start}allowed: ") and " or transcription or " in text


def test_a_name_in_a_configuration_that_is_no_option(finish):
    from fairseq.dataclass.utils import merge_with_parent
    from fairseq.optim.adam import FairseqAdamConfig
    from omegaconf import OmegaConf
    from omegaconf.errors import ConfigKeyError

    section = OmegaConf.create({"_name": "adam", "adam_epss": 1})
    with pytest.raises(ConfigKeyError) as caught:
        merge_with_parent(FairseqAdamConfig(), section)
    code, text = finish(caught.value)
    assert code == 2
    assert "'adam_epss' is no option of FairseqAdamConfig (did you mean adam_eps?)" in text
    assert "; allowed: adam_betas, adam_eps," in text


def test_a_program_that_asks_for_a_name_keeps_its_traceback(finish):
    from fairseq.optim.adam import FairseqAdamConfig
    from omegaconf import OmegaConf
    from omegaconf.errors import ConfigKeyError

    with pytest.raises(ConfigKeyError) as caught:
        OmegaConf.structured(FairseqAdamConfig)["adam_epss"]
    with pytest.raises(ConfigKeyError):
        finish(caught.value)


def test_hydra_says_which_value_a_file_has_wrong(finish):
    from hydra.errors import ConfigCompositionException

    error = ConfigCompositionException("Error merging 'dual' with schema")
    error.__cause__ = TypeError("Invalid value\nfull_key: optimization.lr")
    code, text = finish(error)
    assert (code, "schema: Invalid value; full_key: optimization.lr" in text) == (1, True)


@pytest.mark.parametrize("names, note", [
    (["valid.xx-yy.xx", "valid.xx-yy.yy"], "; valid.xx-yy.xx is there as text, which "
     "--dataset-impl raw reads"),
    (["valid.xx-yy.xx.bin", "valid1.xx-yy.xx", "train.xx-yy.xx", "valid.txt", "dict.xx.txt"], ""),
])  # fmt: skip
def test_texts_that_are_not_read_are_named(finish, tmp_path, names, note):
    for name in names:
        (tmp_path / name).touch()
    _, text = finish(FileNotFoundError(f"Dataset not found: valid ({tmp_path})"))
    assert f"splits there: none{note} (FileNotFound" in text


@pytest.mark.parametrize("what", ["nothing ({})", "{}/nothing.tsv"])
def test_splits_without_data_are_named_with_their_options(finish, tmp_path, what):
    """Of text, and of tables of recordings."""
    code, text = finish(FileNotFoundError(f"Dataset not found: {what.format(tmp_path)}"))
    names = ("nothing", str(tmp_path), "--train-subset, --valid-subset, --gen-subset")
    assert code == 1 and all(name in text for name in names)


def test_splits_of_a_task_of_one_language_are_named(finish, tmp_path):
    """Language models look for the files FOLDER/SPLIT.bin, and name FOLDER/SPLIT."""
    for name in ("train.bin", "train.idx", "valid.bin"):
        (tmp_path / name).touch()
    _, text = finish(FileNotFoundError(f"Dataset not found: none ({tmp_path / 'none'})"))
    assert f" in {tmp_path} (both a .bin and an .idx file); splits there: train (File" in text


@pytest.mark.parametrize(
    "error", [KeyError("x"), RuntimeError("x"), TypeError("x"), Exception("x"), AssertionError()]
)
def test_faults_keep_their_traceback(error):
    def command():
        raise error

    with pytest.raises(type(error)):
        user_errors.reports_user_errors(PROGRAM, command)()


def test_options_as_they_are_typed():
    """A value that is 1 or none is shown; True is that of a switch, which has none."""
    values = {"max_tokens": 1, "monolingual": None, "fp16": True, "lenpen": 0.0}
    typed = [user_errors.option_of(name, value) for name, value in values.items()]
    assert typed == ["--max-tokens 1", "--monolingual None", "--fp16", "--lenpen 0.0"]
    assert user_errors.option_of("max_tokens") == "--max-tokens"
    assert user_errors.option_of("adaptive_softmax_cutoff", "") == "--adaptive-softmax-cutoff ''"


def test_reasons_are_without_the_path_and_its_number():
    errors = (FileNotFoundError(2, "No such file", "./a.pt"), ValueError("a.pt: No such file"))
    assert [user_errors.reason_of(error, "./a.pt") for error in errors] == ["No such file"] * 2


def test_names_that_are_spelt_alike_are_suggested():
    assert user_errors.hint_for("drop_out", {"dropout", "lr"}) == " (did you mean dropout?)"
    assert user_errors.hint_for("beam", {"dropout", "lr"}) == ""


@pytest.mark.parametrize("variable", ["FAIRSEQ_EXT_DEBUG", "FAIRSEQ_EXT_TRACEBACK"])
def test_traceback_on_request(finish, monkeypatch, variable):
    """The second variable is the name until this release."""
    _, text = finish(ValueError("wrong"))
    assert "ValueError; FAIRSEQ_EXT_DEBUG=1 shows where" in text
    monkeypatch.setenv(variable, "0")
    assert "Traceback" not in finish(ValueError("wrong"))[1]
    monkeypatch.setenv(variable, "1")
    _, text = finish(ValueError("wrong"))
    assert "Traceback" in text and text.splitlines()[-1] == f"{PROGRAM}: error: wrong"


@pytest.mark.parametrize("arguments", ["list no_such_name", "average --inputs a.pt --output b.pt"])
def test_traceback_of_fairseq_ext(capsys, monkeypatch, arguments):
    """Both ways in which a sub-command refuses a value: bad usage, and a file."""

    def run():
        with contextlib.suppress(SystemExit):
            assert main(arguments.split()) != 0
        return capsys.readouterr().err

    assert "Traceback" not in run()
    monkeypatch.setenv("FAIRSEQ_EXT_DEBUG", "1")
    text = run()
    assert "Traceback (most recent call last)" in text
    assert text.splitlines()[-1].startswith(f"fairseq-ext {arguments.split()[0]}: error: ")


def test_errors_of_this_package_need_no_hint(finish):
    from fairseq_ext.compat.command_line.option_checks import check

    with pytest.raises(user_errors.OptionError) as raised:
        check({"beam": 0})
    assert "shows where" not in finish(raised.value)[1]


def fail(_rank, error):
    raise error


@pytest.mark.parametrize(
    "error, status",
    [
        (ValueError("data/x: bad"), 1),
        pytest.param(user_errors.OptionError("--lr -1"), 2, marks=pytest.mark.slow),
    ],
)
def test_spawned_process(finish, error, status):
    """The mistake of a process that torch spawned is reported as one of this process."""
    import torch

    with pytest.raises(torch.multiprocessing.ProcessRaisedException) as raised:
        torch.multiprocessing.spawn(fail, args=(error,), nprocs=1)
    code, text = finish(raised.value)
    assert (code, text) == (status, f"{PROGRAM}: error: {error}\n")


def test_fault_of_a_spawned_process():
    text = '-- Process 0 terminated\nTraceback (most recent call last):\n  File "x"\nKeyError: 1\n'
    error = type("ProcessRaisedException", (Exception,), {})(text)
    assert user_errors.exit_message(error) is None


@pytest.mark.parametrize("kind", user_errors.FILE_ERRORS)
def test_a_file_that_a_spawned_process_cannot_use(finish, kind):
    """These classes have no builtin name, nor one that ends in Error."""
    last = f"fairseq_ext.compat.{kind}: train.idx: damaged"
    trace = f'Traceback (most recent call last):\n  File "x", line 1\n{last}\n'
    for error in (
        ProcessRaisedException(f"-- Process 1 terminated with the following error:\n{trace}"),
        type(kind, (ValueError,), {})(f"Caught {kind} in DataLoader worker process 0.\n{trace}"),
    ):
        assert finish(error) == (1, f"{PROGRAM}: error: train.idx: damaged\n")


def test_error_of_a_data_worker():
    text = "Caught OSError in DataLoader worker process 0.\nOriginal Traceback (most recent call "
    text += 'last):\n  File "x", line 1\nOSError: a.wav: cut off after 3 of 9 samples\n'
    assert user_errors.exit_message(OSError(text)).message == "a.wav: cut off after 3 of 9 samples"


def test_reader_that_has_gone(monkeypatch):
    def command():
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(user_errors.os, "dup2", lambda old, new: None)
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as stream, pytest.raises(SystemExit) as leaving:
        monkeypatch.setattr(sys, "stdout", stream)
        user_errors.reports_user_errors(PROGRAM, command)()
    assert leaving.value.code == 141


@pytest.mark.parametrize(
    "module, words, status, line",
    [
        ("train", ["missing", "--arch", "lstm", "--lr", "-1"], 2, "train: error: --lr -1.0 is"),
        pytest.param(
            *("score", ["--sys", "a.txt", "--ref", "a.txt"], 1),
            "score: error: a.txt: No such file",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_python_m_ends_as_the_command(tmp_path, module, words, status, line):
    """`python -m fairseq_cli.MODULE` runs the patched command."""
    command = [sys.executable, "-m", f"fairseq_cli.{module}", *words]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.returncode == status
    assert "Traceback" not in ended.stderr
    assert ended.stderr.strip().splitlines()[-1].startswith(f"fairseq-{line}")


def test_pipe_between_processes(monkeypatch, capsys):
    """A worker that has gone is no reader who has seen enough."""

    def command():
        raise BrokenPipeError(32, "Broken pipe")

    reader, writer = os.pipe()
    monkeypatch.setattr(sys.stdout, "fileno", lambda: writer, raising=False)
    with pytest.raises(SystemExit) as leaving:
        user_errors.reports_user_errors(PROGRAM, command)()
    os.close(reader), os.close(writer)
    assert leaving.value.code == 1
    assert "Broken pipe" in capsys.readouterr().err.splitlines()[-1]
