"""The dual model: one component per language, for every direction between them.

Dimensions as in modules.py. What fairseq needs of a model is here; the equations are there.
"""

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, cast

from fairseq.data import Dictionary
from fairseq.models import register_model
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ...common.joined_dictionary import check_joined
from ...common.layers import embedding as make_embedding
from ...streams.direction import Direction, SourceSide, TargetSide
from ...streams.language_pair import LanguagePair, languages
from ...streams.model import StreamsModel
from .config import DualTransformerConfig, register_architectures
from .modules import Component, ComponentSize
from .roles import check_trained


@register_model("dual_transformer", dataclass=DualTransformerConfig)
class DualTransformerModel(StreamsModel):
    """Components phi_Z for every language Z; any direction X -> Y is phi_X then phi_Y.

    Args:
        components: {lang: component}.
        dictionaries: {lang: dictionary}.
        pairs: the directions it is trained for, e.g. ["de-en", "en-de"].
        max_positions: (source, target) limits in tokens.
    """

    def __init__(
        self,
        components: Mapping[str, Component],
        dictionaries: Dict[str, Dictionary],
        pairs: Sequence[str],
        max_positions: Tuple[int, int],
    ):
        super().__init__(dictionaries, list(pairs), max_positions)
        # a ModuleDict, whose entries mypy takes for any modules
        self.components = cast(Mapping[str, Component], nn.ModuleDict(dict(components)))

    @classmethod
    def build_model(cls, cfg: DualTransformerConfig, task: FairseqTask) -> "DualTransformerModel":
        """Return the model; ValueError, naming the option, for what does not go together."""
        size = ComponentSize(
            embed_dim=cfg.embed_dim,
            ffn_dim=cfg.ffn_embed_dim,
            heads=cfg.attention_heads,
            layers=cfg.layers,
            dropout=cfg.dropout,
            attention_dropout=cfg.attention_dropout,
            activation_dropout=cfg.activation_dropout,
            normalize_before=cfg.normalize_before,
        )
        pairs = list(task.pairs)
        langs = languages(pairs)
        dictionaries = {lang: task.dictionaries[lang] for lang in langs}
        if cfg.share_all_embeddings and cfg.separate_softmax:
            raise ValueError(
                "--separate-softmax and --share-all-embeddings, which ties all softmaxes to the "
                "embeddings; allowed: one of them"
            )
        # one matrix object in all components: the optimiser sees a single parameter
        embedding: Optional[nn.Embedding] = None
        if cfg.share_all_embeddings:
            check_joined(dictionaries, "--share-all-embeddings")
            joined = dictionaries[langs[0]]
            embedding = make_embedding(len(joined), size.embed_dim, joined.pad())
        components = {
            lang: Component(
                size, len(dictionary), dictionary.pad(), embedding, cfg.separate_softmax
            )
            for lang, dictionary in dictionaries.items()
        }
        limits = (cfg.max_source_positions, cfg.max_target_positions)
        return cls(components, dictionaries, pairs, limits)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        pair: Optional[str] = None,
        **_unused: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Return teacher-forced logits (B, T, V) of the direction ``pair`` (default: the first)."""
        source, target = LanguagePair.parse(pair or self.pairs[0])
        # phi_X in its encoding role, then phi_Y in its decoding role (Sec. 2.1)
        context, padding = self.components[source].encode(src_tokens)
        states, _ = self.components[target].decode(prev_output_tokens, context, padding)
        return self.components[target].logits(states), {}

    def direction(self, pair: str, need_attention: bool = False) -> Direction:
        """Return an encoder-decoder model of one direction, which shares this model's parameters.

        With ``need_attention`` its decoder returns the last block's attention over the source,
        averaged over heads, as alignments need it. ValueError for a language without component,
        and for a direction with a role that was never trained.
        """
        source, target = LanguagePair.parse(pair)
        for lang in (source, target):
            if lang not in self.components:
                raise ValueError(
                    f"direction {pair!r}: the model has components for "
                    f"{', '.join(self.components)}, not for {lang!r}"
                )
        # a component that was only read with, or only written with, lacks half of its parameters
        check_trained(pair, self.pairs)
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
        """Return the names of the parameters that training on ``pair`` moves.

        Its source needs neither phi_z nor a softmax.
        """
        source, target = LanguagePair.parse(pair)
        # with --share-all-embeddings one parameter belongs to all components
        used = {id(parameter) for parameter in self.components[target].parameters()}
        for name, parameter in self.components[source].named_parameters():
            # the encoding role has the null context and predicts no words
            if "context_attention" not in name and not name.startswith("softmax."):
                used.add(id(parameter))
        return [name for name, parameter in self.named_parameters() if id(parameter) in used]


register_architectures()
