"""Linear maps and embeddings with the values they start from."""

from torch import nn


def linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """Xavier weights, zero bias."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def embedding(vocab_size: int, embed_dim: int, padding_index: int) -> nn.Embedding:
    """Normal with deviation D^-1/2; the row of the padding symbol is zero."""
    table = nn.Embedding(vocab_size, embed_dim, padding_index)
    nn.init.normal_(table.weight, std=embed_dim**-0.5)
    nn.init.zeros_(table.weight[padding_index])
    return table
