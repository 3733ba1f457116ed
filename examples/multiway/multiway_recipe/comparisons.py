"""What is compared with what: the paper's Tables 3 and 2, and directions without training data."""

from dataclasses import dataclass
from typing import Dict, Tuple

from .settings import reverse
from .systems import cut_folder


@dataclass(frozen=True)
class Row:
    """One line of a comparison.

    label: its first cell. target: language of the translations.
    cells: {heading of a column: (system, key of its scores)}.
    """

    label: str
    target: str
    cells: Dict[str, Tuple[str, str]]


@dataclass(frozen=True)
class Comparison:
    """rows: the lines. contrasts: pairs of headings (baseline, system) that are tested."""

    title: str
    rows: Tuple[Row, ...]
    contrasts: Tuple[Tuple[str, str], ...]


def every_direction(settings):
    """Compare one model of all directions with one model for each (Table 3)."""
    rows = tuple(
        Row(
            direction,
            direction.split("-")[1],
            {
                "Single": (f"single.{direction}", direction),
                "Multi": ("multi", direction),
                "Multi, tuned": ("multi.tuned", direction),
            },
        )
        for direction in settings.directions
    )
    contrasts = (("Single", "Multi"), ("Single", "Multi, tuned"), ("Multi", "Multi, tuned"))
    return Comparison("All directions, all sentences", rows, contrasts)


def low_row(pair, direction, percent, sentences):
    """Return a cell of Table 2: a direction with so many training sentences."""
    return Row(
        f"{direction}, {percent}% ({sentences:,})",
        direction.split("-")[1],
        {
            "Single": (f"single.{percent}.{direction}", direction),
            "Single, longer": (f"long.{percent}.{direction}", direction),
            "Single, more": (f"more.{percent}.{direction}", direction),
            "Single+DF": (f"df.{percent}.{direction}", direction),
            "Multi": (f"multi.{percent}.{pair}", direction),
            "Multi, tuned": (f"multi.{percent}.{pair}.tuned", direction),
        },
    )


def low_resource(settings, cuts):
    """Compare models of a cut pair: single, with deep fusion, and of all directions (Table 2).

    cuts: {folder: training sentences}, from the stamp of the data.
    """
    rows = tuple(
        low_row(pair, direction, percent, cuts[cut_folder(pair, percent)])
        for pair in settings.low_pairs
        for direction in (pair, reverse(pair))
        for percent in settings.percents
        if cut_folder(pair, percent) in cuts
    )
    contrasts = (
        *(("Single", "Single+DF"), ("Single, more", "Single+DF")),
        *(("Single+DF", "Multi"), ("Single", "Multi")),
        ("Single, longer", "Multi"),
    )
    return Comparison("Low resource: one pair cut", rows, contrasts)


def zero_shot(settings):
    """Compare translation of a pair without training data, directly and through the pivot."""
    rows = []
    for direction in (settings.zero_pair, reverse(settings.zero_pair)):
        through = direction.replace("-", f"-{settings.pivot}-")
        cells = {
            "Zero-shot": ("zero-shot", direction),
            f"by {settings.pivot}": ("zero-shot", through),
            "Zero-shot, tuned": ("zero-shot.tuned", direction),
            f"tuned, by {settings.pivot}": ("zero-shot.tuned", through),
            "Single, trained on it": (f"single.{direction}", direction),
            "Multi, trained on it": ("multi", direction),
        }
        rows.append(Row(direction, direction.split("-")[1], cells))
    contrasts = (
        (f"by {settings.pivot}", "Zero-shot"),
        (f"by {settings.pivot}", "Multi, trained on it"),
    )
    return Comparison("A pair without training data", tuple(rows), contrasts)


def comparisons(settings, cuts):
    """Return all three comparisons."""
    return (every_direction(settings), low_resource(settings, cuts), zero_shot(settings))
