"""The rows of a beam search: their words so far, and the state of the models for each of them.

Dimensions: B sentences, K beam, R = B * K rows, V words, S source positions.
"""

from typing import Any, Callable, Dict, List, Optional, Protocol, Tuple, cast, runtime_checkable

import torch
from fairseq.models import FairseqIncrementalDecoder
from fairseq.sequence_generator import EnsembleModel
from torch import Tensor

from .decoder_steps import decoder_steps
from .sentence_steps import SentenceSteps, is_from_elsewhere

# gives the rows of a decoder's state a new order, in place (None) or as a new state
Reorder = Callable[[Dict[str, Any], Tensor], Optional[Dict[str, Any]]]


@runtime_checkable
class Reorderable(Protocol):
    """A module with state in the incremental state of a search."""

    def reorder_incremental_state(
        self, incremental_state: Dict[str, Any], new_order: Tensor
    ) -> Optional[Dict[str, Any]]:
        """Make row r of the state what row ``new_order[r]`` was."""


def reorder_functions(decoder: FairseqIncrementalDecoder) -> List[Reorder]:
    """Return what fairseq calls to give the rows of a decoder's state a new order.

    fairseq looks for them among all modules at every step; the search does it once.
    """
    inherited = FairseqIncrementalDecoder.reorder_incremental_state_scripting
    if type(decoder).reorder_incremental_state_scripting is not inherited:
        return [decoder.reorder_incremental_state_scripting]
    # of classes, whose answers Python stores: of instances it takes 30 microseconds a module
    return [
        cast(Reorderable, module).reorder_incremental_state
        for module in decoder.modules()
        if issubclass(type(module), Reorderable)
    ]


def reordered(state: Dict[str, Any], reorders: List[Reorder], order: Tensor) -> Dict[str, Any]:
    """Return the state of a decoder with row ``order[r]`` at r; ``reorders`` are its functions."""
    for reorder in reorders:
        changed = reorder(state, order)
        state = state if changed is None else changed
    return state


def steps_between_checks(tokens: Tensor) -> int:
    """Return after how many steps it is asked which rows have ended: the answer of a GPU waits."""
    return 8 if tokens.is_cuda else 1


class SearchRows:
    """The words of every row so far, and what the models know of it.

    Args:
        model: fairseq's ensemble.
        net_input: of the batch.
        beam: K.
        empty: a row without words.
        begin: the word that all begin with.
    """

    def __init__(
        self,
        model: EnsembleModel,
        net_input: Dict[str, Tensor],
        beam: int,
        empty: Tensor,
        begin: int,
    ):
        self.sentences = len(net_input["src_tokens"])  # B at the start
        # (R, T), T for all steps
        self.tokens = empty.long().repeat(self.sentences * beam, 1)
        self.tokens[:, 0] = begin
        self.model = model
        self.encoded = model.forward_encoder(net_input)
        self.steps = self._sentence_steps(net_input["src_tokens"].size(1))
        if self.steps is None:
            self._prepare(beam)

    def _sentence_steps(self, positions: int) -> Optional[SentenceSteps]:
        """Return the steps of a single sentence, None if it is the model that takes the steps."""
        model = self.model
        is_single = self.sentences == 1 and model.models_size == 1
        if not (is_single and model.has_encoder() and model.has_incremental_states()):
            return None
        if is_from_elsewhere(model.forward_decoder):
            return None
        # the first symbol stands in front of the first step, the last symbol behind the last one
        steps = self.tokens.size(1) - 1
        return decoder_steps(model.models[0], self.encoded[0], positions, len(self.tokens), steps)

    def _prepare(self, beam: int) -> None:
        """Prepare the models for all rows."""
        model = self.model
        sentences = torch.arange(self.sentences, device=self.tokens.device)
        order = sentences.repeat_interleave(beam)  # (R,): row r belongs to sentence r // K
        self.encoded = model.reorder_encoder_out(self.encoded, order)
        # of each model of an ensemble
        self.states: List[Dict[str, Any]] = [{} for _ in range(model.models_size)]
        self.reorders: List[List[Reorder]] = []
        if model.has_incremental_states():
            self.reorders = [reorder_functions(member.decoder) for member in model.models]

    def predict(self, step: int, temperature: float) -> Tuple[Tensor, Optional[Tensor]]:
        """Return log p of the next word (R, V), and attention (R, S) if the models have it."""
        if self.steps is not None:
            logits, attention = self.steps(self.tokens[:, step])
            logits = logits if temperature == 1 else logits / temperature
            output = logits.unsqueeze(1), None
            return self.model.models[0].get_normalized_probs(output, True)[:, 0], attention
        tokens = self.tokens[:, : step + 1]
        return self.model.forward_decoder(tokens, self.encoded, self.states, temperature)

    def go_on(self, step: int, words: Tensor, order: Tensor, beam: int) -> None:
        """Make row r what row ``order[r]`` was, with a word more; sentences may be missing."""
        fewer = len(order) < len(self.tokens)
        # a single hypothesis of a sentence never changes its row
        if fewer or beam > 1:
            # a copy: it overlaps its target
            before = self.tokens[:, : step + 1].index_select(0, order)
            self.tokens = self.tokens[: len(order)]
            self.tokens[:, : step + 1] = before
            self._reorder(order)
        if fewer:  # otherwise rows only move within a sentence, whose source is the same
            self.encoded = self.model.reorder_encoder_out(self.encoded, order)
        self.tokens[:, step + 1] = words

    def _reorder(self, order: Tensor) -> None:
        """Give the rows of the models' state a new order."""
        if self.steps is not None:
            self.steps.reorder(order)
            return
        for number, reorders in enumerate(self.reorders):
            self.states[number] = reordered(self.states[number], reorders, order)
