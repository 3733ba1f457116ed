"""What the models of several lang pairs have in common, and what a streams task asks of a model.

A model that trains on several pairs is a ``HasDirections``; it may also be a
``HasParameterGroups`` and a ``HasPairParameters``, which ``isinstance`` checks when a run needs it.
"""

from typing import Any, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple, runtime_checkable

from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from torch import Tensor

from .direction import Direction


@runtime_checkable
class HasDirections(Protocol):
    """A model with several directions, each of which it gives as a model that shares parameters.

    Its ``forward`` takes the pair: ``forward(src_tokens, src_lengths, prev_output_tokens,
    pair="de-en")``. Its config has ``lang_pairs``, from which checkpoints know the
    pairs; ``build_model(cfg, task)`` is told them by ``task.pairs``.
    """

    def direction(self, pair: str, need_attention: bool = False) -> Direction:
        """Return an encoder-decoder model of one direction; ValueError where there is none."""


@runtime_checkable
class HasParameterGroups(Protocol):
    """A model of which --train-only can train a part."""

    def parameter_groups(self) -> Mapping[str, Sequence[str]]:
        """Return {group: names of its parameters}; groups may overlap."""


@runtime_checkable
class HasPairParameters(Protocol):
    """A model that --pair-parallel can divide among workers."""

    def pair_parameters(self, pair: str) -> Sequence[str]:
        """Return the names of the parameters that training on ``pair`` moves."""


class StreamsModel(BaseFairseqModel):
    """A model whose output is (logits (B, T, V), ..).

    Args:
        dictionaries: {lang: dictionary}.
        pairs: the directions it is trained for, e.g. ["de-en", "en-de"].
        max_positions: (source, target) limits in tokens.
    """

    def __init__(
        self, dictionaries: Dict[str, Dictionary], pairs: List[str], max_positions: Tuple[int, int]
    ):
        super().__init__()
        self.dictionaries, self.pairs = dictionaries, list(pairs)
        self._max_positions = max_positions[0], max_positions[1]

    def get_normalized_probs(
        self,
        net_output: Tuple[Tensor, Any],
        log_probs: bool,
        sample: Optional[Mapping[str, Any]] = None,
    ) -> Tensor:
        """Return (log-)probabilities (B, T, V), computed in float32."""
        logits = net_output[0].float()  # a sum over V is too coarse in half precision
        return logits.log_softmax(dim=-1) if log_probs else logits.softmax(dim=-1)

    def max_positions(self) -> Tuple[int, int]:
        """Return the longest source and target in tokens."""
        return self._max_positions

    def max_decoder_positions(self) -> int:
        """Return the longest target in tokens."""
        return self._max_positions[1]
