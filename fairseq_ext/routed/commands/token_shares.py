"""Shares of the shared blocks: means of tau over tokens, by task, layer and kind of token.

A token of the decoder is the one it is to write.

Dimensions: B sentences, S source and T target positions, L either, N tokens, V symbols, n blocks.
"""

from __future__ import annotations

from collections import Counter
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    cast,
)

from ...streams.language_pair import LanguagePair

if TYPE_CHECKING:  # the command-line tool reads this file without importing torch
    from fairseq.data import Dictionary
    from torch import Tensor

# all encoder layers in both directions together, as in the paper's figure
ENCODER = "encoder"
ALL = "all"


class TokenSums:
    """Sums of tau and numbers of tokens, for each symbol of a dictionary at one layer.

    sums: (V, n). counts: (V,).
    """

    def __init__(self, sums: Tensor, counts: Tensor):
        self.sums, self.counts = sums, counts

    @classmethod
    def of(cls, weights: Tensor, tokens: Tensor, size: int, pad: int) -> TokenSums:
        """Return the sums of tau (B, L, n) by tokens (B, L), those that are ``pad`` left out.

        size: V.
        """
        import torch

        real = tokens.ne(pad)  # (B, L)
        index = tokens[real]
        values = weights[real].double()  # (N, n)
        sums = torch.zeros(size, values.size(1), dtype=torch.double).index_add_(0, index, values)
        return cls(sums, torch.bincount(index, minlength=size))

    def __add__(self, other: TokenSums) -> TokenSums:
        return TokenSums(self.sums + other.sums, self.counts + other.counts)

    @classmethod
    def mean(cls, layers: Sequence[TokenSums]) -> TokenSums:
        """Return the mean of layers that saw the same tokens."""
        total = cast("Tensor", sum(layer.sums for layer in layers))
        return cls(total / len(layers), layers[0].counts)

    def share(self, index: Optional[List[int]] = None) -> Optional[Tuple[List[float], int]]:
        """Return ([mean tau of each block], tokens) of the symbols ``index``; None without tokens.

        index: None for all symbols.
        """
        sums = self.sums if index is None else self.sums[index]
        counts = self.counts if index is None else self.counts[index]
        total = int(counts.sum())
        return ((sums.sum(dim=0) / total).tolist(), total) if total else None


class HasRouterWeights(Protocol):
    """A model with routers."""

    def router_weights(
        self, src_tokens: Tensor, prev_output_tokens: Tensor, pair: str
    ) -> Mapping[str, Tensor]:
        """Return tau of every unit: {"encoder...": (B, S, n), "decoder...": (B, T, n)}."""


def collect(
    model: HasRouterWeights,
    pair: str,
    samples: Iterable[Dict[str, Any]],
    dictionaries: Mapping[str, Dictionary],
) -> Dict[str, TokenSums]:
    """Return {layer: sums} over the samples of a pair; ENCODER is the mean of all encoder layers.

    samples: batches of the pair's dataset. dictionaries: {lang: dictionary}.
    """
    import torch

    sums: Dict[str, TokenSums] = {}
    source, target = (dictionaries[lang] for lang in LanguagePair.parse(pair))
    for sample in samples:
        inputs = sample["net_input"]
        with torch.no_grad():
            weights = model.router_weights(inputs["src_tokens"], inputs["prev_output_tokens"], pair)
        for layer, tau in weights.items():
            encoder = layer.startswith(ENCODER)
            words = source if encoder else target
            tokens = inputs["src_tokens"] if encoder else sample["target"]
            of_batch = TokenSums.of(tau, tokens, len(words), words.pad())
            sums[layer] = sums[layer] + of_batch if layer in sums else of_batch
    layers = [of_layer for layer, of_layer in sums.items() if layer.startswith(ENCODER)]
    return {ENCODER: TokenSums.mean(layers), **sums} if layers else sums


class Row(NamedTuple):
    """One line of the table. share: mean of tau, one number for each block."""

    task: str
    layer: str
    kind: str
    category: str
    tokens: int
    share: List[float]


