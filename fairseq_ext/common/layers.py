"""Linear maps and embeddings with the values they start from."""

from torch import Tensor, nn

from . import products


class Linear(nn.Linear):
    """torch's layer, multiplied by ``products.linear``."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Return x weight^T + bias: (.., I) -> (.., O)."""
        return products.linear(inputs, self.weight, self.bias)


def linear(inputs: int, outputs: int, bias: bool = True) -> Linear:
    """Return a linear layer with Xavier weights and zero bias."""
    layer = Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def embedding(vocab_size: int, embed_dim: int, padding_index: int) -> nn.Embedding:
    """Return a table of normal values with deviation D^-1/2, zero for the padding symbol."""
    table = nn.Embedding(vocab_size, embed_dim, padding_index)
    nn.init.normal_(table.weight, std=embed_dim**-0.5)
    nn.init.zeros_(table.weight[padding_index])
    return table
