"""The dual model: one component per language, for every direction between them.

Dimensions as in modules.py. What fairseq needs of a model is here; the equations are there.
"""

from typing import Dict, List, Optional

import torch
from fairseq.models import (
    BaseFairseqModel,
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
    register_model,
)
from torch import Tensor, nn

from .config import DualTransformerConfig, register_architectures
from .modules import Component, Size, make_embedding, reorder_cache

CACHE = "dual"


class ComponentEncoder(FairseqEncoder):
    """A component in its encoding role, as fairseq's generator sees it.

    The encoder's output is kept once per sentence; ``rows`` says which sentence each row of the
    beam belongs to.
    """

    def __init__(self, component: Component, dictionary, max_positions: int):
        super().__init__(dictionary)
        self.component, self._max_positions = component, max_positions

    def forward(self, src_tokens, src_lengths=None, **_unused) -> Dict[str, Tensor]:
        states, padding = self.component.encode(src_tokens)
        rows = torch.arange(states.size(0), device=states.device)
        return {"states": states, "padding": padding, "rows": rows}

    def reorder_encoder_out(self, encoder_out: Dict[str, Tensor], new_order: Tensor):
        return {**encoder_out, "rows": encoder_out["rows"].index_select(0, new_order)}

    def max_positions(self):
        return self._max_positions


class ComponentDecoder(FairseqIncrementalDecoder):
    """A component in its decoding role, as fairseq's generator sees it."""

    def __init__(
        self, component: Component, dictionary, max_positions: int, need_attention: bool = False
    ):
        super().__init__(dictionary)
        self.component, self._max_positions = component, max_positions
        self.need_attention = need_attention

    def forward(self, prev_output_tokens, encoder_out=None, incremental_state=None, **_unused):
        """(R, T) tokens -> logits (R, T, V), or (R, 1, V) with an incremental state."""
        cache = None if incremental_state is None else incremental_state.setdefault(CACHE, {})
        if cache:
            context, padding = encoder_out["states"], encoder_out["padding"]  # not read again
        else:
            context, padding = self._by_sentence(encoder_out, prev_output_tokens.size(0))
        states, attention = self.component.decode(
            prev_output_tokens, context, padding, cache, self.need_attention
        )
        return self.component.logits(states), {"attn": [attention]}

    @staticmethod
    def _by_sentence(encoder_out: Dict[str, Tensor], rows: int):
        """Context and padding such that equally many neighbouring rows belong to each sentence."""
        states, padding = encoder_out["states"], encoder_out["padding"]
        wanted = encoder_out["rows"]  # (R,)
        beam = rows // states.size(0)
        expected = torch.arange(states.size(0), device=wanted.device).repeat_interleave(beam)
        if torch.equal(wanted, expected):
            return states, padding
        return states.index_select(0, wanted), padding.index_select(0, wanted)

    def reorder_incremental_state(self, incremental_state, new_order):
        reorder_cache(incremental_state.get(CACHE, {}), new_order)

    def max_positions(self):
        return self._max_positions


class Direction(FairseqEncoderDecoderModel):
    """One direction of a dual model: its source's component encodes, its target's decodes."""

    def __init__(self, encoder: ComponentEncoder, decoder: ComponentDecoder):
        super().__init__(encoder, decoder)

    def forward(self, src_tokens, src_lengths, prev_output_tokens, **_unused):
        return super().forward(src_tokens, src_lengths, prev_output_tokens)


@register_model("dual_transformer", dataclass=DualTransformerConfig)
class DualTransformerModel(BaseFairseqModel):
    """Components phi_Z for every language Z; any direction X -> Y is phi_X then phi_Y.

    Args:
        components: {lang: component}.
        dictionaries: {lang: dictionary}.
        pairs: the directions it is trained for, e.g. ["de-en", "en-de"].
        max_positions: (source, target) limits in tokens.
    """

    def __init__(self, components: Dict[str, Component], dictionaries, pairs, max_positions):
        super().__init__()
        self.components = nn.ModuleDict(components)
        self.dictionaries, self.pairs = dictionaries, list(pairs)
        self._max_positions = tuple(max_positions)

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

    def get_normalized_probs(self, net_output, log_probs, sample=None):
        logits = net_output[0].float()
        return logits.log_softmax(dim=-1) if log_probs else logits.softmax(dim=-1)

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
            ComponentEncoder(
                self.components[source], self.dictionaries[source], self._max_positions[0]
            ),
            ComponentDecoder(
                self.components[target],
                self.dictionaries[target],
                self._max_positions[1],
                need_attention,
            ),
        ).train(self.training)

    def max_positions(self):
        return self._max_positions

    def max_decoder_positions(self):
        return self._max_positions[1]


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
