"""Run a case and say what is wrong with its ending."""

from typing import List, NamedTuple, Tuple

from . import forked
from .cases import Case
from .world import World

HYDRA = (".hydra", "outputs", "hydra_train.log")


class Row(NamedTuple):
    """A row of the page: the case and how it ended."""

    case: Case
    status: int
    last: str


def has_right_status(case: Case, status: int, last: str) -> bool:
    """True if the exit status is the one that docs/compat.md promises for a last line."""
    message = last.partition(": error: ")[2]
    # the others begin messages of argparse
    of_options = (
        "-",
        "argument ",
        "unrecognized arguments",
        "the following arguments are required",
    )
    if message.startswith(of_options):
        return status == 2
    # fairseq-ext: 2 for missing files as well
    return status in ((1, 2) if case.words[0] == "fairseq-ext" else (1,))


def ending(world: World, case: Case) -> Tuple[Row, List[str]]:
    """The row of a case, and the faults of its ending (none when all is well)."""
    world.prepare(case.words)
    before = world.listing()
    ended = forked.run(case.words, world.folder, case.stdin)
    after = world.listing()
    lines = [line for line in ended.text.splitlines() if line.strip()]
    last = lines[-1].strip() if lines else ""
    faults = []
    if not has_right_status(case, ended.status, last):
        faults.append(f"ends with status {ended.status}")
    # argparse names fairseq-ext's sub-command, others the command alone
    if not last.startswith(f"{case.words[0]}") or ": error: " not in last:
        faults.append("the last line is no error line")
    if sum(f"{case.words[0]}" in line and ": error: " in line for line in lines) > 1:
        faults.append("more than one error line")
    if "Traceback" in ended.text:
        faults.append("a traceback")
    if case.mention not in last:
        faults.append(f"{case.mention!r} is not named")
    written = sorted(
        path
        for path in after
        if path not in before or (after[path] and after[path] != before[path])
    )
    # hydra keeps the configuration of every run, also of one that fails
    written = [path for path in written if not path.startswith(HYDRA)]
    gone = sorted(set(before) - set(after))
    if written:
        faults.append(f"written: {', '.join(written)}")
        world.remove(set(after) - set(before))  # the next case begins as this one did
    if gone:
        faults.append(f"removed: {', '.join(gone)}")
    row = Row(case, ended.status, last.replace(f"{world.folder}/", ""))
    return row, [*faults, ended.text[-2500:]] if faults else []
