"""The multi-way model: an encoder and a decoder per language around one attention.

What fairseq needs of a model is here; the equations are in modules.py.
"""

from typing import Dict, List, Optional

from fairseq.models import register_model
from torch import Tensor, nn

from ..streams.direction import Direction, SourceSide, TargetSide
from ..streams.model import StreamsModel
from ..streams.schedule import sides
from .config import MultiwayConfig, encoder_sizes, register_architectures, size_of
from .modules import Decoder, Encoder, SharedAttention, decode, decode_all


class DecodingPath(nn.Module):
    """A decoder with the shared attention."""

    def __init__(self, decoder: Decoder, attention: SharedAttention):
        super().__init__()
        self.decoder, self.attention = decoder, attention

    def logits(self, readout: Tensor) -> Tensor:
        return self.decoder.logits(readout)


class MultiwayTarget(TargetSide):
    """Decodes from one source or, averaged early, from several."""

    def decode(self, prev_tokens, encoded, cache, encoder_out):
        path = self.module
        readout, weights = decode(path.decoder, path.attention, encoded, prev_tokens, cache)
        if not self.need_attention:
            return readout, None
        rows, length = encoder_out["rows"], encoder_out["length"]
        total = weights[0].new_zeros(*weights[0].shape[:2], length)  # (R, T, S)
        for own, positions in zip(weights, encoder_out["positions"]):
            index = positions.index_select(0, rows).unsqueeze(1).expand_as(own)
            total.scatter_add_(2, index, own / len(weights))
        return readout, total


def select_source(tokens: Tensor, number: Optional[int], pad: int, eos: int):
    """The words of one source among several that stand one after the other, each ending in eos.

    Args:
        tokens: (B, S), padded at either end.
        number: which source; None if there is but one.

    Returns:
        its words (B, S'), padded at the end, and their positions in ``tokens`` (B, S').
    """
    chosen = tokens.ne(pad)
    if number is not None:
        ends = tokens.eq(eos).long()
        chosen &= (ends.cumsum(dim=1) - ends).eq(number)
    width = int(chosen.sum(dim=1).max())
    positions = (~chosen).long().argsort(dim=1, stable=True)[:, :width]
    words = tokens.gather(1, positions)
    return words.masked_fill(~chosen.gather(1, positions), pad), positions


class SourceOf(SourceSide):
    """The encoder of the source with this ``number`` (None: of the only one)."""

    def __init__(self, module: nn.Module, dictionary, max_positions: int, number: Optional[int]):
        super().__init__(module, dictionary, max_positions)
        self.number = number

    def forward(self, src_tokens, src_lengths=None, **_unused):
        pad, eos = self.dictionary.pad(), self.dictionary.eos()
        words, positions = select_source(src_tokens, self.number, pad, eos)
        out = super().forward(words)
        return {**out, "positions": [positions], "length": src_tokens.size(1)}


class EarlySources(SourceSide):
    """All sources, encoded side by side for one decoder (early averaging, Firat et al. 2016b)."""

    def __init__(self, encoders: List[SourceOf]):
        super().__init__(encoders[0].module, encoders[0].dictionary, encoders[0].max_positions())
        self.encoders = nn.ModuleList(encoders)

    def forward(self, src_tokens, src_lengths=None, **_unused):
        parts = [encoder(src_tokens) for encoder in self.encoders]
        listed = {name: [part[name][0] for part in parts] for name in ("encoded", "positions")}
        return {**parts[0], **listed}


class BackwardDecoders(nn.Module):
    """The backward network of the criterion ``twin``: decoders and an attention of its own.

    Args:
        decoders: {target language: decoder}.
        attention: what they share.
        state_size: H.
    """

    def __init__(self, decoders: Dict[str, Decoder], attention: SharedAttention, state_size: int):
        super().__init__()
        self.decoders, self.attention = nn.ModuleDict(decoders), attention
        self.state_size = state_size

    def forward(self, tokens: Tensor, condition):
        """(B, T), (target language, encoded sources) -> logits (B, T, V), z (B, T, H)."""
        target, encoded = condition
        decoder = self.decoders[target]
        states, readout, _ = decode_all(decoder, self.attention, encoded, tokens)
        return decoder.logits(readout), states


