"""A GRU language model for fairseq's own task ``language_modeling``; deep fusion reads its states.

The equations are in modules.py; the softmax follows on s_t: p(y_t) = softmax(W s_t + b).
"""

from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple, cast

from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqIncrementalDecoder, FairseqLanguageModel, register_model
from fairseq.tasks import FairseqTask
from omegaconf import II
from torch import Tensor, nn

from ...common.architectures import architecture
from ...common.decoding import Cache
from ...common.dropout import RetainsDropout
from ...common.layers import linear
from ...common.sizes import check_rate
from .modules import LanguageSize, LanguageState

CACHE = "language"


@dataclass
class GRULanguageModelConfig(FairseqDataclass):
    """Options of ``gru_lm``, for the task ``language_modeling``; lengths are in tokens."""

    embed_dim: int = field(default=620, metadata={"help": "D, width of the embedding E_s"})
    hidden_size: int = field(
        default=1000, metadata={"help": "L, number of GRU units of the state s_t"}
    )
    dropout: float = field(
        default=0.0,
        metadata={"help": "dropout rate on embeddings and on the states before the softmax"},
    )
    share_decoder_input_output_embed: bool = field(
        default=False,
        metadata={"help": "tie the matrix W of the softmax to the embedding E_s; needs D = L"},
    )
    tokens_per_sample: int = II("task.tokens_per_sample")
    max_target_positions: Optional[int] = II("task.max_target_positions")


class LanguageModelDecoder(RetainsDropout, FairseqIncrementalDecoder):
    """Embedding, GRU and softmax.

    Args:
        language: words read -> s_t.
        output: s_t (R, T, L) -> logits (R, T, V).
        dictionary: of the words predicted.
        max_positions: the longest text in tokens.
        dropout: on s_t before the softmax.
    """

    def __init__(
        self,
        language: LanguageState,
        output: nn.Linear,
        dictionary: Dictionary,
        max_positions: int,
        dropout: float = 0.0,
    ):
        super().__init__(dictionary)
        self.language, self.output = language, output
        self._max_positions, self.dropout = max_positions, dropout

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: None = None,
        incremental_state: Optional[Dict[str, Cache]] = None,
        **_unused: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Return s_t of (R, T) tokens, s (R, T, L), or (R, 1, L) with an incremental state."""
        # the cache is kept under one name: this decoder has one part with a state
        cache = None if incremental_state is None else incremental_state.setdefault(CACHE, {})
        states = self.language(prev_output_tokens, cache)
        # fairseq's search reads the attention of any model
        return self.drop(states), {"attn": None}

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: None = None,
        incremental_state: Optional[Dict[str, Cache]] = None,
        **_unused: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Return the logits of (R, T) tokens, (R, T, V), or (R, 1, V) with an incremental state."""
        states, extra = self.extract_features(prev_output_tokens, None, incremental_state)
        return self.output_layer(states), extra

    def output_layer(self, features: Tensor, **_unused: Any) -> Tensor:
        """Return the logits of states (.., L)."""
        return self.output(features)

    def reorder_incremental_state(
        self, incremental_state: Dict[str, Cache], new_order: Tensor
    ) -> None:
        """Make row r of the state what row ``new_order[r]`` was; fairseq's search calls this."""
        cache = incremental_state.get(CACHE, {})
        for name in cache:
            # every entry is a state (R, L): nothing belongs to a source here
            cache[name] = cast(Tensor, cache[name]).index_select(0, new_order)

    def max_positions(self) -> int:
        """Return the length of the longest text in tokens."""
        return self._max_positions


@register_model("gru_lm", dataclass=GRULanguageModelConfig)
class GRULanguageModel(FairseqLanguageModel):
    """One layer; trained on the target language's text for ``deep_fusion_gru``."""

    @classmethod
    def build_model(cls, cfg: GRULanguageModelConfig, task: FairseqTask) -> "GRULanguageModel":
        """Return the model; ValueError, naming the option, for sizes that do not fit."""
        size = LanguageSize(cfg.embed_dim, cfg.hidden_size)
        check_rate("--dropout", cfg.dropout)
        inputs, outputs = task.source_dictionary, task.target_dictionary
        language = LanguageState(size, len(inputs), inputs.pad(), cfg.dropout)
        # --output-dictionary-size may leave fewer words to predict than there are to read
        output = linear(size.hidden_size, len(outputs))
        if cfg.share_decoder_input_output_embed:
            _check_shareable(size, len(inputs), len(outputs))
            output.weight = language.embedding.weight  # E_s; D = L
        # a text is as long as a sample, unless the task has a limit of its own
        length = cfg.max_target_positions or cfg.tokens_per_sample
        return cls(LanguageModelDecoder(language, output, outputs, length, cfg.dropout))


def _check_shareable(size: LanguageSize, inputs: int, outputs: int) -> None:
    """Raise ValueError unless one matrix can be embedding and softmax."""
    option = "--share-decoder-input-output-embed"
    if size.embed_dim != size.hidden_size:
        raise ValueError(
            f"{option}: --embed-dim {size.embed_dim} and --hidden-size {size.hidden_size} must "
            "be equal"
        )
    if inputs != outputs:
        raise ValueError(
            f"{option}: the dictionary has {inputs} entries, --output-dictionary-size leaves "
            f"{outputs}; they must be equal"
        )


architecture("gru_lm", "gru_lm_tiny", embed_dim=64, hidden_size=96)
