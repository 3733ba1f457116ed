"""The multi-way model: an encoder and a decoder per language around one attention.

What fairseq needs of a model is here; the equations are in modules.py.
"""

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, cast

from fairseq.data import Dictionary
from fairseq.models import register_model
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..common.decoding import Cache
from ..streams.direction import Direction, SourceSide, TargetSide
from ..streams.language_pair import LanguagePair, sides
from ..streams.model import StreamsModel
from .config import MultiwayConfig, encoder_sizes, encoder_types, register_architectures, size_of
from .modules import MultiwayDecoder, MultiwayEncoder, SharedAttention, decode, decode_all

# annotations (B, S, A) and padding (B, S) of a source
Encoded = Tuple[Tensor, Tensor]


class DecoderWithAttention(nn.Module):
    """A decoder with the shared attention."""

    def __init__(self, decoder: MultiwayDecoder, attention: SharedAttention):
        super().__init__()
        self.decoder, self.attention = decoder, attention

    def logits(self, readout: Tensor) -> Tensor:
        """Return the logits: (R, T, O) -> (R, T, V)."""
        return self.decoder.logits(readout)


class MultiwayTargetSide(TargetSide):
    """Decodes from one source or, averaged early, from several."""

    def decode(
        self,
        prev_tokens: Tensor,
        encoded: List[Encoded],
        cache: Optional[Cache],
        encoder_out: Dict[str, Any],
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the readout (R, T, O) and, where it is needed, the attention (R, T, S).

        S counts positions of the joined sources.
        """
        path = cast(DecoderWithAttention, self.module)
        readout, weights = decode(path.decoder, path.attention, encoded, prev_tokens, cache)
        if not self.need_attention:
            return readout, None
        rows, length = encoder_out["rows"], encoder_out["length"]
        total = weights[0].new_zeros(*weights[0].shape[:2], length)  # (R, T, S)
        # alignments are asked for in positions of the line that the user typed
        for source_weights, positions in zip(weights, encoder_out["positions"]):
            # (R, T, S'): where each word of this source stands in the line
            index = positions.index_select(0, rows).unsqueeze(1).expand_as(source_weights)
            # early averaging: equal shares
            total.scatter_add_(2, index, source_weights / len(weights))
        return readout, total


def select_source(
    tokens: Tensor, number: Optional[int], pad: int, eos: int
) -> Tuple[Tensor, Tensor]:
    """Return the words of a source among several in a row, each of which ends in eos.

    Args:
        tokens: (B, S), padded at either end.
        number: which source; None if there is but one.

    Returns:
        its words (B, S'), padded at the end, and their positions in ``tokens`` (B, S').
    """
    chosen = tokens.ne(pad)  # (B, S) bool
    if number is not None:
        ends = tokens.eq(eos).long()
        # how many sentences have ended before a word says which source it belongs to
        chosen &= (ends.cumsum(dim=1) - ends).eq(number)
    # of a single source some row has no padding: nothing waits for the device
    width = tokens.size(1) if number is None else int(chosen.sum(dim=1).max())
    # a stable sort moves what was chosen to the front, in its order
    positions = (~chosen).long().argsort(dim=1, stable=True)[:, :width]
    words = tokens.gather(1, positions)
    return words.masked_fill(~chosen.gather(1, positions), pad), positions


class MultiwaySourceSide(SourceSide):
    """The encoder of the source with this ``number`` (None: of the only one)."""

    def __init__(
        self,
        module: MultiwayEncoder,
        dictionary: Dictionary,
        max_positions: int,
        number: Optional[int],
    ):
        super().__init__(module, dictionary, max_positions)
        self.number = number

    def forward(
        self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None, **_unused: Any
    ) -> Dict[str, Any]:
        """Return the encoded source, with the positions of its words in ``src_tokens``."""
        pad, eos = self.dictionary.pad(), self.dictionary.eos()
        words, positions = select_source(src_tokens, self.number, pad, eos)
        out = super().forward(words)
        return {**out, "positions": [positions], "length": src_tokens.size(1)}


class MultiSourceSide(SourceSide):
    """All sources, encoded side by side for one decoder (early averaging, Firat et al. 2016b)."""

    def __init__(self, encoders: List[MultiwaySourceSide]):
        super().__init__(encoders[0].module, encoders[0].dictionary, encoders[0].max_positions())
        self.encoders = nn.ModuleList(encoders)

    def forward(
        self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None, **_unused: Any
    ) -> Dict[str, Any]:
        """Return what ``MultiwaySourceSide`` does, with lists over all sources."""
        parts = [encoder(src_tokens) for encoder in self.encoders]
        # of each source; the number of rows and the length of the line are the same for all
        listed = {name: [part[name][0] for part in parts] for name in ("encoded", "positions")}
        return {**parts[0], **listed}


class BackwardDecoders(nn.Module):
    """The backward network of the criterion ``twin``: decoders and an attention of its own.

    Args:
        decoders: {target language: decoder}.
        attention: what they share.
        state_size: H.
    """

    def __init__(
        self, decoders: Mapping[str, MultiwayDecoder], attention: SharedAttention, state_size: int
    ):
        super().__init__()
        self.decoders = cast(Mapping[str, MultiwayDecoder], nn.ModuleDict(dict(decoders)))
        self.attention = attention
        self.state_size = state_size

    def forward(
        self, tokens: Tensor, condition: Tuple[str, List[Encoded]]
    ) -> Tuple[Tensor, Tensor]:
        """Return logits (B, T, V) and z (B, T, H).

        Args:
            tokens: (B, T).
            condition: the target language and the encoded sources.
        """
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
        encoders: Dict[str, MultiwayEncoder],
        decoders: Dict[str, MultiwayDecoder],
        attention: SharedAttention,
        dictionaries: Dict[str, Dictionary],
        pairs: List[str],
        max_positions: Tuple[int, int],
    ):
        super().__init__(dictionaries, pairs, max_positions)
        self.encoders = cast(Mapping[str, MultiwayEncoder], nn.ModuleDict(encoders))
        self.decoders = cast(Mapping[str, MultiwayDecoder], nn.ModuleDict(decoders))
        self.attention = attention

    @classmethod
    def build_model(cls, cfg: MultiwayConfig, task: FairseqTask) -> "MultiwayModel":
        """Return a model with the components that --lang-pairs names."""
        size, pairs = size_of(cfg), list(task.pairs)
        # a language may be a source of several pairs, and has one encoder
        sources, targets = sides(pairs)
        # encoders may differ in width and in kind (Sec. 4): the attention sees A alone
        units = encoder_sizes(cfg.encoder_hidden_size, sources, size.hidden_size)
        kinds = encoder_types(cfg.encoder_type, sources)
        dictionaries = {lang: task.dictionaries[lang] for lang in sources + targets}

        def vocabulary(lang: str) -> Tuple[int, int]:
            """Return the number of words and the padding index."""
            return len(dictionaries[lang]), dictionaries[lang].pad()

        return cls(
            {
                lang: MultiwayEncoder(size, units[lang], *vocabulary(lang), kinds[lang])
                for lang in sources
            },
            {lang: cls.build_decoder(cfg, *vocabulary(lang)) for lang in targets},
            SharedAttention(size),
            dictionaries,
            pairs,
            (cfg.max_source_positions, cfg.max_target_positions),
        )

    @classmethod
    def build_decoder(
        cls, cfg: MultiwayConfig, vocab_size: int, padding_index: int
    ) -> MultiwayDecoder:
        """Return the decoder of a target language."""
        return MultiwayDecoder(size_of(cfg), vocab_size, padding_index)

    @classmethod
    def build_backward(cls, cfg: MultiwayConfig, task: FairseqTask) -> BackwardDecoders:
        """Return the backward network for the criterion ``twin``; its contract.py says more."""
        # its encoders are dropped: both networks read the forward model's annotations
        model = cls.build_model(cfg, task)
        return BackwardDecoders(model.decoders, model.attention, cfg.hidden_size)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        pair: Optional[str] = None,
        twin: Optional[Callable[[Tensor, Any], Any]] = None,
        **_unused: Any,
    ) -> Any:
        """Return teacher-forced logits (B, T, V) of the direction ``pair`` (default: the first)."""
        parsed = LanguagePair.parse(pair or self.pairs[0])
        # several sources are read from one row, which their directions take apart
        if len(parsed.sources) > 1:
            return self.direction(str(parsed))(src_tokens, src_lengths, prev_output_tokens)
        source, target = parsed
        # training batches are of one pair: no direction object is needed
        encoded = [self.encoders[source].encode(src_tokens)]
        decoder = self.decoders[target]
        states, readout, _ = decode_all(decoder, self.attention, encoded, prev_output_tokens)
        output: Tuple[Tensor, Dict[str, Any]] = (decoder.logits(readout), {})
        return output if twin is None else (output, twin(states, (target, encoded)))

    def direction(self, pair: str, need_attention: bool = False) -> Direction:
        """Return an encoder-decoder model of one direction that shares this model's parameters.

        Any encoder goes with any decoder; "de+fr-en" averages its sources early. ValueError for a
        language without an encoder or decoder.
        """
        parsed = LanguagePair.parse(pair)
        encoders = self._sources(parsed.sources)
        encoder = encoders[0] if len(encoders) == 1 else MultiSourceSide(encoders)
        return self._direction(encoder, parsed.target, need_attention)

    def directions(self, pair: str, need_attention: bool = False) -> List[Direction]:
        """Return one direction for each source of "de+fr-en": an ensemble of them averages late."""
        parsed = LanguagePair.parse(pair)
        encoders = self._sources(parsed.sources)
        return [self._direction(encoder, parsed.target, need_attention) for encoder in encoders]

    def _sources(self, langs: Sequence[str]) -> List[MultiwaySourceSide]:
        """Return the encoders of the source languages, numbered where there are several."""
        numbers: Sequence[Optional[int]] = range(len(langs)) if len(langs) > 1 else [None]
        return [self._source(lang, number) for lang, number in zip(langs, numbers)]

    def _source(self, lang: str, number: Optional[int]) -> MultiwaySourceSide:
        """Return the encoder of a language; ValueError if there is none."""
        if lang not in self.encoders:
            raise ValueError(
                f"source {lang!r}: the model has encoders for {', '.join(self.encoders)}"
            )
        return MultiwaySourceSide(
            self.encoders[lang], self.dictionaries[lang], self._max_positions[0], number
        )

    def _direction(self, encoder: SourceSide, lang: str, need_attention: bool) -> Direction:
        """Return the direction to a target language; ValueError for one without a decoder."""
        if lang not in self.decoders:
            raise ValueError(
                f"target {lang!r}: the model has decoders for {', '.join(self.decoders)}"
            )
        path = DecoderWithAttention(self.decoders[lang], self.attention)
        decoder = MultiwayTargetSide(
            path, self.dictionaries[lang], self._max_positions[1], need_attention
        )
        # the mode is that of this model: directions are built after .eval()
        return Direction(encoder, decoder).train(self.training)

    def parameter_groups(self) -> Dict[str, List[str]]:
        """Return the names of parameters by part: shared, output, encoder.LANG, decoder.LANG.

        output: the readouts and softmaxes of all decoders, which decoder.LANG holds as well.
        """
        groups: Dict[str, List[str]] = {"shared": [], "output": []}
        for name, _ in self.named_parameters():
            # encoders.LANG.., decoders.LANG.. or attention..
            part, lang = name.split(".")[:2]
            if part == "attention":
                # the attention has no language in its names
                groups["shared"].append(name)
                continue
            groups.setdefault(f"{part[:-1]}.{lang}", []).append(name)
            if part == "decoders" and name.split(".")[2].startswith(("readout", "output")):
                groups["output"].append(name)
        return groups

    def pair_parameters(self, pair: str) -> List[str]:
        """Return the names of the parameters that training on ``pair`` moves."""
        source, target = LanguagePair.parse(pair)
        groups = self.parameter_groups()
        return groups["shared"] + groups[f"encoder.{source}"] + groups[f"decoder.{target}"]


register_architectures()
