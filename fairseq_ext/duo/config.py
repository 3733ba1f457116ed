"""Options of the two sets of vectors, which the Transformer and the classifier have alike."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import FairseqDataclass

WIDTH = "width of {}; default: the file's, without a file {}"


@dataclass
class EmbeddingsConfig(FairseqDataclass):
    """The two sets of vectors; a file is .txt (GloVe), .vec (word2vec, fastText), .bin, or gzip."""

    embed_path_s: Optional[str] = field(
        default=None,
        metadata={"help": "file of pre-trained vectors S (default: the vectors are learnt)"},
    )
    embed_path_p: Optional[str] = field(
        default=None,
        metadata={"help": "file of pre-trained vectors P (default: the vectors are learnt)"},
    )
    embed_dim_s: Optional[int] = field(
        default=None, metadata={"help": "d1, " + WIDTH.format("S", "--embed-dim (classifier: 300)")}
    )
    embed_dim_p: Optional[int] = field(
        default=None, metadata={"help": "d2, " + WIDTH.format("P", "--embed-dim (classifier: 300)")}
    )
    frozen_embeddings: Optional[str] = field(
        default=None,
        metadata={
            "help": "a run writes this into its checkpoints: the embeddings that stay frozen; do "
            "not set it",
            "written_by": "a run, into its checkpoints,",
        },
    )
