"""The task ``fast_translation``: fairseq's ``translation`` with the search of beam_search.py.

For any model of that task, also a stock one; checkpoints of either task are checkpoints of both.
"""

from dataclasses import dataclass

from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from .beam_search import own_search


@dataclass
class FastTranslationConfig(TranslationConfig):
    """The options of ``translation``."""


@register_task("fast_translation", dataclass=FastTranslationConfig)
class FastTranslationTask(TranslationTask):
    """fairseq's ``TranslationTask``; hypotheses and scores are the same."""

    def build_generator(self, models, args, **options):
        """As fairseq's; a ``seq_gen_cls`` among the options wins."""
        return super().build_generator(models, args, **own_search(args, options))