@register_model("multiway_gru", dataclass=MultiwayConfig)
class MultiwayModel(StreamsModel):
    """Encoders and decoders of the languages that ``pairs`` name, and the attention they share.

    Args:
        encoders: {source language: encoder}.
        decoders: {target language: decoder}.
        attention: the shared part.
        dictionaries: {lang: dictionary}.
        pairs: the directions it is trained for, e.g. ["de-en", "en-fr"].
        max_positions: (source, target) limits in tokens.
    """

    def __init__(
        self,
        encoders: Dict[str, Encoder],
        decoders: Dict[str, Decoder],
        attention: SharedAttention,
        dictionaries,
        pairs: List[str],
        max_positions,
    ):
        super().__init__(dictionaries, pairs, max_positions)
        self.encoders, self.decoders = nn.ModuleDict(encoders), nn.ModuleDict(decoders)
        self.attention = attention

    @classmethod
    def build_model(cls, cfg: MultiwayConfig, task):
        size, pairs = size_of(cfg), cfg.lang_pairs.split(",")
        sources, targets = sides(pairs)
        units = encoder_sizes(cfg.encoder_hidden_size, sources, size.hidden_size)
        dictionaries = {lang: task.dictionaries[lang] for lang in sources + targets}

        def vocabulary(lang):
            return len(dictionaries[lang]), dictionaries[lang].pad()

        return cls(
            {lang: Encoder(size, units[lang], *vocabulary(lang)) for lang in sources},
            {lang: cls.build_decoder(cfg, *vocabulary(lang)) for lang in targets},
            SharedAttention(size),
            dictionaries,
            pairs,
            (cfg.max_source_positions, cfg.max_target_positions),
        )

    @classmethod
    def build_decoder(cls, cfg: MultiwayConfig, vocab_size: int, padding_index: int) -> Decoder:
        """The decoder of a target language."""
        return Decoder(size_of(cfg), vocab_size, padding_index)

    @classmethod
    def build_backward(cls, cfg: MultiwayConfig, task) -> BackwardDecoders:
        """For the criterion ``twin``, whose contract.py says what it and ``forward`` do."""
        model = cls.build_model(cfg, task)
        return BackwardDecoders(model.decoders, model.attention, cfg.hidden_size)

    def forward(self, src_tokens, src_lengths, prev_output_tokens, pair=None, twin=None, **_unused):
        """Teacher-forced logits (B, T, V) of the direction ``pair`` (default: the first)."""
        source, target = (pair or self.pairs[0]).split("-")
        if "+" in source:
            return self.direction(pair)(src_tokens, src_lengths, prev_output_tokens)
        encoded = [self.encoders[source].encode(src_tokens)]
        decoder = self.decoders[target]
        states, readout, _ = decode_all(decoder, self.attention, encoded, prev_output_tokens)
        output = decoder.logits(readout), {}
        return output if twin is None else (output, twin(states, (target, encoded)))

    def direction(self, pair: str, need_attention: bool = False) -> Direction:
        """An encoder-decoder model of one direction that shares this model's parameters.

        Any encoder goes with any decoder; "de+fr-en" averages its sources early. ValueError for a
        language without an encoder or decoder.
        """
        sources, target = pair.split("-")
        encoders = self._sources(sources)
        encoder = encoders[0] if len(encoders) == 1 else EarlySources(encoders)
        return self._direction(encoder, target, need_attention)

    def directions(self, pair: str, need_attention: bool = False) -> List[Direction]:
        """One direction for each source of "de+fr-en": an ensemble of them averages late."""
        sources, target = pair.split("-")
        encoders = self._sources(sources)
        return [self._direction(encoder, target, need_attention) for encoder in encoders]

    def _sources(self, names: str) -> List[SourceOf]:
        langs = names.split("+")
        numbers = range(len(langs)) if len(langs) > 1 else [None]
        return [self._source(lang, number) for lang, number in zip(langs, numbers)]

    def _source(self, lang: str, number: Optional[int]) -> SourceOf:
        if lang not in self.encoders:
            raise ValueError(
                f"source {lang!r}: the model has encoders for {', '.join(self.encoders)}"
            )
        return SourceOf(
            self.encoders[lang], self.dictionaries[lang], self._max_positions[0], number
        )

    def _direction(self, encoder: SourceSide, lang: str, need_attention: bool) -> Direction:
        if lang not in self.decoders:
            raise ValueError(
                f"target {lang!r}: the model has decoders for {', '.join(self.decoders)}"
            )
        path = DecodingPath(self.decoders[lang], self.attention)
        decoder = MultiwayTarget(
            path, self.dictionaries[lang], self._max_positions[1], need_attention
        )
        return Direction(encoder, decoder).train(self.training)

    def parameter_groups(self) -> Dict[str, List[str]]:
        """Names of parameters by part: shared, output, encoder.LANG, decoder.LANG.

        output: the readouts and softmaxes of all decoders, which decoder.LANG holds as well.
        """
        groups: Dict[str, List[str]] = {"shared": [], "output": []}
        for name, _ in self.named_parameters():
            part, lang = name.split(".")[:2]
            if part == "attention":
                groups["shared"].append(name)
                continue
            groups.setdefault(f"{part[:-1]}.{lang}", []).append(name)
            if part == "decoders" and name.split(".")[2].startswith(("readout", "output")):
                groups["output"].append(name)
        return groups

    def pair_parameters(self, pair: str) -> List[str]:
        """Names of the parameters that training on ``pair`` moves."""
        source, target = pair.split("-")
        groups = self.parameter_groups()
        return groups["shared"] + groups[f"encoder.{source}"] + groups[f"decoder.{target}"]


register_architectures()
