"""The model ``duo_classifier`` for fairseq; the equations are in modules.py.

Dimensions: B texts, T words, L labels.
"""

from typing import Any, Collection, Dict, List, Optional, Tuple

from fairseq.models import BaseFairseqModel, register_model
from fairseq.tasks import FairseqTask
from torch import Tensor

from ...common.labels import labels
from ...compat.user_errors import option_of
from ..embedding_sets import embedding_set
from ..freezing import frozen_before, record_sets, warn_without_files
from .config import DuoClassifierConfig, register_architectures
from .modules import Classifier

DEFAULT_DIM = 300


@register_model("duo_classifier", dataclass=DuoClassifierConfig)
class DuoClassifierModel(BaseFairseqModel):
    """Scores (B, L) of the labels of texts (B, T).

    Args:
        classifier: of which this is the view that fairseq has.
    """

    def __init__(self, classifier: Classifier):
        super().__init__()
        self.classifier = classifier

    @classmethod
    def build_model(cls, cfg: DuoClassifierConfig, task: FairseqTask) -> "DuoClassifierModel":
        """Return the model of the options.

        Raises ValueError, naming the option or the file, for what does not go together.
        """
        method, attention = str(cfg.meta_embedding), str(cfg.duo_attention)
        # options of P that the user has set
        p_options = [
            name for name in ("embed_path_p", "embed_dim_p") if getattr(cfg, name) is not None
        ]
        _check_method(method, attention, p_options)
        # read once, for this check and for what stays frozen
        before = frozen_before(cfg)
        _check_learnt(cfg, before)
        # mean-mlp takes the mean of S, or of [S ; P] if there is a P
        two = method != "single" and (method != "mean-mlp" or bool(p_options))
        sets = []
        for stream in "sp" if two else "s":
            entry = embedding_set(cfg, "", stream, task.source_dictionary, DEFAULT_DIM)
            # a set that a checkpoint has frozen stays frozen, though its file is not named again
            if (entry.path is not None or stream in before) and not cfg.train_embeddings:
                entry.table.weight.requires_grad = False
            sets.append(entry)
        record_sets(cfg, sets)
        s, p = sets[0].table, sets[1].table if two else None
        # madeupword entries of the dictionary are no classes
        count = len(labels(task.target_dictionary))
        return cls(Classifier(s, p, cfg.ffn_embed_dim, count, method, attention, cfg.dropout))

    def forward(
        self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Return the scores (B, L); the second value is what fairseq expects beside them."""
        return self.classifier(src_tokens), {}

    def get_normalized_probs(
        self,
        net_output: Tuple[Tensor, Dict[str, Any]],
        log_probs: bool,
        sample: Optional[Dict[str, Any]] = None,
    ) -> Tensor:
        """Return the probabilities of the labels, or their logarithms (B, L), in float32."""
        # also with --fp16: small probabilities decide about the order of an n-best list
        scores = net_output[0].float()
        return scores.log_softmax(dim=-1) if log_probs else scores.softmax(dim=-1)


def _check_method(method: str, attention: str, p_options: List[str]) -> None:
    """Raise ValueError for options that the method does not read.

    p_options: those of P that are set.
    """
    if method == "single" and p_options:
        raise ValueError(f"{option_of(p_options[0])}: --meta-embedding single has no P")
    if method == "mean-mlp" and attention != "softmax":
        raise ValueError(
            f"--duo-attention {attention}: --meta-embedding mean-mlp has no attention; leave it out"
        )


def _check_learnt(cfg: DuoClassifierConfig, before: Collection[str]) -> None:
    """Raise ValueError for --train-embeddings where no embedding comes from a file.

    Checkpoints hold the widths of the files that were read; ``before`` names the sets that one has
    frozen.
    """
    paths, widths = (
        [name for name in (f"embed_{kind}_s", f"embed_{kind}_p") if getattr(cfg, name)]
        for kind in ("path", "dim")
    )
    # the checkpoint that the run begins with may have brought embeddings from files
    if not cfg.train_embeddings or paths or cfg.frozen_embeddings is not None or before:
        return
    if not widths:
        raise ValueError(
            "--train-embeddings: no embedding comes from a file, and others are trained anyway; "
            "leave it out"
        )
    warn_without_files("--train-embeddings", cfg)


register_architectures()
