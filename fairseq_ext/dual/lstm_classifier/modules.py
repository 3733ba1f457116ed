"""The asymmetric setting (Sec. 2.2 and 4): one LSTM reads a text and writes it, Eq. 2, 3 and 6.

    [z^i z^o z^f z^c]_t = W_a x_{t-1} + U_a h_{t-1} + P phi_Y(y) + b_a
    i, o, f = sigmoid(z^i), sigmoid(z^o), sigmoid(z^f);   C~ = tanh(z^c)
    C_t = f * C_{t-1} + i * C~;   h_t = o * tanh(C_t)                                  (Eq. 6)
    primal f:  y = 0,  P(label | x) = softmax(E_y h_T)                                 (Eq. 2)
    dual g:    phi_Y(y) = E_y^T y,  P(x_t | x_<t, y) = softmax(phi^h_X(h_t))           (Eq. 3)

Both run over the same inputs: x_0, the end symbol, then the words.

Deviation: the paper adds E_y y to the gates, 4H numbers, where E_y is |Y| x H; here P (4H x H)
stands between, because the dimensions cannot agree otherwise. It belongs to the dual model alone.

Dimensions: B sentences, T positions, D word embedding, H units, V words, L = |Y| labels. Padding
stands behind the words: states at the real positions do not depend on it.
"""

from dataclasses import dataclass
from typing import Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...common.autocast import lstm_precision
from ...common.dropout import RetainsDropout
from ...common.layers import embedding, linear
from ...common.lstm import LSTM
from ...common.padding import align_left
from ...common.sizes import check_sizes

State = Tuple[Tensor, Tensor]


@dataclass(frozen=True)
class DualLSTMSize:
    """Sizes and dropout rate; ValueError with the option's name for one out of range.

    embed_dim: D. hidden_size: H. dropout: on word vectors and on what the softmaxes see.
    """

    embed_dim: int
    hidden_size: int
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_sizes(self)


class DualLSTM(RetainsDropout, nn.Module):
    """phi_X, an LSTM, and phi_Y, the matrix E_y, in both roles (Sec. 2.2).

    W_a, U_a and b_a are ``lstm``, with the gates in torch's order i, f, c, o; E_y is
    ``label_embedding``, P is ``condition``, phi^h_X is ``output``.

    Args:
        size: D, H and dropout.
        words, labels: V, L.
        padding_index: of the words.
        writes: True if there is a dual model; a plain classifier has neither P nor phi^h_X.
    """

    def __init__(
        self, size: DualLSTMSize, words: int, labels: int, padding_index: int, writes: bool = True
    ):
        super().__init__()
        self.dropout, hidden = size.dropout, size.hidden_size
        self.embedding = embedding(words, size.embed_dim, padding_index)
        self.lstm = LSTM(size.embed_dim, hidden)
        # E_y (L, H)
        self.label_embedding = nn.Parameter(torch.randn(labels, hidden) * hidden**-0.5)
        if writes:
            self.condition = linear(hidden, 4 * hidden, bias=False)
            self.output = linear(hidden, words)

    def states(
        self, previous: Tensor, y: Optional[Tensor] = None, before: Optional[State] = None
    ) -> Tuple[Tensor, State]:
        """Return the states h (B, T, H) of Eq. 6, and the last h and C (B, H) each.

        previous: x_{t-1}, (B, T). y: one-hot labels (B, L), or None, the null condition of the
        primal model. before: h and C (B, H) each, to go on from.
        """
        inputs, weight = self.drop(self.embedding(previous)), self.lstm.weight_ih_l0  # (B, T, D)
        if y is not None:
            # P E_y^T has one column for each label: as inputs of the LSTM the labels cost L
            # multiplications instead of H at every position
            columns = self.condition(self.label_embedding).t()  # (4H, L)
            repeated = y.to(inputs).unsqueeze(1).expand(-1, inputs.size(1), -1)  # (B, T, L)
            inputs = torch.cat([inputs, repeated], dim=2)
            weight = torch.cat([weight, columns], dim=1)  # (4H, D + L)
        if before is None:
            before = (inputs.new_zeros(inputs.size(0), self.lstm.hidden_size),) * 2
        recurrence = (self.lstm.weight_hh_l0, self.lstm.bias_ih_l0, self.lstm.bias_hh_l0)
        # nn.LSTM has no place for P E_y^T, whose gradient has to reach P and E_y
        with lstm_precision(self.lstm.weight_ih_l0) as converted:
            h, last, memory = torch.lstm(
                converted(inputs),
                # torch has a first axis for layers
                [converted(state).unsqueeze(0) for state in before],
                [converted(weight), *recurrence],
                has_biases=True,
                num_layers=1,
                dropout=0.0,
                train=self.training,
                bidirectional=False,
                batch_first=True,
            )
        return h, (last[0], memory[0])

    def read(self, previous: Tensor, lengths: Tensor) -> Tensor:
        """Return h_T under the null condition: (B, T), numbers of inputs (B,) -> (B, H)."""
        h, _ = self.states(previous)  # (B, T, H)
        last = (lengths - 1).view(-1, 1, 1).expand(-1, 1, h.size(2))  # (B, 1, H)
        return h.gather(1, last).squeeze(1)

    def label_logits(self, h_T: Tensor) -> Tensor:
        """Return E_y h_T of Eq. 2: (.., H) -> (.., L)."""
        return F.linear(self.drop(h_T), self.label_embedding)

    def logits(self, h: Tensor) -> Tensor:
        """Return phi^h_X of Eq. 3 before its softmax: (.., H) -> (.., V)."""
        return self.output(self.drop(h))


def inputs_of(tokens: Tensor, padding_index: int, end_index: int) -> Tuple[Tensor, Tensor]:
    """Return what the LSTM reads of texts, x_0 .. x_T, and its length T + 1.

    tokens: (B, S), x_1 .. x_T and the end symbol, padded on either side; x_0 is the end symbol.
    Returns (B, S) and (B,); the entries behind the inputs of a text are arbitrary.
    """
    aligned = align_left(tokens, padding_index)
    # x_T, the last word, is read; the end symbol behind it is only predicted
    first = aligned.new_full((aligned.size(0), 1), end_index)
    return torch.cat([first, aligned[:, :-1]], dim=1), tokens.ne(padding_index).sum(dim=1)
