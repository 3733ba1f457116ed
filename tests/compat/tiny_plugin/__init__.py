"""A --user-dir in the style of today's plugins: a task, a model and a criterion of its own."""

from dataclasses import dataclass, field

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask


@dataclass
class PluginCriterionConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """Options of the criterion."""

    extra_weight: float = field(default=0.1, metadata={"help": "a weight"})


@register_criterion("plugin_criterion", dataclass=PluginCriterionConfig)
class PluginCriterion(LabelSmoothedCrossEntropyCriterion):
    """The stock criterion with one more option."""

    def __init__(
        self,
        task,
        sentence_avg,
        label_smoothing,
        ignore_prefix_size=0,
        report_accuracy=False,
        extra_weight=0.1,
    ):
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        self.extra_weight = extra_weight


@dataclass
class PluginTaskConfig(TranslationConfig):
    """Options of the task."""

    plugin_note: str = field(default="", metadata={"help": "a note"})


@register_task("plugin_translation", dataclass=PluginTaskConfig)
class PluginTask(TranslationTask):
    """The stock task with one more option."""


@register_model("plugin_transformer")
class PluginTransformer(TransformerModel):
    """The stock model with one more option, in the old style."""

    @classmethod
    def add_args(cls, parser):
        """Add the options."""
        super().add_args(parser)
        parser.add_argument("--plugin-scale", type=float, default=1.0)


@register_model_architecture("plugin_transformer", "plugin_transformer")
def plugin_transformer(args):
    """Fill in the defaults."""
    base_architecture(args)
