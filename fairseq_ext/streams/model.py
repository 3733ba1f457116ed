"""What the models of several lang pairs have in common; streams/task.py says what they offer."""

from typing import Dict, List, Tuple

from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel


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
        self._max_positions = tuple(max_positions)

    def get_normalized_probs(self, net_output, log_probs, sample=None):
        logits = net_output[0].float()
        return logits.log_softmax(dim=-1) if log_probs else logits.softmax(dim=-1)

    def max_positions(self):
        return self._max_positions

    def max_decoder_positions(self):
        return self._max_positions[1]
