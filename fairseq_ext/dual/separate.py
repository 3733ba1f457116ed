"""A model for each direction, trained in one run; the directions share nothing.

What dual supervised learning is compared with, and what it trains: ``dual_supervised_transformer``,
two of fairseq's ``transformer`` with its options, parameters and functions, and
``dual_supervised_lstm_classifier``, the classifier and the conditional language model that
``dual_lstm_classifier`` is with --one-way.
"""

from types import SimpleNamespace
from typing import Dict, List

from fairseq.models import BaseFairseqModel, register_model, register_model_architecture
from fairseq.models.transformer import (
    TransformerModel,
    base_architecture,
    transformer_iwslt_de_en,
    transformer_wmt_en_de,
    transformer_wmt_en_de_big,
)
from torch import nn

from ..streams.model import StreamsModel
from .lstm_config import DualLSTMConfig, register_architectures
from .lstm_model import DualLSTMClassifierModel
from .reverse import one_direction


class SeparateModels(StreamsModel):
    """A model for each direction.

    Args:
        models: {pair: model}.
        dictionaries: {lang: dictionary}.
        max_positions: (source, target) limits in tokens.
    """

    def __init__(self, models: Dict[str, BaseFairseqModel], dictionaries, max_positions):
        super().__init__(dictionaries, list(models), max_positions)
        self.models = nn.ModuleDict(models)

    def forward(self, src_tokens, src_lengths, prev_output_tokens, pair=None, **_unused):
        """Teacher-forced logits (B, T, V) of the direction ``pair`` (default: the first)."""
        return self.models[pair or self.pairs[0]](src_tokens, src_lengths, prev_output_tokens)

    def direction(self, pair: str, need_attention: bool = False) -> BaseFairseqModel:
        """The encoder-decoder model of one direction; ValueError for one that is not trained."""
        if pair not in self.models:
            raise ValueError(f"direction {pair!r}: the model has {', '.join(self.models)}")
        return one_direction(self.models[pair], pair)

    def pair_parameters(self, pair: str) -> List[str]:
        """Names of the parameters that training on ``pair`` moves."""
        own = self.models[pair].named_parameters()
        return [f"models.{pair}.{name}" for name, one in own if one.requires_grad]


@register_model("dual_supervised_transformer")
class DualSupervisedTransformerModel(SeparateModels):
    """A stock transformer for each direction."""

    @staticmethod
    def add_args(parser):
        TransformerModel.add_args(parser)

    @classmethod
    def build_model(cls, args, task):
        """ValueError for ``--adaptive-softmax-cutoff``, which gives no logits."""
        if getattr(args, "adaptive_softmax_cutoff", None):
            raise ValueError(
                f"--adaptive-softmax-cutoff {args.adaptive_softmax_cutoff}: allowed: leave it out"
            )
        models, dictionaries = {}, {}
        for pair in args.lang_pairs.split(","):
            source, target = (task.dictionaries[lang] for lang in pair.split("-"))
            sides = SimpleNamespace(source_dictionary=source, target_dictionary=target)
            models[pair] = TransformerModel.build_model(args, sides)
            dictionaries.update(zip(pair.split("-"), (source, target)))
        return cls(models, dictionaries, (args.max_source_positions, args.max_target_positions))


@register_model("dual_supervised_lstm_classifier", dataclass=DualLSTMConfig)
class DualSupervisedLSTMClassifierModel(SeparateModels):
    """A classifier and a conditional language model, each with an LSTM and an E_y of its own."""

    @classmethod
    def build_model(cls, cfg: DualLSTMConfig, task):
        """ValueError as for ``dual_lstm_classifier``."""
        models = {
            pair: DualLSTMClassifierModel.of_pairs([pair], cfg, task)
            for pair in cfg.lang_pairs.split(",")
        }
        first = next(iter(models.values()))
        return cls(models, first.dictionaries, first.max_positions())

    @property
    def label_lang(self) -> str:
        """The side of the labels."""
        return self.models[self.pairs[0]].label_lang


for _name, _defaults in {
    "": base_architecture,
    "_iwslt_de_en": transformer_iwslt_de_en,
    "_wmt_en_de": transformer_wmt_en_de,
    "_wmt_en_de_big": transformer_wmt_en_de_big,
}.items():
    _name = f"dual_supervised_transformer{_name}"
    register_model_architecture("dual_supervised_transformer", _name)(_defaults)
register_architectures("dual_supervised_lstm_classifier")
