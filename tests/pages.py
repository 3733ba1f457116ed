"""Reading the manual: its code blocks, and which options exist. Used by test_docs.py.

A fenced block may carry a mark on the line before it, an HTML comment that readers do not see:

    <!-- run: NAME -->      a bash block that is run; blocks of one name are one script
    <!-- dry-run: NAME -->  a bash block whose fairseq commands are parsed, not run
    <!-- file: PATH -->     the content of a file that the page's run blocks need
"""

import argparse
import contextlib
import importlib
import re
from pathlib import Path
from typing import NamedTuple
from unittest import mock

REPOSITORY = Path(__file__).resolve().parent.parent
MARK = re.compile(r"<!-- (run|dry-run|file): ([\w./-]+) -->")
FENCE = re.compile(r"(?m)^```(\w*)\n(.*?)^```$", re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")

# options of programs that are neither fairseq's nor ours
FOREIGN = {
    *("--no-deps", "--no-build-isolation", "--target", "--user-dir", "--index-url", "--pre"),  # pip
    *("--nproc_per_node", "--nproc-per-node", "--nnodes"),  # torchrun
    *("--echo", "--extra-index-url"),  # sacrebleu, pip
    *("--config-name", "--config-dir"),  # hydra
    "--quick",  # tests/campaigns/versions.py
    "--entropy-weight",  # of the example in docs/adding-a-system.md
}


class Block(NamedTuple):
    """A fenced block: kind is run, dry-run, file or "" (unmarked); line is that of its fence."""

    page: Path
    line: int
    kind: str
    name: str
    language: str
    text: str


def pages():
    """The README and the pages of the manual."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def label(path):
    """Path relative to the repository, for messages."""
    return path.relative_to(REPOSITORY).as_posix()


def blocks(page):
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    listed = []
    for match in FENCE.finditer(text):
        before = text[: match.start()].rstrip("\n")
        mark = MARK.fullmatch(before.rpartition("\n")[2].strip())
        kind, name = mark.groups() if mark else ("", "")
        line = text.count("\n", 0, match.start()) + 1
        listed.append(Block(page, line, kind, name, match.group(1), match.group(2)))
    return listed


def sessions(kind):
    """[(page, name)] of all marked scripts of a kind, in the order of the pages."""
    names = [(page, b.name) for page in pages() for b in blocks(page) if b.kind == kind]
    return list(dict.fromkeys(names))


def script(page, kind, name):
    """The blocks of one session as one script."""
    return "\n".join(b.text for b in blocks(page) if (b.kind, b.name) == (kind, name))


def links(page):
    """The targets of the links and pictures of a page, code left out."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"`[^`\n]*`", "", text)
    return [a or b for a, b in LINK.findall(text)]


def anchors(page):
    """The ids that mkdocs and forges give to the headings of a page."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"(?m)^#+ (.+)$", text)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", t).strip().lower()) for t in titles}


def code(page):
    """All code of a page: fenced blocks and `spans`."""
    text = page.read_text(encoding="utf-8")
    spans = re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    return "\n".join([*(b.text for b in blocks(page)), *spans])


def _added_by(function, *arguments):
    parser = argparse.ArgumentParser(conflict_handler="resolve", add_help=False)
    function(parser, *arguments)
    return {option for action in parser._actions for option in action.option_strings}


@contextlib.contextmanager
def files_may_be_missing():
    """In the block, options may name files that are not there: of commands that are only parsed."""
    from fairseq_ext.compat.command_line import option_checks

    ours = option_checks.OF_FILES
    checks = tuple(check for check in option_checks.COMPARISONS if check not in ours)
    with mock.patch.object(option_checks, "COMPARISONS", checks):
        yield


def fairseq_parsers():
    """{command: function that makes its parser} for the commands the manual uses."""
    from fairseq import options
    from fairseq_cli import score

    return {
        "fairseq-train": options.get_training_parser,
        "fairseq-generate": options.get_generation_parser,
        "fairseq-interactive": options.get_interactive_generation_parser,
        "fairseq-validate": options.get_validation_parser,
        "fairseq-preprocess": options.get_preprocessing_parser,
        "fairseq-eval-lm": options.get_eval_lm_parser,
        "fairseq-score": score.get_parser,
    }


def existing_options():
    """Every option of fairseq and its components, of ours, and of the scripts."""
    from fairseq.models import MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    known_options = set(FOREIGN) | own_options()  # first: it registers what this package has
    for make in fairseq_parsers().values():
        known_options |= {o for action in make()._actions for o in action.option_strings}
    classes = [*TASK_REGISTRY.values(), *MODEL_REGISTRY.values()]
    for entry in REGISTRIES.values():
        classes += entry["registry"].values()
        for name, options in entry["dataclass_registry"].items():
            names = (name, *options.__dataclass_fields__)
            known_options.update("--" + field.replace("_", "-") for field in names)
    for registered in classes:
        if hasattr(registered, "add_args"):
            known_options |= _added_by(registered.add_args)
    return known_options


def own_options():
    """Options of `fairseq-ext` and of the scripts in examples/ and benchmarks/."""
    from fairseq_ext import __main__ as command

    names = {o for action in command.overview()._actions for o in action.option_strings}
    for entry in command.COMMANDS.values():
        module = importlib.import_module(f"fairseq_ext.{entry.module}")
        names |= _added_by(module.add_arguments)
    folders = (REPOSITORY / "examples", REPOSITORY / "benchmarks")
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        names |= set(re.findall(r'"(--[a-z][\w-]*)"', path.read_text(encoding="utf-8")))
    return names
