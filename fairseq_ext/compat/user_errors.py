"""How a command ends on an error of the user: one last line, no traceback, a non-zero status.

Nothing here imports fairseq or torch: the light commands of `fairseq-ext` use it as well.

Errors of the user are ValueError and OSError, and a few exceptions of fairseq that are recognised
by their text. Everything else is a fault of a program and keeps its traceback. That of a plugin is
shown from its first line on. Functions called from Python raise as before; only the commands end
like this.
"""

from __future__ import annotations

import builtins
import dataclasses
import difflib
import functools
import os
import re
import sys
import traceback
from typing import Any, Callable, Iterable, NamedTuple, NoReturn, TextIO, TypeVar

# environment variables that show the traceback before the last line; the second is the old name
DEBUG_VARIABLE = "FAIRSEQ_EXT_DEBUG"
OLD_DEBUG_VARIABLE = "FAIRSEQ_EXT_TRACEBACK"

# with the separator: a folder beside it may begin with the same name
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# how numpy 2 shows its numbers, such as the lengths of a sentence that is too long
NUMPY_NUMBER = re.compile(r"\bnp\.u?(?:int|float)\d+\(([^()]*)\)")
BEGINS_WITH_OPTION = re.compile(r"--?[a-zA-Z]")
BROKEN_PIPE_STATUS = 128 + 13  # as of a process that SIGPIPE ended
INTERRUPTED_STATUS = 128 + 2  # the same for SIGINT

Result = TypeVar("Result")


class OptionError(ValueError):
    """An option has a value that is not allowed; the message names it, and what is allowed."""


class PluginFault(NamedTuple):
    """What a command prints for an exception that the import of a --user-dir has raised.

    The exception has it as its attribute `plugin_fault`. message: names option, file, line and
    cause. trace: the traceback from the plugin's first line on; "" where the message says it all.
    """

    message: str
    trace: str = ""


def option_of(name: str, value: object = True) -> str:
    """Return the option of a field as it is typed, "--max-tokens 9" for "max_tokens" and 9.

    Without a value, and with True as of a switch, it is the name alone. An empty text is quoted.
    """
    shown = "''" if value == "" else value
    return "--" + name.replace("_", "-") + ("" if value is True else f" {shown}")