def uncounted(lang: str, dictionaries: Mapping[str, Dictionary]) -> Optional[str]:
    """Return why the order of a dictionary is not by frequency in its language; None if it is.

    dictionaries: {lang: dictionary} of the run.
    """
    from ..task_tokens import PREFIX  # imports torch

    def entries(dictionary: Dictionary) -> List[Tuple[str, int]]:
        listed = zip(dictionary.symbols, dictionary.count)
        return [entry for entry in listed if not entry[0].startswith(PREFIX)]

    words = entries(dictionaries[lang])
    others = [name for name, other in dictionaries.items() if name != lang]
    sharing = [name for name in others if entries(dictionaries[name]) == words]
    if sharing:  # fairseq-preprocess --joined-dictionary has counted all of them
        return f"dict.{lang}.txt is also that of {', '.join(sharing)}"
    numbers = {count for _, count in words[dictionaries[lang].nspecial :]}
    # one that was made of the vocabulary of a sub-word model
    return f"dict.{lang}.txt has one count for all words" if len(numbers) == 1 else None


def bands_of(
    dictionary: Dictionary,
    bounds: List[int],
    special: Iterable[int],
    counts: Optional[Sequence[int]] = None,
) -> Dict[str, List[int]]:
    """Return {"1-100": symbols by rank of frequency}; fairseq's dictionaries are in this order.

    special: symbols that belong to no band. counts: how often each symbol occurs (V,), where the
    dictionary is in another order.
    """
    special = set(special)
    ordinary = [i for i in range(dictionary.nspecial, len(dictionary)) if i not in special]
    if counts is not None:
        ordinary.sort(key=lambda index: -counts[index])
    bands: Dict[str, List[int]] = {}
    start = 0
    for bound in [*bounds, len(ordinary)]:
        if bound > start:
            end = min(bound, len(ordinary))
            name = f"{start + 1}-{bound}" if bound in bounds else f"{start + 1}-"
            if ordinary[start:end]:
                bands[name] = ordinary[start:end]
            start = bound
    return bands


def most_frequent(sums: TokenSums, dictionary: Dictionary, number: int) -> Dict[str, List[int]]:
    """Return {token: [its index]} of those that occur most, without the end of the sentence."""
    counts = Counter(
        {
            index: count
            for index, count in enumerate(sums.counts.tolist())
            if count and index >= dictionary.nspecial
        }
    )
    return {dictionary[index]: [index] for index, _ in counts.most_common(number)}


# (kind, category, symbols or None for all)
Category = Tuple[str, str, Optional[List[int]]]


def categories(
    layer: str,
    sums: TokenSums,
    dictionary: Dictionary,
    bounds: List[int],
    number: int,
    task_token: Optional[int] = None,
    is_counted: bool = True,
) -> Iterator[Category]:
    """Yield (kind, category, symbols or None for all) of one layer.

    is_counted: whether the dictionary is ordered by frequency; otherwise the words read are
    counted.
    """
    yield ALL, ALL, None
    special = [] if task_token is None else [task_token]
    for token in special:
        yield "symbol", dictionary[token], [token]
    yield "symbol", dictionary[dictionary.eos()], [dictionary.eos()]
    counts = None if is_counted else sums.counts.tolist()
    for name, index in bands_of(dictionary, bounds, special, counts).items():
        yield "frequency", name, index
    if not layer.startswith(ENCODER):
        for name, index in most_frequent(sums, dictionary, number).items():
            yield "token", name, index


def rows_of(
    pair: str,
    sums_by_layer: Mapping[str, TokenSums],
    dictionaries: Mapping[str, Dictionary],
    bounds: List[int],
    number: int,
    task_token: Optional[int] = None,
) -> List[Row]:
    """Return the rows of one task; kinds of tokens that do not occur have none."""
    rows = []
    langs = LanguagePair.parse(pair)
    for layer, sums in sums_by_layer.items():
        encoder = layer.startswith(ENCODER)
        lang = langs.source if encoder else langs.target
        words, is_counted = dictionaries[lang], uncounted(lang, dictionaries) is None
        token = task_token if encoder else None
        for kind, category, index in categories(
            layer, sums, words, bounds, number, token, is_counted
        ):
            share = sums.share(index)
            if share:
                rows.append(Row(pair, layer, kind, category, share[1], share[0]))
    return rows


def table(rows: List[Row]) -> Iterable[str]:
    """Yield the lines of the .tsv file."""
    blocks = [f"block {number}" for number in range(1, len(rows[0].share) + 1)]
    yield "\t".join(["task", "layer", "kind", "category", "tokens", *blocks])
    for row in rows:
        numbers = [f"{value:.6f}" for value in row.share]
        yield "\t".join([*row[:4], str(row.tokens), *numbers])
