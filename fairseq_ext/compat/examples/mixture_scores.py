"""The example translation_moe: its script that scores several translations of a sentence."""

from __future__ import annotations

import functools
from typing import Any

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch, since

SCRIPT = modules_of_examples("translation_moe.score")


@patch(
    *SCRIPT,
    because="sacrebleu 2.0 takes a text for a list of letters, and compares these: '#refs covered' "
    "of translation_moe/score is partly drawn by chance",
    conditions=[since("sacrebleu", 2, 0)],
)
def texts_are_lists_of_one(module: PatchedModule) -> None:
    """Give sacrebleu lists where the script gives a hypothesis and a reference."""
    stock = module._corpus_bleu

    @functools.wraps(stock)
    def corpus_bleu(hypotheses: Any, references: Any, *values: Any, **options: Any) -> Any:
        if isinstance(hypotheses, str):
            hypotheses, references = [hypotheses], [[references]]
        return stock(hypotheses, references, *values, **options)

    module._corpus_bleu = corpus_bleu


@patch(
    *SCRIPT,
    because="fairseq 0.12.2: score ends in an IndexError at an empty translation",
)
def empty_translations_are_scored(module: PatchedModule) -> None:
    """Read the output of fairseq-generate and fairseq-interactive by its columns."""

    def load_sys(paths: list[str]) -> tuple[list[str], list[str], list[Any], list[Any]]:
        columns: dict[str, dict[int, Any]] = {"S-": {}, "T-": {}, "D-": {}}
        for path in paths:
            with open(path, encoding="utf-8") as file:
                for line in file:
                    if line[:2] in columns:
                        label, *values = line.rstrip("\n").split("\t")
                        lines = columns[line[:2]]
                        if line[:2] == "D-":
                            lines.setdefault(int(label[2:]), []).append(
                                (values[1], float(values[0]))
                            )
                        else:
                            lines[int(label[2:])] = values[0]
        sources, targets, translations = (
            [lines[number] for number in sorted(lines)] for lines in columns.values()
        )
        hypotheses = [[text for text, _ in pairs] for pairs in translations]
        scores = [[score for _, score in pairs] for pairs in translations]
        return sources, targets, hypotheses, scores

    module.load_sys = load_sys
