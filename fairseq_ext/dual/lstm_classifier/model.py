"""The classifier and the conditional language model that share an LSTM, as fairseq sees them.

Dimensions as in modules.py; R = B * K rows of the beams, N entries of the labels' dictionary.
A text is one side of a pair, its label, a single word, the other.
"""

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union, cast

import torch
from fairseq.data import Dictionary
from fairseq.models import register_model
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ...common import labels
from ...common.decoding import PER_SENTENCE, Cache, per_row
from ...common.padding import align_left
from ...streams.direction import Direction, SourceSide, TargetSide
from ...streams.language_pair import LanguagePair, languages
from ...streams.model import StreamsModel
from .config import DualLSTMConfig, register_architectures
from .modules import DualLSTM, DualLSTMSize, State, inputs_of

# the score of what can be no label; its probability is zero in every precision
IMPOSSIBLE = -1e4
LABEL = PER_SENTENCE + "y"  # in the cache


class TextComponent(nn.Module):
    """phi_X: reads a text for the primal model, or writes one for the dual model."""

    def __init__(self, network: DualLSTM, dictionary: Dictionary):
        super().__init__()
        self.network, self.pad, self.eos = network, dictionary.pad(), dictionary.eos()

    def encode(self, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        """Return the last state and no padding: (B, S) -> h_T (B, 1, H), (B, 1)."""
        # one "position", so that beam search reorders it as the states of any encoder
        state = self.network.read(*inputs_of(tokens, self.pad, self.eos))
        return state.unsqueeze(1), torch.zeros_like(tokens[:, :1], dtype=torch.bool)

    def decode(
        self,
        prev_tokens: Tensor,
        y: Tensor,
        _padding: Optional[Tensor] = None,
        cache: Optional[Cache] = None,
        _need_weights: bool = False,
    ) -> Tuple[Tensor, None]:
        """Return h: x_{t-1} (R, T) and one-hot labels (B, 1, L) -> (R, T, H).

        With a cache that of the last position alone, (R, 1, H). There is no attention.
        """
        before: Optional[State] = None
        # a step after the first: the label and the LSTM's state come from the cache
        if cache:
            y, *last = (cast(Tensor, cache[name]) for name in (LABEL, "state", "memory"))
            before = last[0], last[1]
        if cache is not None:
            prev_tokens = prev_tokens[:, -1:]
        rows = per_row(y.squeeze(1), prev_tokens.size(0))  # (R, L)
        h, (state, memory) = self.network.states(prev_tokens, rows, before)  # h (R, T, H)
        if cache is not None:
            cache.update({LABEL: y, "state": state, "memory": memory})
        return h, None

    def logits(self, h: Tensor) -> Tensor:
        """Return the scores of the words: (R, T, H) -> (R, T, V)."""
        return self.network.logits(h)


class LabelComponent(nn.Module):
    """phi_Y: writes a label and the end symbol for the primal model, reads one for the dual."""

    def __init__(self, network: DualLSTM, dictionary: Dictionary):
        super().__init__()
        self.network, self.entries = network, len(dictionary)
        self.pad, self.eos, self.first = dictionary.pad(), dictionary.eos(), dictionary.nspecial

    def encode(self, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        """Return y, one-hot, and no padding: (B, S) -> (B, 1, L), (B, 1)."""
        first = align_left(tokens, self.pad)[:, :1]  # (B, 1)
        # label number c is entry nspecial + c of the dictionary
        number = torch.arange(len(self.network.label_embedding), device=tokens.device)
        y = first.eq(number + self.first).to(self.network.label_embedding.dtype)  # (B, L)
        return y.unsqueeze(1), torch.zeros_like(first, dtype=torch.bool)

    def decode(
        self,
        prev_tokens: Tensor,
        h_T: Tensor,
        _padding: Optional[Tensor] = None,
        cache: Optional[Cache] = None,
        _need_weights: bool = False,
    ) -> Tuple[Tensor, None]:
        """Return scores (R, T, N) of labels at the first position, then of the end symbol.

        prev_tokens (R, T), of which only the shape matters; h_T (B, 1, H). With a cache the scores
        of the last position alone, (R, 1, N). There is no attention.
        """
        rows, positions = prev_tokens.shape
        scores = h_T.new_full((rows, positions, self.entries), IMPOSSIBLE)
        scores[:, 1:, self.eos] = 0  # behind the label nothing else can stand
        # later steps only need the end symbol
        if cache is None or positions == 1:
            label_scores = self.network.label_logits(h_T.squeeze(1))  # (B, L)
            label_scores = per_row(label_scores, rows).to(scores)  # (R, L)
            # entries that are no labels keep the score of the impossible
            scores[:, 0, self.first : self.first + label_scores.size(1)] = label_scores
        return (scores if cache is None else scores[:, -1:]), None

    def logits(self, scores: Tensor) -> Tensor:
        """Return the scores (R, T, N) as they are: ``decode`` has computed them."""
        return scores


# the sides of a direction: one reads, the other writes
SideComponent = Union[TextComponent, LabelComponent]


@register_model("dual_lstm_classifier", dataclass=DualLSTMConfig)
class DualLSTMClassifierModel(StreamsModel):
    """P(label | text) and P(text | label) of one LSTM, or one of them: a baseline.

    Args:
        network: the LSTM and E_y.
        dictionaries: {lang: dictionary}.
        pairs: the directions that it has.
        max_positions: (source, target) limits in tokens.
        label_lang: the side of the labels.
    """

    def __init__(
        self,
        network: DualLSTM,
        dictionaries: Dict[str, Dictionary],
        pairs: Sequence[str],
        max_positions: Tuple[int, int],
        label_lang: str,
    ):
        super().__init__(dictionaries, list(pairs), max_positions)
        self.network, self.label_lang = network, label_lang

    @classmethod
    def build_model(cls, cfg: DualLSTMConfig, task: FairseqTask) -> "DualLSTMClassifierModel":
        """Return the model; ValueError unless one side is --label-lang with two labels or more."""
        return cls.of_pairs(task.pairs, cfg, task)

    @classmethod
    def of_pairs(
        cls, pairs: List[str], cfg: DualLSTMConfig, task: FairseqTask
    ) -> "DualLSTMClassifierModel":
        """Return a model of these directions, whatever those of the run are."""
        text = text_side(pairs, cfg.label_lang)
        dictionaries = {lang: task.dictionaries[lang] for lang in (text, cfg.label_lang)}
        labels.check_dictionary(dictionaries[cfg.label_lang], dictionaries[text], cfg.label_lang)
        words, names = dictionaries[text], labels.labels(dictionaries[cfg.label_lang])
        size = DualLSTMSize(cfg.embed_dim, cfg.hidden_size, cfg.dropout)
        # P and phi^h_X exist if the run trains label -> text
        writes = f"{cfg.label_lang}-{text}" in pairs
        network = DualLSTM(size, len(words), len(names), words.pad(), writes)
        limits = (cfg.max_source_positions, cfg.max_target_positions)
        return cls(network, dictionaries, pairs, limits, cfg.label_lang)

    def _component(self, lang: str) -> SideComponent:
        """Return phi_Y for the side of the labels, phi_X for the other one."""
        # both sides are views of one network and hold no parameters of their own
        component = LabelComponent if lang == self.label_lang else TextComponent
        return component(self.network, self.dictionaries[lang])

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        pair: Optional[str] = None,
        **_unused: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Return teacher-forced scores of the direction ``pair`` (default: the first).

        Of words (B, T, V), of labels (B, T, N).
        """
        reader, writer = (
            self._component(lang) for lang in LanguagePair.parse(pair or self.pairs[0])
        )
        # text -> label: h_T, then E_y h_T; label -> text: y, then the LSTM under the condition
        states, _ = writer.decode(prev_output_tokens, *reader.encode(src_tokens))
        return writer.logits(states), {}

    def direction(self, pair: str, need_attention: bool = False) -> Direction:
        """Return an encoder-decoder model of one direction; ValueError if the model lacks it."""
        if pair not in self.pairs:
            raise ValueError(
                f"direction {pair!r}: the model was trained for {', '.join(self.pairs)}"
            )
        source, target = LanguagePair.parse(pair)
        reader, writer = self._component(source), self._component(target)
        return Direction(
            SourceSide(reader, self.dictionaries[source], self._max_positions[0]),
            TargetSide(writer, self.dictionaries[target], self._max_positions[1]),
        ).train(self.training)

    def pair_parameters(self, pair: str) -> List[str]:
        """Return the names of the parameters that training on ``pair`` moves."""
        # P and phi^h_X: only the dual model, which reads a label, has them
        dual = ("network.condition", "network.output")
        # b_hh of the LSTM stays zero and is no parameter of the optimiser
        named = [name for name, parameter in self.named_parameters() if parameter.requires_grad]
        if pair.startswith(f"{self.label_lang}-"):
            return named
        return [name for name in named if not name.startswith(dual)]


def text_side(pairs: List[str], label_lang: str) -> str:
    """Return the side of the texts; ValueError unless all pairs are of it and ``label_lang``."""
    langs = languages(pairs)
    if label_lang not in langs:
        raise ValueError(
            f"--label-lang {label_lang}: the sides are {', '.join(langs)}; name the one of labels"
        )
    if len(langs) != 2:
        raise ValueError(f"{', '.join(pairs)}: this model has one side of texts, one of labels")
    langs.remove(label_lang)
    return langs[0]


register_architectures("dual_lstm_classifier")
