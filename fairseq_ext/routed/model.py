"""The routed model and its baselines as fairseq sees them.

The equations are in modules.py (the units) and encoder_decoder.py (what stands around them).
"""

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, cast

import torch
from fairseq.data import Dictionary
from fairseq.models import register_model
from torch import Tensor, nn

from ..common.decoding import Cache
from ..common.layers import embedding
from ..common.padding import leading_padding, put_back
from ..streams.direction import Direction, SourceSide, TargetSide
from ..streams.language_pair import LanguagePair, sides
from ..streams.model import StreamsModel
from ..streams.task import StreamsTask
from .config import (
    SHARED_BLOCKS,
    RoutedConfig,
    check_sharing,
    register_architectures,
    size_of,
)
from .encoder_decoder import Decoder, Encoder, TargetVocabulary, decode
from .modules import BidirectionalUnit, RoutedUnit, UnitStack


class EncodingPath(nn.Module):
    """The encoder with a source vocabulary's embedding, for one task."""

    def __init__(self, encoder: Encoder, table: nn.Embedding, task: str):
        super().__init__()
        self.encoder, self.table, self.task = encoder, table, task

    def encode(self, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        """Return annotations (B, S, C) and padding (B, S) of tokens (B, S)."""
        return self.encoder(self.table, tokens, self.task)[:2]


class DecodingPath(nn.Module):
    """The decoder with a target vocabulary's part, for one task."""

    def __init__(self, decoder: Decoder, target: TargetVocabulary, task: str):
        super().__init__()
        self.decoder, self.target, self.task = decoder, target, task

    def decode(
        self,
        prev_tokens: Tensor,
        states: Tensor,
        padding: Tensor,
        cache: Optional[Cache],
        need_weights: bool,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the readout (R, T, O_L) and, where it is needed, the attention (R, T, S)."""
        encoded = states, padding
        readout, weights = decode(self.decoder, self.target, encoded, prev_tokens, self.task, cache)
        return readout, weights if need_weights else None

    def logits(self, readout: Tensor) -> Tensor:
        """Return the logits (R, T, V) of a readout."""
        return self.target.output(readout)


class RoutedSourceSide(SourceSide):
    """A source side that remembers where the sentences began ("leading" (B, 1))."""

    def forward(
        self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None, **_unused: Any
    ) -> Dict[str, Any]:
        """Return the encoded source, with the number of paddings in front of each sentence."""
        leading = leading_padding(src_tokens, self.dictionary.pad())
        return {**super().forward(src_tokens), "leading": leading}


class RoutedTargetSide(TargetSide):
    """A target side whose attention is over the source tokens where they stood.

    The task token has none: it is no word of the sentence that a target word could be aligned to.
    """

    def decode(
        self,
        prev_tokens: Tensor,
        encoded: List[Tuple[Tensor, Tensor]],
        cache: Optional[Cache],
        encoder_out: Dict[str, Any],
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return the readout (R, T, O_L) and, where it is needed, the attention (R, T, S)."""
        readout, weights = super().decode(prev_tokens, encoded, cache, encoder_out)
        if weights is not None:
            # words of the target are aligned with words, and the first source token is none
            weights = torch.cat([torch.zeros_like(weights[..., :1]), weights[..., 1:]], dim=2)
            # alignments count positions of the tokens as fairseq has padded them
            leading = encoder_out["leading"].index_select(0, encoder_out["rows"])
            weights = put_back(weights, leading, 2)
        return readout, weights


@register_model("routed_gru", dataclass=RoutedConfig)
class RoutedModel(StreamsModel):
    """Tasks that share blocks behind a router or, in the baselines, layers. A task is a lang pair.

    Args:
        encoder: units for all tasks.
        decoder: attention, units and readout for all tasks.
        sources: {source language: embedding}.
        targets: {target language: embedding and softmax}.
        dictionaries: {lang: dictionary}.
        pairs: the tasks, e.g. ["en-vi", "en-ner"].
        max_positions: (source, target) limits in tokens.
    """

    def __init__(
        self,
        encoder: Encoder,
        decoder: Decoder,
        sources: Dict[str, nn.Embedding],
        targets: Dict[str, TargetVocabulary],
        dictionaries: Dict[str, Dictionary],
        pairs: List[str],
        max_positions: Tuple[int, int],
    ):
        super().__init__(dictionaries, pairs, max_positions)
        self.encoder, self.decoder = encoder, decoder
        self.sources = cast(Mapping[str, nn.Embedding], nn.ModuleDict(sources))
        self.targets = cast(Mapping[str, TargetVocabulary], nn.ModuleDict(targets))

    @classmethod
    def build_model(cls, cfg: RoutedConfig, task: StreamsTask) -> "RoutedModel":
        """Return the model of a config; fairseq calls this."""
        # a trained model is built whatever its stored options say: older versions ignored some
        if not task.from_checkpoint:
            check_sharing(cfg)
        size, pairs = size_of(cfg), task.pairs
        units, decoder_units = build_units(cfg, pairs)
        encoder = Encoder(units, size.dropout)
        decoder = Decoder(size, decoder_units, encoder.output_size)
        sources, targets = sides(pairs)
        dictionaries = {lang: task.dictionaries[lang] for lang in sources + targets}
        vocabulary = {lang: (len(words), words.pad()) for lang, words in dictionaries.items()}

        def source(lang: str) -> nn.Embedding:
            words, pad = vocabulary[lang]
            return embedding(words, size.embed_dim, pad)

        return cls(
            encoder,
            decoder,
            {lang: source(lang) for lang in sources},
            {
                lang: TargetVocabulary(size, decoder.readout_size, *vocabulary[lang])
                for lang in targets
            },
            dictionaries,
            pairs,
            # of the training: fairseq-generate has a task with limits of its own
            (cfg.max_source_positions, cfg.max_target_positions),
        )

    def _check(self, pair: str) -> str:
        """Return the pair; ValueError if the model has no such task."""
        if pair not in self.pairs:
            raise ValueError(f"pair {pair!r}: the model has {', '.join(self.pairs)}")
        return pair

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor],
        prev_output_tokens: Tensor,
        pair: Optional[str] = None,
        **_unused: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Return the teacher-forced logits (B, T, V) of the task ``pair`` (default: the first)."""
        pair = self._check(pair or self.pairs[0])
        source, target = LanguagePair.parse(pair)
        # tau of the encoder is for analysis alone
        encoded = self.encoder(self.sources[source], src_tokens, pair)[:2]
        part = self.targets[target]
        readout, _ = decode(self.decoder, part, encoded, prev_output_tokens, pair)
        return part.output(readout), {}

    def direction(self, pair: str, need_attention: bool = False) -> Direction:
        """Return an encoder-decoder model of one task that shares this model's parameters."""
        source, target = LanguagePair.parse(self._check(pair))
        encoder = RoutedSourceSide(
            EncodingPath(self.encoder, self.sources[source], pair),
            self.dictionaries[source],
            self._max_positions[0],
        )
        decoder = RoutedTargetSide(
            DecodingPath(self.decoder, self.targets[target], pair),
            self.dictionaries[target],
            self._max_positions[1],
            need_attention,
        )
        return Direction(encoder, decoder).train(self.training)

    def router_weights(
        self, src_tokens: Tensor, prev_output_tokens: Tensor, pair: str
    ) -> Dict[str, Tensor]:
        """Return tau of every unit (Eq. 2), for analysis (Fig. 2).

        Args:
            src_tokens: (B, S) as the task's dataset makes them, the task token first.
            prev_output_tokens: (B, T).
            pair: the task.

        Returns:
            {"encoder.L.forwards": (B, S, n), "encoder.L.backwards": (B, S, n), "decoder.L":
            (B, T, n)} for the layers L = 0, 1, ..; position s belongs to token s. tau is zero at
            padding, so that sums over positions are sums over tokens. ValueError for a model
            without routers.
        """
        source, target = LanguagePair.parse(self._check(pair))
        table, part = self.sources[source], self.targets[target]
        annotations, padding, of_encoder = self.encoder(table, src_tokens, pair)
        # (B, S, n) of the first unit, forwards; n is 0 in the baselines
        if not of_encoder[0][0].size(2):
            raise ValueError("--sharing layers: the model has no router")
        encoded = self.decoder.prepare(annotations, padding, pair)
        vectors = self.decoder.embed(part, prev_output_tokens)
        of_decoder = self.decoder.fused(vectors, encoded, pair).routing
        leading = leading_padding(src_tokens, cast(int, table.padding_idx))  # (B, 1)
        weights: Dict[str, Tensor] = {}
        # the encoder moves padding to the end; callers count positions in their own tokens
        for layer, both in enumerate(of_encoder):
            for way, tau in zip(("forwards", "backwards"), both):
                tau = tau.masked_fill(padding.unsqueeze(2), 0.0)
                weights[f"encoder.{layer}.{way}"] = put_back(tau, leading, 1)
        blank = prev_output_tokens.eq(cast(int, part.embedding.padding_idx)).unsqueeze(2)
        for layer, tau in enumerate(of_decoder):
            weights[f"decoder.{layer}"] = tau.masked_fill(blank, 0.0)
        return weights

    def parameter_groups(self) -> Dict[str, List[str]]:
        """Return the names of the parameters of each part of the model.

        The parts are shared, task.PAIR, source.LANG, target.LANG and output. shared: routers,
        shared blocks or layers, attention and readout. output: the softmaxes of all targets, which
        target.LANG holds as well.
        """
        groups: Dict[str, List[str]] = {"shared": [], "output": []}
        for pair in self.pairs:
            groups[f"task.{pair}"] = []
        for name, _ in self.named_parameters():
            parts = name.split(".")
            if parts[0] in ("sources", "targets"):
                groups.setdefault(f"{parts[0][:-1]}.{parts[1]}", []).append(name)
                if parts[2] == "output":
                    # output is a group by itself, and a part of target.LANG
                    groups["output"].append(name)
                continue
            # "...own.PAIR..." is a block of one task, "...own.common..." one of all tasks
            owner = parts[parts.index("own") + 1] if "own" in parts else None
            groups[f"task.{owner}" if owner in self.pairs else "shared"].append(name)
        return groups

    def pair_parameters(self, pair: str) -> List[str]:
        """Return the names of the parameters that training on ``pair`` moves."""
        source, target = LanguagePair.parse(self._check(pair))
        groups = self.parameter_groups()
        # blocks of other tasks, other vocabularies: no gradient
        parts = ("shared", f"task.{pair}", f"source.{source}", f"target.{target}")
        return [name for part in parts for name in groups[part]]


def layer_owners(
    option: str, layers: int, shared: Optional[int], tasks: Sequence[str]
) -> List[Optional[Sequence[str]]]:
    """Return the owners of each layer from the bottom: the tasks, or None where all share it.

    option: "encoder" or "decoder". shared: how many of the top layers are shared; None = all.
    ValueError, naming the option, for a number out of range.
    """
    if layers < 1:
        raise ValueError(f"--{option}-layers {layers}: must be at least 1")
    shared = layers if shared is None else shared
    if not 0 <= shared <= layers:
        raise ValueError(
            f"--shared-{option}-layers {shared}: must be between 0 and --{option}-layers, {layers}"
        )
    # the bottom ones belong to the tasks
    return [tasks] * (layers - shared) + [None] * shared


def build_units(cfg: RoutedConfig, tasks: Sequence[str]) -> Tuple[UnitStack, List[RoutedUnit]]:
    """Return the encoder's and the decoder's units.

    Raises ValueError, naming the option, for sizes out of range and for --shared-encoder-layers and
    --shared-decoder-layers with --sharing blocks. With --sharing layers, --shared-blocks and
    --router-size are not read: see ``config.check_sharing``.
    """
    size, blocks = size_of(cfg), 0
    layers = {"encoder": cfg.encoder_layers, "decoder": cfg.decoder_layers}
    shared = {"encoder": cfg.shared_encoder_layers, "decoder": cfg.shared_decoder_layers}
    if str(cfg.sharing) == "blocks":
        blocks = SHARED_BLOCKS if cfg.shared_blocks is None else cfg.shared_blocks
        if blocks < 1:
            raise ValueError(
                f"--shared-blocks {blocks}: must be at least 1 (--sharing layers has none)"
            )
        for part, number in shared.items():
            if number is not None:
                raise ValueError(
                    f"--shared-{part}-layers {number}: only with --sharing layers; with --sharing "
                    "blocks every layer is shared in part"
                )
        # every unit has a block for each task
        shared = {"encoder": 0, "decoder": 0}
    owners = {part: layer_owners(part, layers[part], shared[part], tasks) for part in layers}
    options: Dict[str, Any] = dict(shared_blocks=blocks, router_size=size.router_size or None)
    encoder: List[BidirectionalUnit] = []
    decoder: List[RoutedUnit] = []
    # a layer reads the state of the one below it; the decoder's first one also the context
    inputs = size.embed_dim
    for tasks_of_layer in owners["encoder"]:
        encoder.append(BidirectionalUnit(inputs, size.hidden_size, tasks=tasks_of_layer, **options))
        inputs = encoder[-1].output_size
    # [E y_{t-1} ; c_t] (Eq. 13); c is as wide as an annotation
    inputs += size.embed_dim
    for tasks_of_layer in owners["decoder"]:
        decoder.append(RoutedUnit(inputs, size.hidden_size, tasks=tasks_of_layer, **options))
        inputs = decoder[-1].output_size
    return UnitStack(encoder, size.dropout), decoder


register_architectures()
