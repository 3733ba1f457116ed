"""The task ``fast_translation``: fairseq's ``translation`` with the search of beam_search.py.

For any model of that task, also a stock one; checkpoints of either task are checkpoints of both.
"""

from dataclasses import dataclass
from typing import Any, List

from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from .fast_search import fast_search


@dataclass
class FastTranslationConfig(TranslationConfig):
    """The options of ``translation``."""


@register_task("fast_translation", dataclass=FastTranslationConfig)
class FastTranslationTask(TranslationTask):
    """fairseq's ``TranslationTask``; hypotheses and scores are the same."""

    def build_generator(
        self, models: List[BaseFairseqModel], args: Any, **options: Any
    ) -> SequenceGenerator:
        """Return the search by ``beam_search.py``; a ``seq_gen_cls`` among the options wins."""
        return super().build_generator(models, args, **fast_search(args, options))