def reason_of(error: BaseException, path: str | os.PathLike[str]) -> str:
    """Return the text of an error without the path that it begins with, for one that names it."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return error.strerror
    # a path may have been normalised, as "./model.pt" is
    names = (os.fspath(path), os.path.normpath(path))
    return str(error).removeprefix(f"{names[0]}: ").removeprefix(f"{names[1]}: ")


def hint_for(name: str, allowed: Iterable[str]) -> str:
    """Return " (did you mean NAME?)" with the allowed name that is spelt alike; "" without one."""
    close = difflib.get_close_matches(name, list(allowed), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


class ExitMessage(NamedTuple):
    """The last line of a command without its name, and its exit status."""

    message: str
    status: int


# base classes in hydra of the errors of a configuration that cannot be composed
HYDRA_ERRORS = ("HydraException",)

# classes of this package for a file that is damaged or does not belong to the run
FILE_ERRORS = ("RefusedCheckpoint", "CheckpointMismatch", "UnreadableFile", "UnreadableText")
# the line of a printed traceback that names its exception
RAISED = re.compile(
    rf"^([\w.]*(?:Error|Exception|\.(?:{'|'.join(FILE_ERRORS)})))(?:: |$)", re.MULTILINE
)

# the options that name splits, one for each command
SPLIT_OPTIONS = "--train-subset, --valid-subset, --gen-subset"

# packages that fairseq imports where an option needs them
OPTIONAL_PACKAGES = ("editdistance", "librosa", "pandas", "soundfile", "torchaudio", "transformers")

# (class of the exception, pattern in its text, message; None: the exception's text is the message)
FAIRSEQ_ERRORS: tuple[tuple[type[Exception], str, str | None], ...] = (
    (AssertionError, r"^Must specify batch size", None),
    (AssertionError, r"^--", None),
    (
        AssertionError,
        r"^Please specify criterion",
        "--criterion is missing; allowed: what `fairseq-train --help` lists",
    ),
    (
        AssertionError,
        r"min_len cannot be larger than max_len",
        "--min-len is larger than the longest hypothesis that --max-len-a and --max-len-b allow",
    ),
    (
        AssertionError,
        r"^world size is \d+ but have \d+ available devices",
        "--distributed-world-size is more than the CUDA devices there are; allowed: their number; "
        "with --cpu any",
    ),
    (AssertionError, r"Sentences lengths should not exceed max_tokens", None),
    (AssertionError, r"must be divisible by num_heads|is not divisible by", None),
    # of a checkpoint that is gone on from with another --criterion or --optimizer
    (AssertionError, r"^(Criterion|Optimizer) does not match", None),
    (AssertionError, r"^Sharded datasets|valid subset|Valid subset", None),
    (
        Exception,
        r"^Could not infer language pair",
        "no language pair: the data folder has no files named train.SRC-TGT.SRC.idx; name the "
        "languages with --source-lang and --target-lang, and check the data folder",
    ),
    (
        Exception,
        r"^The dataset is empty",
        "no sentence is left to train on: the data are empty, or all are longer than --max-tokens, "
        "--max-source-positions or --max-target-positions; allowed: larger ones",
    ),
    (Exception, r"^Size of sample #|^Sizes of sample #", None),
    (Exception, r"^Cannot load model parameters from checkpoint", None),
    (ImportError, r"^(\s*)(Please install|You need to install)", None),
    (ImportError, r"^the archive of fairseq on PyPI lacks", None),
    (ImportError, r"^(sentencepiece|sacrebleu|sacremoses|subword)", None),
    (NotImplementedError, r"^Unknown post_process option", None),
    (RuntimeError, r"could not parse ModelProto from", None),  # sentencepiece
    (RuntimeError, r"^chosen optimizer \w+ does not support flat params", None),  # adafactor
    (
        RuntimeError,
        r"^Expected to have finished reduction in the prior iteration",
        "parameters of the model had no gradient in an update, as the head of a language model "
        "has none in the task sentence_prediction; allowed with several workers: "
        "--find-unused-parameters, or --ddp-backend legacy_ddp",
    ),
)


def is_debugging() -> bool:
    """Return True if the environment asks for the traceback of a user's error."""
    values = (os.environ.get(DEBUG_VARIABLE, ""), os.environ.get(OLD_DEBUG_VARIABLE, ""))
    return any(value not in ("", "0") for value in values)


def exit_message(error: BaseException) -> ExitMessage | None:
    """Return how a command ends on `error`; None if the error is not the user's.

    Its status is 2 where the message begins with an option, whatever class the error is of.
    """
    last = _message_of(error)
    return last._replace(status=2) if last and BEGINS_WITH_OPTION.match(last.message) else last


def _message_of(error: BaseException) -> ExitMessage | None:
    """Return the message for `error`, with 2 for OptionError; None if it is not the user's."""
    name, text = type(error).__name__, str(error)
    # both carry the traceback of another process as text
    if name == "ProcessRaisedException":
        return _exit_message_of_traceback(text)
    if text.startswith("Caught ") and "DataLoader worker process" in text:
        return _exit_message_of_traceback(text)
    text = os_error_text(error) if isinstance(error, OSError) else text
    if isinstance(error, OptionError):
        return ExitMessage(_one_line(text), 2)
    fault: PluginFault | None = getattr(error, "plugin_fault", None)
    if fault is not None:
        return ExitMessage(_one_line(fault.message), 1)
    if name == "MissingMandatoryValue":  # omegaconf's, for "???"
        return ExitMessage(_missing_value_text(text), 2)
    if name == "InterpolationKeyError":  # omegaconf's, for an option with the value of another's
        return ExitMessage(_missing_reference_text(text), 2)
    if isinstance(error, (ValueError, OSError)) or name == "RefusedCheckpoint":
        return ExitMessage(_one_line(text) + _hint(error), 1)
    if isinstance(error, ModuleNotFoundError) and error.name in OPTIONAL_PACKAGES:
        return ExitMessage(f"{error.name} is needed and not installed: pip install {error.name}", 1)
    if name == "ConfigKeyError" and _is_unknown_option(error):
        return ExitMessage(_unknown_option_text(error), 2)
    if any(base.__name__ in HYDRA_ERRORS for base in type(error).__mro__):
        # of a value that its option does not take, hydra names the file alone
        reason = "" if error.__cause__ is None else f": {_one_line(str(error.__cause__))}"
        return ExitMessage(_one_line(text) + reason, 1)
    for kind, pattern, message in FAIRSEQ_ERRORS:
        # a bare `Exception` is fairseq's; any subclass of it may come from anywhere
        is_kind = type(error) is kind if kind is Exception else isinstance(error, kind)
        if is_kind and re.search(pattern, text):
            return ExitMessage(_one_line(message or text), 1)
    return None


