"""Dual learning's task: both directions of every pair, on the same sentences, in every update."""

from dataclasses import dataclass, field
from typing import List

from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import register_task

from ..streams.schedule import SCHEDULES
from ..streams.task import StreamsConfig, StreamsTask


@dataclass
class DualTranslationConfig(StreamsConfig):
    schedule: ChoiceEnum(SCHEDULES) = field(
        default="joint",
        metadata={
            "help": "pairs of each update: joint (the paper: -log P(y|x; f) - log P(x|y; g) on the "
            "same sentences), cycle, main+aux, temperature"
        },
    )


@register_task("dual_translation", dataclass=DualTranslationConfig)
class DualTranslationTask(StreamsTask):
    """-s de -t en trains de-en and en-de; --lang-pairs de-en,fr-en both directions of each."""

    @classmethod
    def training_pairs(cls, cfg: DualTranslationConfig) -> List[str]:
        pairs = super().training_pairs(cfg)
        reverse = ["-".join(reversed(pair.split("-"))) for pair in pairs]
        both = [direction for couple in zip(pairs, reverse) for direction in couple]
        return list(dict.fromkeys(both))

    def can_translate(self, pair: str) -> bool:
        """Also directions without training data: every component encodes and decodes."""
        langs = {lang for known in self.pairs for lang in known.split("-")}
        source, target = pair.split("-")
        return source != target and {source, target} <= langs
