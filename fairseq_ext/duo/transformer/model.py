"""The model ``duo_transformer`` for fairseq; the equations are in layer.py and modules.py.

Dimensions as there.
"""

from dataclasses import fields
from typing import Any, Collection, Dict, List, Optional, Tuple, cast

from fairseq.data import Dictionary
from fairseq.models import register_model
from fairseq.tasks import FairseqTask
from torch import Tensor

from ...common.decoding import Cache
from ...common.joined_dictionary import check_joined
from ...common.padding_sides import check_right_padding
from ...compat.user_errors import option_of
from ...streams.direction import Direction, SourceSide, TargetSide
from ..embedding_sets import EmbeddingSet, embedding_set
from ..freezing import frozen_before, record_sets, warn_without_files
from .config import DuoTransformerConfig, register_architectures
from .layer import DuoSize
from .modules import DuoDecoder, DuoEmbedding, DuoEncoder

STREAMS = ("s", "p")
OPTIONS = [entry.name for entry in fields(DuoTransformerConfig)]


class DuoTargetSide(TargetSide):
    """Returns the last layer's attention outside of training, as alignments need it."""

    def decode(
        self,
        prev_tokens: Tensor,
        encoded: List[Tuple[Tensor, Tensor]],
        cache: Optional[Cache],
        encoder_out: Dict[str, Any],
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Return hidden states (R, T, D) and, outside of training, the attention (R, T, S)."""
        decoder = cast(DuoDecoder, self.module)
        return decoder.decode(prev_tokens, *encoded[0], cache, not self.training)


@register_model("duo_transformer", dataclass=DuoTransformerConfig)
class DuoTransformerModel(Direction):
    """A Transformer of two streams, for fairseq's task ``translation``."""

    @classmethod
    def build_model(cls, cfg: DuoTransformerConfig, task: FairseqTask) -> "DuoTransformerModel":
        """Return the model of the options.

        Raises ValueError, naming the option or the file, for what does not go together.
        """
        # the decoder takes targets that are padded on the right
        check_right_padding(task)
        size = size_of(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        # of the target's own embeddings; with one table for both sides nothing would read them
        target_options = [
            name for name in OPTIONS if name.startswith("target_embed") and getattr(cfg, name)
        ]
        # one S and one P for both sides need one dictionary
        if cfg.share_all_embeddings:
            check_joined({"source": source, "target": target}, "--share-all-embeddings")
            if target_options:
                raise ValueError(f"{option_of(target_options[0])}: not with --share-all-embeddings")
        # read once, for both sides
        before: Collection[str] = frozen_before(cfg) if cfg.freeze_embeddings else ()
        sets = embedding_sets(cfg, size, source, "", before)
        # one object on both sides: the optimiser sees each table once
        source_embedding = target_embedding = embedding_layer(size, sets)
        if not cfg.share_all_embeddings:
            target_sets = embedding_sets(cfg, size, target, "target_", before)
            target_embedding = embedding_layer(size, target_sets)
            sets = [*sets, *target_sets]
        if cfg.freeze_embeddings and not any(entry.is_frozen for entry in sets):
            _check_frozen_before(cfg)
        # what is frozen has to outlive the files, which a resumed run is not given
        record_sets(cfg, sets)
        limits = cfg.max_source_positions, cfg.max_target_positions
        return cls(
            SourceSide(DuoEncoder(size, source_embedding), source, limits[0]),
            DuoTargetSide(DuoDecoder(size, target_embedding), target, limits[1]),
        )

    def max_positions(self) -> Tuple[int, int]:
        """Return the limits of source and target, in tokens."""
        return self.encoder.max_positions(), self.decoder.max_positions()


def size_of(cfg: DuoTransformerConfig) -> DuoSize:
    """Return the sizes; ValueError for an addition of Table 6 without its two streams."""
    two = cfg.duo_meta_embeddings == "on"
    # Table 6 adds sharing, normalisation and fusion to two streams
    if not two:
        for name in ("duo_share_kv", "duo_norm", "duo_fusion"):
            value = getattr(cfg, name)
            if value != "off":
                raise ValueError(
                    f"{option_of(name)} {value}: needs --duo-meta-embeddings on; allowed here: off"
                )
        for name in OPTIONS:
            if "embed_" in name and name.endswith("_p") and getattr(cfg, name) is not None:
                raise ValueError(f"{option_of(name)}: there is no P with --duo-meta-embeddings off")
    return DuoSize(
        embed_dim=cfg.embed_dim,
        ffn_dim=cfg.ffn_embed_dim,
        heads=cfg.attention_heads,
        layers=cfg.layers,
        dropout=cfg.dropout,
        attention_dropout=cfg.attention_dropout,
        activation_dropout=cfg.activation_dropout,
        streams=2 if two else 1,
        share_kv=cfg.duo_share_kv == "on",
        duo_norm=str(cfg.duo_norm),
        fusion=cfg.duo_fusion == "on",
    )


def _check_frozen_before(cfg: DuoTransformerConfig) -> None:
    """Check --freeze-embeddings of a run that freezes nothing: neither files nor its checkpoint.

    A checkpoint that does not say what was frozen gives the widths of the files that were read:
    then a warning, otherwise ValueError.
    """
    if not any(getattr(cfg, name) for name in OPTIONS if "embed_dim_" in name):
        raise ValueError(
            "--freeze-embeddings: no embedding comes from a file, and none is frozen in a "
            "checkpoint that the run begins with; allowed: with --embed-path-s or another file"
        )
    warn_without_files("--freeze-embeddings", cfg)


def embedding_sets(
    cfg: DuoTransformerConfig,
    size: DuoSize,
    dictionary: Dictionary,
    prefix: str,
    before: Collection[str],
) -> List[EmbeddingSet]:
    """Return the sets of one language, whose options start with ``prefix``.

    before: names of the sets that were frozen in the checkpoint with which the run begins.
    """
    sets = []
    for stream in STREAMS[: size.streams]:
        entry = embedding_set(cfg, prefix, stream, dictionary, size.embed_dim, unit=True)
        # a table that was drawn is trained; one from a file, of this run or before, may be frozen
        frozen = cfg.freeze_embeddings and (entry.path is not None or entry.name in before)
        entry.table.weight.requires_grad = not frozen
        sets.append(entry)
    return sets


def embedding_layer(size: DuoSize, sets: List[EmbeddingSet]) -> DuoEmbedding:
    """Return the layer that embeds words by S and P of one language."""
    return DuoEmbedding([entry.table for entry in sets], size.embed_dim, size.dropout)


register_architectures()
