"""``duo_transformer``: what fairseq needs of the Duo Transformer; the equations are in modules.py.

Dimensions as there.
"""

from dataclasses import fields
from typing import Optional

from fairseq.models import register_model
from torch import nn

from ..streams.direction import Direction, SourceSide, TargetSide
from . import embedding_files
from .config import DuoTransformerConfig, register_transformers
from .modules import DuoDecoder, DuoEmbedding, DuoEncoder, Size

STREAMS = ("s", "p")
OPTIONS = [one.name for one in fields(DuoTransformerConfig)]


class DuoTargetSide(TargetSide):
    """Returns the last layer's attention outside of training, as alignments need it."""

    def decode(self, prev_tokens, encoded, cache, encoder_out):
        return self.module.decode(prev_tokens, *encoded[0], cache, not self.training)


@register_model("duo_transformer", dataclass=DuoTransformerConfig)
class DuoTransformerModel(Direction):
    """A Transformer of two streams, for fairseq's task ``translation``."""

    @classmethod
    def build_model(cls, cfg: DuoTransformerConfig, task):
        """ValueError, naming the option or the file, for what does not go together."""
        size = size_of(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        own = [name for name in OPTIONS if name.startswith("target_embed") and getattr(cfg, name)]
        if cfg.share_all_embeddings:
            if source != target:
                raise ValueError(
                    f"--share-all-embeddings: the dictionaries of source ({len(source)} entries) "
                    f"and target ({len(target)} entries) differ; binarise with --joined-dictionary"
                )
            if own:
                raise ValueError(f"{option(own[0])}: not with --share-all-embeddings")
        read = embeddings(cfg, size, source, "")
        written = read if cfg.share_all_embeddings else embeddings(cfg, size, target, "target_")
        limits = cfg.max_source_positions, cfg.max_target_positions
        return cls(
            SourceSide(DuoEncoder(size, read), source, limits[0]),
            DuoTargetSide(DuoDecoder(size, written), target, limits[1]),
        )

    def max_positions(self):
        return self.encoder.max_positions(), self.decoder.max_positions()


def option(name: str) -> str:
    return "--" + name.replace("_", "-")


def size_of(cfg) -> Size:
    """The sizes; ValueError for an addition of Table 6 without the streams that it is about."""
    two = cfg.duo_meta_embeddings == "on"
    if not two:
        for name in ("duo_share_kv", "duo_norm", "duo_fusion"):
            value = getattr(cfg, name)
            if value != "off":
                raise ValueError(
                    f"{option(name)} {value}: needs --duo-meta-embeddings on; allowed here: off"
                )
        for name in OPTIONS:
            if "embed_" in name and name.endswith("_p") and getattr(cfg, name) is not None:
                raise ValueError(f"{option(name)}: there is no P with --duo-meta-embeddings off")
    return Size(
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


def embeddings(cfg, size: Size, dictionary, prefix: str) -> DuoEmbedding:
    """Those of one language, whose options start with ``prefix``."""
    tables = []
    for stream in STREAMS[: size.streams]:
        from_file = getattr(cfg, f"{prefix}embed_path_{stream}") is not None
        table = stored(cfg, prefix, stream, dictionary, size.embed_dim, unit=True)
        table.weight.requires_grad = not (cfg.freeze_embeddings and from_file)
        tables.append(table)
    return DuoEmbedding(tables, size.embed_dim, size.dropout)


def stored(
    cfg, prefix: str, stream: str, dictionary, default_dim: int, unit: bool = False
) -> nn.Embedding:
    """The set S or P as the options say; the run's checkpoints keep its width instead of the file.

    What is built from a checkpoint gets its vectors from there: the file need not exist any more.
    (Checkpoints hold the run's configuration; of it fairseq hands ``build_model`` the model's part,
    or for an architecture without a name of its own a copy of that part with the same parent.)
    """
    names = f"{prefix}embed_path_{stream}", f"{prefix}embed_dim_{stream}"
    path, width = (getattr(cfg, name) for name in names)
    if width is not None and width < 1:
        raise ValueError(f"{option(names[1])} {width}: must be at least 1")
    if path is None and width is None:
        width = default_dim
    label = (prefix + stream).replace("_", " ").upper()
    table = embedding_files.embedding(label, dictionary, path, width, unit)
    run: Optional[object] = cfg._get_parent() if hasattr(cfg, "_get_parent") else None
    if path is not None and run is not None:
        run.model[names[0]], run.model[names[1]] = None, table.embedding_dim
    return table


register_transformers()