def _missing_value_text(text: str) -> str:
    """Return the message for a value that has no default and was not given, from omegaconf's."""
    match = re.search(r"full_key: (\S+)", text) or re.search(r"value: (\S+)", text)
    key = match.group(1) if match else "an option"
    option = option_of(key.rpartition(".")[2])
    return f"{option} is missing, which has no default ({key} in a configuration of hydra)"


def _is_unknown_option(error: BaseException) -> bool:
    """Return True if a name in a configuration of hydra is no option of what it is given to."""
    frames = traceback.extract_tb(error.__traceback__)
    # fairseq merges what the user wrote there; elsewhere it is a program that asks for the name
    is_merged = any(frame.name == "merge_with_parent" for frame in frames)
    return is_merged and dataclasses.is_dataclass(getattr(error, "object_type", None))


def _unknown_option_text(error: Any) -> str:
    """Return the message for a name that the options of a task, a model and so on do not have."""
    names = [entry.name for entry in dataclasses.fields(error.object_type)]
    allowed = [name for name in names if not name.startswith("_")]
    return (
        f"{error.key!r} is no option of {error.object_type.__name__}"
        f"{hint_for(str(error.key), allowed)}; allowed: {', '.join(sorted(allowed))}"
    )


def _missing_reference_text(text: str) -> str:
    """Return the message for an option that is the value of one of the criterion or the task."""
    match = re.search(r"Interpolation key '(criterion|task)\.(\w+)' not found", text)
    if match is None:
        return _one_line(text)
    group, name = match.groups()
    if group == "criterion":
        registries = getattr(sys.modules.get("fairseq.registry"), "REGISTRIES", {})
        declarations = registries.get("criterion", {}).get("dataclass_registry", {})
        reader = "this task"
    else:  # a task without a dataclass has no defaults in a configuration of hydra
        declarations = getattr(sys.modules.get("fairseq.tasks"), "TASK_DATACLASS_REGISTRY", {})
        reader = "this model"
    names = sorted(key for key, options in declarations.items() if hasattr(options, name))
    return (
        f"--{group}: {reader} reads {option_of(name)} of the {group}; allowed: "
        f"{' or '.join(names) or 'one that has it'}"
    )


def os_error_text(error: OSError) -> str:
    """Return the text of an OSError as `file: reason`, without its number."""
    match = re.match(r"Dataset not found: (\S+) \((.+)\)$", str(error))
    if match:
        return _missing_split_text(*match.groups())
    match = re.match(r"Dataset not found: (.+\.tsv)$", str(error))  # of tasks of speech
    if match:
        return f"there is no {match[1]}, the table of a split ({SPLIT_OPTIONS})"
    if error.filename is None or error.strerror is None:
        return str(error)
    other = "" if error.filename2 is None else f" -> {error.filename2}"
    name = os.fspath(error.filename)
    return f"{name}{other}: {error.strerror}{_data_folder_note(name)}"


def _data_folder_note(path: str | bytes) -> str:
    """Return "; .." that says what a data folder is, for the path of a dictionary; else ""."""
    match = re.fullmatch(r"dict\.(?:(\S+)\.)?txt", os.path.basename(os.fsdecode(path)))
    if match is None:
        return ""
    language = f" for the language {match[1]}" if match[1] else " with --only-source"
    return f"; allowed: a data folder that fairseq-preprocess has made{language}"


def _missing_split_text(split: str, folder: str) -> str:
    """Return the message for a split without data, with the splits that the folder has."""
    languages = " for these languages"
    if os.path.basename(folder) == split and not os.path.isdir(folder):
        # tasks of one language name the beginning of the files instead of their folder
        folder, languages = os.path.dirname(folder) or ".", ""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    # a set needs both files
    whole = [name[:-4] for name in names if name.endswith(".idx") and name[:-4] + ".bin" in names]
    present = ", ".join(sorted({name.split(".")[0] for name in whole})) or "none"
    return (
        f"no data of the split {split!r} ({SPLIT_OPTIONS}) in {folder}{languages} (both a "
        f".bin and an .idx file); splits there: {present}{raw_text_note(folder, split)}"
    )


