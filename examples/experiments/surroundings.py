"""When, where and with which packages a run was trained, for the facts that a report states."""

import datetime
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Iterable, Mapping

PACKAGES = ("fairseq-ext", "fairseq", "torch", "sacrebleu", "sentencepiece")
NOTED = "trained on"  # the entry of a run's record


def versions() -> list[str]:
    """Return "NAME VERSION" of the packages; of one without metadata nothing is known."""
    texts = []
    for name in PACKAGES:
        try:
            texts.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return texts


def surroundings() -> dict[str, str]:
    """Return {fact: text} of this process: its date, machine and packages."""
    import torch

    machine = [platform.machine(), platform.system()]
    if torch.cuda.is_available():
        machine.append(torch.cuda.get_device_name())
    return {
        "date": datetime.date.today().isoformat(),
        "machine": ", ".join(machine),
        "versions": ", ".join(versions()),
    }


def note(record: dict[str, Any]) -> None:
    """Add the surroundings to a run's record, unless it is trained.

    A training that was stopped may go on elsewhere.
    """
    if record["trained"] < len(record["train"]):
        here, noted = surroundings(), record.setdefault(NOTED, [])
        if here not in noted:
            noted.append(here)


def facts(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return {fact: texts of all runs}; those of this process for runs that noted none."""
    now = surroundings()
    noted = [entry for record in records for entry in record.get(NOTED, [now])]
    return {fact: "; ".join(sorted({entry[fact] for entry in noted})) for fact in now if noted}
