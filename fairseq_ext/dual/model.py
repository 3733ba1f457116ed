"""The dual model: one component per language, for every direction between them.

Dimensions as in modules.py. What fairseq needs of a model is here; the equations are there.
"""

from typing import Dict, List, Optional

from fairseq.models import register_model
from torch import nn

from ..common.layers import embedding as make_embedding
from ..streams.direction import Direction, SourceSide, TargetSide
from ..streams.model import StreamsModel
from .config import DualTransformerConfig, register_architectures
from .modules import Component, Size


@register_model("dual_transformer", dataclass=DualTransformerConfig)
class DualTransformerModel(StreamsModel):
    """Components phi_Z for every language Z; any direction X -> Y is phi_X then phi_Y.

    Args:
        components: {lang: component}.
        dictionaries: {lang: dictionary}.
        pairs: the directions it is trained for, e.g. ["de-en", "en-de"].
        max_positions: (source, target) limits in tokens.
    """

    def __init__(self, components: Dict[str, Component], dictionaries, pairs, max_positions):
        super().__init__(dictionaries, pairs, max_positions)
        self.components = nn.ModuleDict(components)

    @classmethod
    def build_model(cls, cfg: DualTransformerConfig, task):
        size = Size(
            embed_dim=cfg.embed_dim,
            ffn_dim=cfg.ffn_embed_dim,
            heads=cfg.attention_heads,
            layers=cfg.layers,
            dropout=cfg.dropout,
            attention_dropout=cfg.attention_dropout,
            activation_dropout=cfg.activation_dropout,
            normalize_before=cfg.normalize_before,
        )
        pairs = cfg.lang_pairs.split(",")
        langs = list(dict.fromkeys(lang for pair in pairs for lang in pair.split("-")))
        dictionaries = {lang: task.dictionaries[lang] for lang in langs}
        embedding: Optional[nn.Embedding] = None
        if cfg.share_all_embeddings:
            check_joined(dictionaries)
            joined = dictionaries[langs[0]]
            embedding = make_embedding(len(joined), size.embed_dim, joined.pad())
        components = {
            lang: Component(size, len(dictionary), dictionary.pad(), embedding)
            for lang, dictionary in dictionaries.items()
        }
        limits = (cfg.max_source_positions, cfg.max_target_positions)
        return cls(components, dictionaries, pairs, limits)

    def forward(self, src_tokens, src_lengths, prev_output_tokens, pair=None, **_unused):
        """Teacher-forced logits (B, T, V) of the direction ``pair`` (default: the first)."""
        source, target = (pair or self.pairs[0]).split("-")
        context, padding = self.components[source].encode(src_tokens)
        states, _ = self.components[target].decode(prev_output_tokens, context, padding)
        return self.components[target].logits(states), {}

    def direction(self, pair: str, need_attention: bool = False) -> Direction:
        """An encoder-decoder model of one direction that shares this model's parameters.

        With ``need_attention`` its decoder returns the last block's attention over the source,
        averaged over heads, as alignments need it. ValueError for a language without component.
        """
        source, target = pair.split("-")
        for lang in (source, target):
            if lang not in self.components:
                raise ValueError(
                    f"direction {pair!r}: the model has components for "
                    f"{', '.join(self.components)}, not for {lang!r}"
                )
        return Direction(
            SourceSide(self.components[source], self.dictionaries[source], self._max_positions[0]),
            TargetSide(
                self.components[target],
                self.dictionaries[target],
                self._max_positions[1],
                need_attention,
            ),
        ).train(self.training)

    def pair_parameters(self, pair: str) -> List[str]:
        """Names of the parameters that training on ``pair`` moves: its source needs no phi_z."""
        source, target = pair.split("-")
        used = {id(parameter) for parameter in self.components[target].parameters()}
        for name, parameter in self.components[source].named_parameters():
            if "context_attention" not in name:
                used.add(id(parameter))
        return [name for name, parameter in self.named_parameters() if id(parameter) in used]


def check_joined(dictionaries) -> None:
    """Raise ValueError unless all languages have the same dictionary."""
    langs: List[str] = list(dictionaries)
    first = dictionaries[langs[0]]
    for lang in langs[1:]:
        other = dictionaries[lang]
        if first != other:
            raise ValueError(
                f"--share-all-embeddings: the dictionaries of {langs[0]} ({len(first)} entries) "
                f"and {lang} ({len(other)} entries) differ; binarise with --joined-dictionary"
            )


register_architectures()