def raw_text_note(folder: str, split: str, beginnings: tuple[str, ...] = ("",)) -> str:
    """Return "; .." that says which text of a split --dataset-impl raw would read, "" without any.

    Args:
        folder: of the data.
        split: such as "train"; its texts are train.en-de.en and so on.
        beginnings: of the names that count.
    """
    names = os.listdir(folder) if os.path.isdir(folder) else []
    is_raw = re.compile(rf"{re.escape(split)}\.[^.]+-[^.]+\.(?!bin$|idx$)[^.]+").fullmatch
    raw = min((name for name in names if is_raw(name) and name.startswith(beginnings)), default="")
    return f"; {raw} is there as text, which --dataset-impl raw reads" if raw else ""


def _one_line(text: str) -> str:
    """Return the lines of a text with semicolons between them, without empty ones."""
    lines = [line.strip() for line in NUMPY_NUMBER.sub(r"\1", str(text)).splitlines()]
    return "; ".join(line for line in lines if line) or "no message"


def _hint(error: BaseException) -> str:
    """Return how to see more of an error that does not come from this package, or ""."""
    # raised in this package: its message says all there is to say
    frames = traceback.extract_tb(error.__traceback__)
    if is_debugging() or (frames and frames[-1].filename.startswith(PACKAGE)):
        return ""
    return f" ({type(error).__name__}; {DEBUG_VARIABLE}=1 shows where)"


def _exit_message_of_traceback(text: str) -> ExitMessage | None:
    """Return the message for the last exception of a printed traceback, of another process."""
    entries = list(RAISED.finditer(text))
    if not entries:
        return None
    kind = entries[-1].group(1).rpartition(".")[2]  # the last is the one that ended the process
    message = _one_line(text[entries[-1].end() :])
    if kind == "OptionError":
        return ExitMessage(message, 2)
    # `object` is none of them: a class of a library keeps its traceback
    builtin: type = getattr(builtins, kind, object)
    if issubclass(builtin, (ValueError, OSError)) or kind in FILE_ERRORS:
        return ExitMessage(message, 1)
    if issubclass(builtin, (AssertionError, ImportError, RuntimeError)):
        return exit_message(builtin(message))
    return None


def print_error(program: str, error: BaseException, message: str) -> None:
    """Print the last line of `program`, after the traceback where the environment asks for it."""
    tqdm_class = getattr(sys.modules.get("tqdm"), "tqdm", None)
    for bar in list(getattr(tqdm_class, "_instances", ())):
        bar.close()  # ends the bar's line
    sys.stdout.flush()
    fault: PluginFault | None = getattr(error, "plugin_fault", None)
    if is_debugging():
        traceback.print_exception(type(error), error, error.__traceback__)
    elif fault is not None and fault.trace:
        print(fault.trace, file=sys.stderr)  # its author looks for the line
    print(f"{program}: error: {message}", file=sys.stderr, flush=True)


def exit_with(program: str, error: BaseException, last: ExitMessage) -> NoReturn:
    """Print the last line of `program` and leave the process with its status."""
    print_error(program, error, last.message)
    sys.exit(last.status)


def has_lost_its_reader(stream: TextIO) -> bool:
    """Return True if `stream` writes to a pipe that nobody reads any more."""
    import select

    try:
        poll = select.poll()
        poll.register(stream.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (AttributeError, ValueError, OSError):  # a system without poll, a stream without a file
        return True


def discard_stdout() -> None:
    """Redirect the standard output to nowhere: Python flushes it once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def reports_user_errors(program: str, command: Callable[..., Result]) -> Callable[..., Result]:
    """Return `command` so that an error of the user ends the process with one line."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Result:
        try:
            return command(*args, **kwargs)
        except BrokenPipeError as error:
            if not has_lost_its_reader(sys.stdout):  # a pipe between processes
                exit_with(program, error, exit_message(error) or ExitMessage(str(error), 1))
            # the reader of a pipe, such as head, has seen enough; end as a signal would
            discard_stdout()
            sys.exit(BROKEN_PIPE_STATUS)
        except Exception as error:
            last = exit_message(error)
            if last is None:
                raise
            exit_with(program, error, last)

    return run
