"""``dual_supervised_transformer``: a stock transformer for each direction, trained in one run.

Options, parameters and functions are those of fairseq's ``transformer``, once for each direction;
the directions share nothing. What dual supervised learning is compared with, and what it trains.
"""

from types import SimpleNamespace
from typing import Dict, List

from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import (
    TransformerModel,
    base_architecture,
    transformer_iwslt_de_en,
    transformer_wmt_en_de,
    transformer_wmt_en_de_big,
)
from torch import nn

from ..streams.model import StreamsModel


@register_model("dual_supervised_transformer")
class DualSupervisedTransformerModel(StreamsModel):
    """A stock model for each direction.

    Args:
        models: {pair: transformer}.
        dictionaries: {lang: dictionary}.
        max_positions: (source, target) limits in tokens.
    """

    def __init__(self, models: Dict[str, TransformerModel], dictionaries, max_positions):
        super().__init__(dictionaries, list(models), max_positions)
        self.models = nn.ModuleDict(models)

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

    def forward(self, src_tokens, src_lengths, prev_output_tokens, pair=None, **_unused):
        """Teacher-forced logits (B, T, V) of the direction ``pair`` (default: the first)."""
        return self.models[pair or self.pairs[0]](src_tokens, src_lengths, prev_output_tokens)

    def direction(self, pair: str, need_attention: bool = False) -> TransformerModel:
        """The stock model of one direction; ValueError for one that is not trained."""
        if pair not in self.models:
            raise ValueError(f"direction {pair!r}: the model has {', '.join(self.models)}")
        return self.models[pair]

    def pair_parameters(self, pair: str) -> List[str]:
        """Names of the parameters that training on ``pair`` moves."""
        return [name for name, _ in self.named_parameters() if name.startswith(f"models.{pair}.")]


for _name, _defaults in {
    "": base_architecture,
    "_iwslt_de_en": transformer_iwslt_de_en,
    "_wmt_en_de": transformer_wmt_en_de,
    "_wmt_en_de_big": transformer_wmt_en_de_big,
}.items():
    _name = f"dual_supervised_transformer{_name}"
    register_model_architecture("dual_supervised_transformer", _name)(_defaults)
