"""The classifier and the conditional language model that share an LSTM, as fairseq sees them.

Dimensions as in lstm_modules.py; R = B * K rows of the beams, N entries of the labels' dictionary.
A text is one side of a pair, its label, a single word, the other.
"""

from typing import List, Tuple

import torch
from fairseq.models import register_model
from torch import Tensor, nn

from ..common import labels
from ..common.recurrent import align_left
from ..streams.direction import Direction, SourceSide, TargetSide
from ..streams.model import StreamsModel
from .lstm_config import DualLSTMConfig, register_architectures
from .lstm_modules import DualLSTM, Size, inputs_of

# the score of what can be no label; its probability is zero in every precision
IMPOSSIBLE = -1e4


class Text(nn.Module):
    """phi_X: reads a text for the primal model, or writes one for the dual model."""

    def __init__(self, network: DualLSTM, dictionary):
        super().__init__()
        self.network, self.pad, self.eos = network, dictionary.pad(), dictionary.eos()

    def encode(self, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        """(B, S) -> h_T (B, 1, H), no padding (B, 1)."""
        state = self.network.read(*inputs_of(tokens, self.pad, self.eos))
        return state.unsqueeze(1), torch.zeros_like(tokens[:, :1], dtype=torch.bool)

    def decode(self, prev_tokens, y, _padding=None, cache=None, _need_weights=False):
        """x_{t-1} (R, T) and one-hot labels (B, 1, L) -> h (R, T, H); the last with a cache."""
        before = None
        if cache:
            y, before = cache["context_y"], (cache["state"], cache["memory"])
        if cache is not None:
            prev_tokens = prev_tokens[:, -1:]
        rows = y.squeeze(1).repeat_interleave(prev_tokens.size(0) // y.size(0), dim=0)  # (R, L)
        h, (state, memory) = self.network.states(prev_tokens, rows, before)
        if cache is not None:
            cache.update(context_y=y, state=state, memory=memory)
        return h, None

    def logits(self, h: Tensor) -> Tensor:
        return self.network.logits(h)


class Label(nn.Module):
    """phi_Y: writes a label and the end symbol for the primal model, reads one for the dual."""

    def __init__(self, network: DualLSTM, dictionary):
        super().__init__()
        self.network, self.entries = network, len(dictionary)
        self.pad, self.eos, self.first = dictionary.pad(), dictionary.eos(), dictionary.nspecial

    def encode(self, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        """(B, S) -> y, one-hot (B, 1, L), no padding (B, 1)."""
        first = align_left(tokens, self.pad)[:, :1]  # (B, 1)
        number = torch.arange(len(self.network.label_embedding), device=tokens.device)
        y = first.eq(number + self.first).to(self.network.label_embedding.dtype)  # (B, L)
        return y.unsqueeze(1), torch.zeros_like(first, dtype=torch.bool)

    def decode(self, prev_tokens, h_T, _padding=None, cache=None, _need_weights=False):
        """h_T (B, 1, H) -> scores (R, T, N): of labels at the first position, then of the end.

        With a cache those of the last position alone.
        """
        rows, positions = prev_tokens.shape
        scores = h_T.new_full((rows, positions, self.entries), IMPOSSIBLE)
        scores[:, 1:, self.eos] = 0
        if cache is None or positions == 1:
            found = self.network.label_logits(h_T.squeeze(1))  # (B, L)
            found = found.repeat_interleave(rows // len(found), dim=0).to(scores)
            scores[:, 0, self.first : self.first + found.size(1)] = found
        return (scores if cache is None else scores[:, -1:]), None

    def logits(self, scores: Tensor) -> Tensor:
        return scores


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

    def __init__(self, network: DualLSTM, dictionaries, pairs, max_positions, label_lang: str):
        super().__init__(dictionaries, pairs, max_positions)
        self.network, self.label_lang = network, label_lang

    @classmethod
    def build_model(cls, cfg: DualLSTMConfig, task):
        """ValueError unless one side is --label-lang and has at least two labels."""
        return cls.of_pairs(cfg.lang_pairs.split(","), cfg, task)

    @classmethod
    def of_pairs(cls, pairs: List[str], cfg: DualLSTMConfig, task):
        """A model of these directions, whatever those of the run are."""
        text = text_side(pairs, cfg.label_lang)
        dictionaries = {lang: task.dictionaries[lang] for lang in (text, cfg.label_lang)}
        words, names = dictionaries[text], labels.labels(dictionaries[cfg.label_lang])
        if len(names) < 2:
            raise ValueError(
                f"dict.{cfg.label_lang}.txt: {len(names)} labels ({names}), at least 2 needed"
            )
        size = Size(cfg.embed_dim, cfg.hidden_size, cfg.dropout)
        writes = f"{cfg.label_lang}-{text}" in pairs
        network = DualLSTM(size, len(words), len(names), words.pad(), writes)
        limits = (cfg.max_source_positions, cfg.max_target_positions)
        return cls(network, dictionaries, pairs, limits, cfg.label_lang)

    def _sides(self, pair: str) -> List[nn.Module]:
        """The reader and the writer of a direction."""
        return [
            (Label if lang == self.label_lang else Text)(self.network, self.dictionaries[lang])
            for lang in pair.split("-")
        ]

    def forward(self, src_tokens, src_lengths, prev_output_tokens, pair=None, **_unused):
        """Teacher-forced scores (B, T, V) or (B, T, N) of the direction ``pair``."""
        reader, writer = self._sides(pair or self.pairs[0])
        states, _ = writer.decode(prev_output_tokens, *reader.encode(src_tokens))
        return writer.logits(states), {}

    def direction(self, pair: str, need_attention: bool = False) -> Direction:
        """An encoder-decoder model of one direction; ValueError where the model lacks it."""
        if pair not in self.pairs:
            raise ValueError(
                f"direction {pair!r}: the model was trained for {', '.join(self.pairs)}"
            )
        sides, langs = self._sides(pair), pair.split("-")
        names = [self.dictionaries[lang] for lang in langs]
        return Direction(
            SourceSide(sides[0], names[0], self._max_positions[0]),
            TargetSide(sides[1], names[1], self._max_positions[1]),
        ).train(self.training)

    def pair_parameters(self, pair: str) -> List[str]:
        """Names of the parameters that training on ``pair`` moves."""
        dual = ("network.condition", "network.output")
        named = [name for name, parameter in self.named_parameters() if parameter.requires_grad]
        if pair.startswith(f"{self.label_lang}-"):
            return named
        return [name for name in named if not name.startswith(dual)]


def text_side(pairs: List[str], label_lang: str) -> str:
    """The side of the texts. ValueError unless all pairs are of it and of ``label_lang``."""
    langs = list(dict.fromkeys(lang for pair in pairs for lang in pair.split("-")))
    if label_lang not in langs:
        raise ValueError(
            f"--label-lang {label_lang}: the sides are {', '.join(langs)}; name the one of labels"
        )
    if len(langs) != 2:
        raise ValueError(f"{', '.join(pairs)}: this model has one side of texts, one of labels")
    langs.remove(label_lang)
    return langs[0]


register_architectures("dual_lstm_classifier")
