"""`fairseq-ext router-usage`: how much each task uses each shared block (Zaremoodi et al., Fig. 2).

PREFIX.tsv holds the mean of tau over tokens, for each task, layer and kind of token; PREFIX.png
draws it by block and task in one panel for each layer, PREFIX.categories.png by kind of token in
the encoder and in the top decoder layer, one panel for each task. A token of the decoder is the one
it is to write.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
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
from ...tools import UsageError, atomic_path
from ...tools.checkpoint.reading import read
from ...tools.curves.figures import new_figure

if TYPE_CHECKING:  # the command-line tool reads this file without importing torch
    from fairseq.data import Dictionary
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import Tensor

    from ..model import RoutedModel
    from ..task import RoutedMtlTask

MODEL = "routed_gru"
# all encoder layers in both directions together, as in the paper's figure
ENCODER = "encoder"
ALL = "all"
BANDS = "100,1000"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help=f"checkpoint of a {MODEL}")
    parser.add_argument("data", metavar="DATA", help="folder written by fairseq-preprocess")
    parser.add_argument(
        "--output",
        default="router-usage",
        metavar="PREFIX",
        help="write PREFIX.tsv, PREFIX.png, PREFIX.categories.png (default: router-usage)",
    )
    parser.add_argument(
        "--subset", default="test", help="subset of the data to read (default: test)"
    )
    parser.add_argument(
        "--pairs", metavar="PAIR,...", help="tasks to analyse (default: all of the checkpoint)"
    )
    parser.add_argument(
        "--bands",
        default=BANDS,
        metavar="RANK,...",
        help=f"bounds of the frequency bands, as ranks in the dictionary (default: {BANDS})",
    )
    parser.add_argument(
        "--tokens",
        type=int,
        default=12,
        metavar="N",
        help="number of most frequent target tokens of each task, for instance tags, that are "
        "separate categories in the decoder (default: 12)",
    )
    parser.add_argument(
        "--max-tokens",
        type=int,
        default=4000,
        help="maximum number of tokens in a batch (default: 4000)",
    )


# ---------------------------------------------------------------- sums


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


# ---------------------------------------------------------------- kinds of tokens


class Row(NamedTuple):
    """One line of the table. share: mean of tau, one number for each block."""

    task: str
    layer: str
    kind: str
    category: str
    tokens: int
    share: List[float]


def parse_bands(text: str) -> List[int]:
    """Return [100, 1000] of "100,1000". Raises UsageError unless these are increasing numbers."""
    words = text.split(",")
    bounds = [int(word) for word in words if word.isdecimal()]
    if len(bounds) != len(words) or bounds != sorted(set(bounds)) or bounds[0] < 1:
        raise UsageError(f"--bands {text!r}: allowed: increasing numbers from 1, e.g. {BANDS}")
    return bounds


def bands_of(
    dictionary: Dictionary, bounds: List[int], special: Iterable[int]
) -> Dict[str, List[int]]:
    """Return {"1-100": symbols by rank of frequency}; fairseq's dictionaries are in this order.

    special: symbols that belong to no band.
    """
    special = set(special)
    ordinary = [i for i in range(dictionary.nspecial, len(dictionary)) if i not in special]
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
) -> Iterator[Category]:
    """Yield (kind, category, symbols or None for all) of one layer."""
    yield ALL, ALL, None
    special = [] if task_token is None else [task_token]
    for token in special:
        yield "symbol", dictionary[token], [token]
    yield "symbol", dictionary[dictionary.eos()], [dictionary.eos()]
    for name, index in bands_of(dictionary, bounds, special).items():
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
        words = dictionaries[langs.source if encoder else langs.target]
        token = task_token if encoder else None
        for kind, category, index in categories(layer, sums, words, bounds, number, token):
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


# ---------------------------------------------------------------- pictures


def _panels(titles: Sequence[str]) -> Tuple[Figure, Sequence[Axes]]:
    """Return a figure with a panel for each title."""
    figure, axes = new_figure(len(titles), 2, inches=(6, 3.6))
    for panel, title in zip(axes, titles):
        panel.set_title(title)
        panel.set_ylabel("share (mean of tau)")
    return figure, axes


def draw_layers(rows: List[Row]) -> Figure:
    """Draw Fig. 2: bars side by side, blocks along the axis, one colour for each task."""
    whole = [row for row in rows if row.kind == ALL]
    layers, tasks = (list(dict.fromkeys(column)) for column in zip(*((r[1], r[0]) for r in whole)))
    figure, axes = _panels(layers)
    width = 0.8 / len(tasks)
    for panel, layer in zip(axes, layers):
        for row in (row for row in whole if row.layer == layer):
            place = tasks.index(row.task)
            x = [block + (place - (len(tasks) - 1) / 2) * width for block in range(len(row.share))]
            panel.bar(x, row.share, width, color=f"C{place % 10}", label=row.task)
        names = [f"Block {block + 1}" for block in range(len(whole[0].share))]
        panel.set_xticks(range(len(names)), names)
    axes[0].legend(fontsize="small")
    return figure


def draw_categories(rows: List[Row]) -> Figure:
    """Draw a stacked bar for each kind of token that the encoder reads and the decoder writes."""
    top = [row.layer for row in rows if not row.layer.startswith(ENCODER)][-1]
    tasks = list(dict.fromkeys(row.task for row in rows))
    places = [(task, layer) for task in tasks for layer in (ENCODER, top)]
    figure, axes = _panels([f"{task}, {layer}" for task, layer in places])
    for panel, (task, layer) in zip(axes, places):
        bars = [row for row in rows if row.task == task and row.layer == layer]
        floor = [0.0] * len(bars)
        for block in range(len(bars[0].share)):
            values = [row.share[block] for row in bars]
            panel.bar(range(len(bars)), values, bottom=floor, label=f"Block {block + 1}")
            floor = [low + value for low, value in zip(floor, values)]
        # a dollar sign would begin a formula
        names = [row.category.replace("$", r"\$") for row in bars]
        panel.set_xticks(range(len(bars)), names, rotation=90, fontsize="small")
    axes[0].legend(fontsize="small")
    return figure


# ---------------------------------------------------------------- the checkpoint


def load(args: Namespace) -> Tuple[RoutedModel, RoutedMtlTask, List[str]]:
    """Return the model of a checkpoint, its task, and the pairs to look at."""
    from fairseq import tasks
    from omegaconf import OmegaConf

    from ...streams.stored_pairs import stored_pairs

    state = read(args.checkpoint, MODEL)
    cfg = OmegaConf.to_container(OmegaConf.create(state["cfg"]), enum_to_str=True)
    trained = stored_pairs(cfg["model"])
    pairs = list(dict.fromkeys(args.pairs.split(","))) if args.pairs else trained
    for pair in (pair for pair in pairs if pair not in trained):
        raise UsageError(f"--pairs {pair}: allowed: {','.join(trained)}")
    options = {"data": args.data, "lang_pairs": ",".join(trained), "eval_bleu": False}
    cfg["task"].update(options, source_lang=None, target_lang=None)
    try:
        task = tasks.setup_task(Namespace(**cfg["task"], task=cfg["task"]["_name"]))
        model = task.build_model(OmegaConf.create(cfg["model"]), from_checkpoint=True)
        model.load_state_dict(state["model"])
    except (ValueError, RuntimeError, FileNotFoundError) as error:
        raise UsageError(f"DATA {args.data}: {error}") from error
    return model.eval(), task, pairs


def batches(task: RoutedMtlTask, pair: str, args: Namespace) -> Iterator[Dict[str, Any]]:
    """Yield the collated batches of one pair's subset."""
    task.pair = pair  # the data of others need not be there
    try:
        task.load_dataset(args.subset)
    except (ValueError, FileNotFoundError) as error:
        raise UsageError(f"DATA {args.data}: {error}") from error
    dataset = task.dataset(args.subset)
    longest = int(dataset.sizes.max())
    if args.max_tokens < longest:
        raise UsageError(
            f"--max-tokens {args.max_tokens}: allowed: {longest} or more, tokens of the longest "
            f"sentence of {pair}"
        )
    indices = dataset.ordered_indices()
    for batch in dataset.batch_by_size(indices, max_tokens=args.max_tokens):
        yield dataset.collater([dataset[index] for index in batch])


def report_router_usage(args: Namespace) -> int:
    """Write the three files; print their names."""
    bounds = parse_bands(args.bands)
    if args.tokens < 0 or args.max_tokens < 1:
        raise UsageError(f"--tokens {args.tokens} --max-tokens {args.max_tokens}: from 0, from 1")
    model, task, pairs = load(args)
    rows: List[Row] = []
    for pair in pairs:
        try:
            sums = collect(model, pair, batches(task, pair, args), task.dictionaries)
        except ValueError as error:
            raise UsageError(f"CHECKPOINT {args.checkpoint}: {error}") from error
        token = task.task_token(pair)
        rows += rows_of(pair, sums, task.dictionaries, bounds, args.tokens, token)
    figures = {".png": draw_layers(rows), ".categories.png": draw_categories(rows)}
    with atomic_path(f"{args.output}.tsv") as path:
        path.write_text("\n".join(table(rows)) + "\n", encoding="utf-8")
    for ending, figure in figures.items():
        with atomic_path(f"{args.output}{ending}") as path:
            figure.savefig(path, dpi=120)
    print("\n".join(f"{args.output}{ending}" for ending in (".tsv", *figures)))
    return 0
