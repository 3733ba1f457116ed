"""The `fairseq-ext` command; `python -m fairseq_ext` is the same."""

import argparse
import difflib
import importlib
import os
import sys

from .tools import UsageError

# sub-command: (module in fairseq_ext/tools, one line of help)
COMMANDS = {
    "user-dir": ("user_dir", "print the path to give to fairseq's --user-dir"),
    "list": ("listing", "list architectures, tasks and criterions by system, or one's options"),
    "doctor": ("doctor", "check this installation and say what to do about problems"),
    "run": ("launch", "run a stock fairseq command, also where .pth files are not read"),
    "tune-alpha": ("tune_alpha", "choose alpha of dual inference on the validation set"),
    "export": ("export", "write one direction, or a forward network, for other programs"),
    "add-language": ("add_language", "add languages or pairs to a multi-way checkpoint"),
    "linearise": ("linearise", "make annotated corpora into parallel text, and back"),
    "router-usage": ("router_usage", "show how much each task uses each shared block"),
    "filter-banks": ("filter_banks", "make filter banks of wav files, and what training needs"),
    "pixel-lines": ("pixel_lines", "make lines of black and white pixels of MNIST images"),
    "twin-distance": ("twin_distance", "show how far the states of a model and its twin are apart"),
    "plot": ("plot", "draw training curves from a training log"),
    "compare": ("compare", "learning curves of several runs, by update and by time"),
    "evaluate": ("evaluate", "score translations, and test the differences of systems"),
    "average": ("average", "average the parameters of several checkpoints"),
}


def version():
    """The version of this distribution, or what can be said where it is not installed."""
    from importlib import metadata

    try:
        return metadata.version("fairseq-ext")
    except metadata.PackageNotFoundError:
        return "(not installed; running from its folder)"


def overview():
    """The parser of the bare command: help and version; it knows no options of sub-commands."""
    width = max(map(len, COMMANDS))
    table = "\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="fairseq-ext",
        usage="fairseq-ext COMMAND [options]; fairseq-ext COMMAND --help",
        description="Sequence-to-sequence papers as a fairseq plugin.",
        epilog=f"commands:\n{table}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fairseq-ext {version()}")
    return parser


def unknown(name):
    """Message for a COMMAND that is none."""
    close = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return f"COMMAND {name!r} is unknown{hint}; allowed: {', '.join(COMMANDS)}"


def main(argv=None):
    """Run the command line `argv` (default: the process's) and return the exit status.

    2 for bad usage, as argparse does; otherwise what the sub-command returns.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv:
        overview().print_help(sys.stderr)
        return 2
    name, rest = argv[0], argv[1:]
    if name.startswith("-"):
        overview().parse_args(argv)
        overview().error(f"COMMAND is missing before {' '.join(argv)}")
    if name not in COMMANDS:
        overview().error(unknown(name))
    module_name, text = COMMANDS[name]
    module = importlib.import_module(f".tools.{module_name}", __package__)
    parser = argparse.ArgumentParser(prog=f"fairseq-ext {name}", description=text)
    module.add_arguments(parser)
    try:
        return module.run(parser.parse_args(rest))
    except UsageError as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # the reader of a pipe, such as head, has seen enough; end as a signal would have ended us
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13


if __name__ == "__main__":
    sys.exit(main())
