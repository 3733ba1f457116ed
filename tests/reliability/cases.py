"""The table of bad inputs: cases/THEME.txt. A line `== COMMAND` begins the cases of a command,

    SYSTEM | WORDS | MENTION

SYSTEM is one of `world.SYSTEMS`, or `-` for commands without a model. WORDS are added to the valid
command of the system; `data=FOLDER` and `path=FILE` replace its data folder and checkpoint, `<TEXT`
is what the command reads from its standard input, and `only` leaves out all but WORDS. MENTION is
what the last line must name. A `*` before a line: also in the fast suite.
"""

import shlex
from pathlib import Path
from typing import List, NamedTuple

from fairseq_ext.__main__ import COMMANDS

from . import world

TABLES = sorted((Path(__file__).parent / "cases").glob("*.txt"))


class Case(NamedTuple):
    """One bad input: the command line, what it reads, what its last line must name."""

    system: str
    words: List[str]
    mention: str
    bad: str  # what is shown in the table
    stdin: str
    is_quick: bool

    @property
    def command(self) -> str:
        """The command, with the sub-command of fairseq-ext."""
        has_command = self.words[0] == "fairseq-ext" and self.words[1] in COMMANDS
        return " ".join(self.words[: 2 if has_command else 1])


def all_cases() -> List[Case]:
    """Every case of every theme."""
    cases, command = [], ""
    for path in TABLES:
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("== "):
                command = line[3:]
            elif line and not line.startswith("#"):
                cases.append(case(command, line))
    return cases


def case(command: str, line: str) -> Case:
    """A line of a table as a Case."""
    is_quick = line.startswith("* ")
    system, bad, mention = (part.strip() for part in line.lstrip("* ").split(" | "))
    added, stdin, replaced, alone = [], "", {}, False
    for word in shlex.split(bad):
        name, _, value = word.partition("=")
        if name in ("data", "path"):
            replaced[name] = value
        elif word.startswith("<"):
            stdin = word[1:].encode().decode("unicode_escape")
        elif word == "only":
            alone = True
        else:
            added.append(word)
    words = [*command.split(), *added]
    if system != "-" and not alone:
        words = _valid(command, system, replaced) + added
    return Case(system, words, mention, bad, stdin, is_quick)


def _valid(command: str, system: str, replaced) -> List[str]:
    is_training = command == "fairseq-train"
    words = world.train_words(system) if is_training else world.use_words(command, system)
    if is_training:
        words += ["--save-dir", "out"]
    if "data" in replaced:
        words[1] = replaced["data"]
    if "path" in replaced:
        words[words.index("--path") + 1] = replaced["path"]
    return words
