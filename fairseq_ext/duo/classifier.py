"""``duo_classifier``: what fairseq needs of it; the equations are in classifier_modules.py.

Dimensions: B texts, T words, L labels.
"""

from fairseq.models import BaseFairseqModel, register_model

from ..common.labels import labels
from .classifier_modules import Classifier
from .config import DuoClassifierConfig, register_classifiers
from .model import option, stored

DEFAULT_DIM = 300


@register_model("duo_classifier", dataclass=DuoClassifierConfig)
class DuoClassifierModel(BaseFairseqModel):
    """Scores (B, L) of the labels of texts (B, T)."""

    def __init__(self, classifier: Classifier):
        super().__init__()
        self.classifier = classifier

    @classmethod
    def build_model(cls, cfg: DuoClassifierConfig, task):
        """ValueError, naming the option or the file, for what does not go together."""
        method = str(cfg.meta_embedding)
        given = [name for name in ("embed_path_p", "embed_dim_p") if getattr(cfg, name) is not None]
        if method == "single" and given:
            raise ValueError(f"{option(given[0])}: --meta-embedding single has no P")
        two = method != "single" and (method != "mean-mlp" or bool(given))
        tables = []
        for stream in "sp" if two else "s":
            learnt = getattr(cfg, f"embed_path_{stream}") is None or cfg.train_embeddings
            table = stored(cfg, "", stream, task.source_dictionary, DEFAULT_DIM)
            table.weight.requires_grad = learnt
            tables.append(table)
        p = tables[1] if two else None
        count = len(labels(task.target_dictionary))
        attention = str(cfg.duo_attention)
        return cls(
            Classifier(tables[0], p, cfg.ffn_embed_dim, count, method, attention, cfg.dropout)
        )

    def forward(self, src_tokens, src_lengths=None):
        return self.classifier(src_tokens), {}

    def get_normalized_probs(self, net_output, log_probs, sample=None):
        scores = net_output[0].float()
        return scores.log_softmax(dim=-1) if log_probs else scores.softmax(dim=-1)


register_classifiers()
