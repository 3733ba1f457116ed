"""`fairseq-ext router-usage`: how much each task uses each shared block (Zaremoodi et al., Fig. 2).

PREFIX.tsv holds the mean of tau over tokens, for each task, layer and kind of token; PREFIX.png
draws it by block and task in one panel for each layer, PREFIX.categories.png by kind of token in
the encoder and in the top decoder layer, one panel for each task.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Tuple

from ...compat.user_errors import option_of
from ...streams.language_pair import LanguagePair
from ...tools import UsageError
from ...tools.checkpoint.reading import read
from ...tools.curves.figures import save, write_table
from .figures import draw_categories, draw_layers
from .token_shares import Row, collect, rows_of, table, uncounted

if TYPE_CHECKING:  # the command-line tool reads this file without importing torch
    from ..model import RoutedModel
    from ..task import RoutedMtlTask

MODEL = "routed_gru"
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
        help="bounds of the frequency bands, as ranks in the dictionary, or among the sentences "
        f"read where the dictionary counts several languages (default: {BANDS})",
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


def parse_bands(text: str) -> List[int]:
    """Return [100, 1000] of "100,1000". Raises UsageError unless these are increasing numbers."""
    words = text.split(",")
    bounds = [int(word) for word in words if word.isdecimal()]
    if len(bounds) != len(words) or bounds != sorted(set(bounds)) or bounds[0] < 1:
        raise UsageError(f"--bands {text!r}: allowed: increasing numbers from 1, e.g. {BANDS}")
    return bounds


def load(args: Namespace) -> Tuple[RoutedModel, RoutedMtlTask, List[str]]:
    """Return the model of a checkpoint, its task, and the pairs to look at."""
    from fairseq import tasks
    from omegaconf import OmegaConf

    from ...compat.checkpoints.refusals import check_dictionaries
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
        # options that older checkpoints lack refer to those of the task
        model = task.build_model(OmegaConf.create(cfg).model, from_checkpoint=True)
        model.load_state_dict(state["model"])
        # words of the same number in another order would be counted under wrong names
        check_dictionaries(args.checkpoint, state, task)
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
    for name, value, least in (("tokens", args.tokens, 0), ("max_tokens", args.max_tokens, 1)):
        if value < least:
            raise UsageError(f"{option_of(name, value)} is not allowed; allowed: at least {least}")
    model, task, pairs = load(args)
    rows: List[Row] = []
    for pair in pairs:
        try:
            sums = collect(model, pair, batches(task, pair, args), task.dictionaries)
        except ValueError as error:
            raise UsageError(f"CHECKPOINT {args.checkpoint}: {error}") from error
        token = task.task_token(pair)
        rows += rows_of(pair, sums, task.dictionaries, bounds, args.tokens, token)
    for lang in dict.fromkeys(lang for pair in pairs for lang in LanguagePair.parse(pair)):
        reason = uncounted(lang, task.dictionaries)
        if reason:
            print(f"frequency bands of {lang}: words are counted in the sentences read; {reason}")
    figures = {".png": draw_layers(rows), ".categories.png": draw_categories(rows)}
    write_table(table(rows), f"{args.output}.tsv")
    for ending, figure in figures.items():
        save(figure, f"{args.output}{ending}")
    print("\n".join(f"{args.output}{ending}" for ending in (".tsv", *figures)))
    return 0
