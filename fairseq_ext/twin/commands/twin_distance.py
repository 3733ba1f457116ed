"""`fairseq-ext twin-distance`: L_t of a model with a twin (Serdyuk et al., Fig. 2 and 3).

PREFIX.tokens.tsv has L_t and -log P_f (in nats) of every token, PREFIX.words.tsv the mean L_t of
every word beside its frequency, PREFIX.tsv means and correlations. PREFIX.png draws L_t along some
sentences, with dotted lines between words; PREFIX.frequency.png mean L_t against the frequency of
the word, and L_t against -log P_f; PREFIX.histogram.png (.tsv) L_t of rare and of frequent words.
"""

import math
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)
from zipfile import BadZipFile

from ...compat.checkpoints.configurations import chosen_name, options_of, stored_name
from ...compat.text_lines import UnreadableText, lines_of
from ...streams.language_pair import LanguagePair
from ...tools import UsageError
from ...tools.checkpoint.reading import read
from ...tools.curves.figures import save, write_table
from .export import twin_models
from .figures import draw_frequency, draw_sentences
from .ranks import spearman
from .twin_histogram import RARE, draw, histogram
from .words import (
    UNITS,
    Sentences,
    Token,
    Word,
    by_sentence,
    occurrences,
    words_of,
    words_with_frequency,
)

if TYPE_CHECKING:
    from fairseq.data import Dictionary
    from fairseq.models import BaseFairseqModel
    from fairseq.tasks import FairseqTask

    from ..criterion import TwinCriterion

TABLES = (".tsv", ".tokens.tsv", ".words.tsv", ".histogram.tsv")
ENDINGS = (*TABLES, ".png", ".frequency.png", ".histogram.png")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `fairseq-ext twin-distance`."""
    parser.add_argument(
        "checkpoint", metavar="CHECKPOINT", help="checkpoint of a run with --criterion twin"
    )
    parser.add_argument("data", metavar="DATA", help="data folder of the run")
    parser.add_argument(
        "--output",
        default="twin-distance",
        metavar="PREFIX",
        help="write PREFIX.tsv ... (default: twin-distance)",
    )
    parser.add_argument(
        "--subset", default="test", help="subset of the data to read (default: test)"
    )
    parser.add_argument(
        "--features",
        metavar="DIR",
        help="for captions: folder of the feature files (default: that of the training)",
    )
    parser.add_argument("--pair", metavar="PAIR", help="direction of a multi-way model")
    parser.add_argument(
        "--unit",
        choices=UNITS,
        default="token",
        help="what counts as a word: a token, or tokens joined as by fairseq's --post-process and "
        "--bpe characters (letter, characters: with | or \u2581 between words)",
    )
    parser.add_argument(
        "--text",
        metavar="FILE",
        help="training text in which words are counted, tokenised as the data (default: the "
        "counts of the dictionary for tokens, otherwise the sentences read)",
    )
    parser.add_argument(
        "--rare",
        type=int,
        default=RARE,
        metavar="N",
        help=f"for the histogram: number of least frequent words, at most half (default: {RARE})",
    )
    parser.add_argument(
        "--show", metavar="ID,...", help="sentences to draw (default: the first three)"
    )
    parser.add_argument(
        "--sentences",
        type=int,
        default=1000,
        metavar="N",
        help="maximum number of sentences to read (default: 1000)",
    )
    parser.add_argument(
        "--max-tokens",
        type=int,
        default=4000,
        help="maximum number of tokens in a batch (default: 4000)",
    )


# ---------------------------------------------------------------- the checkpoint


def load(args: Namespace) -> Tuple["BaseFairseqModel", "TwinCriterion", "FairseqTask"]:
    """Return (model, criterion, task) of a checkpoint, all for evaluation."""
    from fairseq import tasks
    from fairseq.dataclass.utils import merge_with_parent
    from omegaconf import DictConfig

    from ...common.stored import WITHOUT_SCORES
    from ...compat.checkpoints.refusals import check_dictionaries
    from ...streams.stored_pairs import stored_pairs
    from ..config import TwinConfig
    from ..criterion import TwinCriterion

    state = read(args.checkpoint, *twin_models())
    _check_trained(state, args.checkpoint)
    # legacy models store a Namespace
    run = DictConfig(state["cfg"], flags={"allow_objects": True})
    run.task.data = args.data
    options = options_of(run.task)
    if args.features is not None:
        if "features" not in options:
            raise UsageError(
                f"--features {args.features}: {args.checkpoint} is of the task "
                f"{chosen_name(options, 'task')}, which reads none; leave it out"
            )
        options["features"] = args.features
    options.update({name: value for name, value in WITHOUT_SCORES.items() if name in options})
    # the pair comes from --pair, among all that the checkpoint was trained for
    if "lang_pairs" in options:
        options["source_lang"] = options["target_lang"] = None
        # a training with -s and -t named its pairs to the model alone
        options["lang_pairs"] = options["lang_pairs"] or ",".join(stored_pairs(run.model))
    try:
        task = tasks.setup_task(run.task)
        model = task.build_model(run.model)
        model.load_state_dict(state["model"])
        check_dictionaries(args.checkpoint, state, task)
        # with the backward network, which commands that evaluate leave out
        criterion_cfg = merge_with_parent(TwinConfig(), run.criterion)
        criterion = TwinCriterion.of_run(criterion_cfg, task, is_stored=False)
        criterion.load_state_dict(state["criterion"])
        task.load_dataset(args.subset)
    except (ValueError, RuntimeError, FileNotFoundError, KeyError) as error:
        raise UsageError(f"DATA {args.data}: {error}") from error
    return model.eval(), criterion.eval(), task


def _check_trained(state: Dict[str, Any], path: str) -> None:
    """Raise UsageError unless the checkpoint holds a backward network."""
    name = stored_name(state, "criterion")
    if name != "twin" or not state.get("criterion"):
        raise UsageError(
            f"CHECKPOINT {path} has no backward network (criterion {name}); allowed: one of a "
            "training with --criterion twin --twin-target backward, as fairseq-train wrote it"
        )


def batches(
    args: Namespace, model: "BaseFairseqModel", task: "FairseqTask"
) -> Iterator[Dict[str, Any]]:
    """Yield the samples of the subset, in order, until there are enough sentences."""
    from fairseq import utils

    from ...streams.task import StreamsTask

    dataset, pair = task.dataset(args.subset), args.pair
    if isinstance(task, StreamsTask):
        datasets = dataset.datasets
        if pair not in datasets:
            what = f"--pair {pair}:" if pair else "--pair is missing;"
            raise UsageError(f"{what} allowed: {', '.join(datasets)}")
        dataset = datasets[pair]
    elif pair:
        raise UsageError(f"--pair {pair}: {args.checkpoint} is of one direction; leave it out")
    limits = utils.resolve_max_positions(task.max_positions(), model.max_positions())
    indices = dataset.ordered_indices()
    indices, _ = dataset.filter_indices_by_size(indices, limits)
    # the first sentences of the set, in batches by length
    chosen = set(sorted(indices.tolist())[: args.sentences])
    # the order by length stays
    indices = indices[[index in chosen for index in indices.tolist()]]
    longest = max(map(dataset.num_tokens, chosen), default=0)
    if longest > args.max_tokens:
        raise UsageError(
            f"--max-tokens {args.max_tokens}: --subset {args.subset} has a sentence of {longest}; "
            "allowed: at least that"
        )
    for batch in dataset.batch_by_size(indices, max_tokens=args.max_tokens):
        sample = dataset.collater([_item(dataset, index, args.data) for index in batch])
        if pair:
            sample["net_input"]["pair"] = pair
        yield sample


def _item(dataset: Any, index: int, data: str) -> Dict[str, Any]:
    """Return an entry; UsageError naming the file where its features cannot be read."""
    try:
        return dataset[index]
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        # of speech_to_text and of image_captioning; the error does not always say the file
        paths = getattr(dataset, "audio_paths", getattr(dataset, "paths", None))
        path = "" if paths is None else str(paths[index])
        place = "" if path in str(error) else f"{path}: "
        raise UsageError(f"DATA {data}: {place}{error}") from error


# ---------------------------------------------------------------- numbers


def collect(
    model: "BaseFairseqModel",
    criterion: "TwinCriterion",
    samples: Iterable[Dict[str, Any]],
    dictionary: "Dictionary",
) -> List[Token]:
    """Return the matched tokens of the samples, by sentence and position."""
    import torch

    from ..contract import matched

    tokens = []
    for sample in samples:
        target = sample["target"]
        # the inputs of the backward network; its own targets are not looked at here
        call, _ = criterion.call(sample)
        with torch.no_grad():
            (logits, *_), twin = model(**sample["net_input"], twin=call)
            padding = target.eq(dictionary.pad())
            penalty, _ = criterion.distance(twin, padding)
        nll = -logits.float().log_softmax(dim=2).gather(2, target.unsqueeze(2)).squeeze(2)  # (B, T)
        # the last real token of a row is known to the backward network: it has no L_t
        for row, position in matched(padding).nonzero().tolist():
            symbol = dictionary[int(target[row, position])]
            numbers = penalty[row, position].item(), nll[row, position].item()
            tokens.append(Token(int(sample["id"][row]), position, symbol, *numbers))
    return sorted(tokens)


def check_finite(tokens: List[Token], path: str) -> None:
    """Raise UsageError where the numbers of a token are none: the training has diverged."""
    for token in tokens:
        if not (math.isfinite(token.penalty) and math.isfinite(token.nll)):
            raise UsageError(
                f"CHECKPOINT {path}: sentence {token.sentence}, position {token.position}: L_t is "
                f"{token.penalty:g} and -log P_f {token.nll:g}; allowed: finite numbers"
            )


def _words_in(path: str, unit: str) -> Iterator[str]:
    """Yield the words of a text one after the other."""
    for line in lines_of(path):
        for word, _ in words_of(line.split(), unit):
            yield word


def counted(args: Namespace, dictionary: "Dictionary") -> Optional[Mapping[str, int]]:
    """Return {word: how often it is in the training text}, or None to count what is looked at."""
    if args.text:
        try:
            words = Counter(_words_in(args.text, args.unit))
        except UnreadableText as error:
            raise UsageError(f"--text: {error}") from error
        if args.unit == "token":
            # what the model reads and writes of words outside its dictionary
            outside = [number for word, number in words.items() if word not in dictionary]
            words[dictionary[dictionary.unk()]] += sum(outside)
        return words
    # fairseq-preprocess has counted the tokens of the training text
    if args.unit == "token":
        return dict(zip(dictionary.symbols, dictionary.count))
    # words of several tokens are in no dictionary: they are counted among what was read
    return None


def summary(tokens: List[Token], words: List[Word]) -> List[Tuple[str, float]]:
    """Return names and numbers of PREFIX.tsv."""
    # one number of each token, then two of each word
    penalties, nll = [token.penalty for token in tokens], [token.nll for token in tokens]
    frequency, means = [word.frequency for word in words], [word.mean for word in words]
    return [
        ("tokens", len(tokens)),
        ("words", len(words)),
        ("mean L_t", sum(penalties) / len(penalties)),
        ("mean -log P_f", sum(nll) / len(nll)),
        ("rank correlation of mean L_t and frequency, over words", spearman(means, frequency)),
        ("rank correlation of L_t and -log P_f, over tokens", spearman(penalties, nll)),
    ]


# ---------------------------------------------------------------- files


def write_rows(
    output: Union[str, Path], names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Write a table of tab-separated values under the names of its columns."""
    lines = ("\t".join(map(str, row)) for row in [names, *rows])
    write_table(lines, output)


def shown(args: Namespace, sentences: Sentences) -> List[List[Token]]:
    """Return the sentences that --show names; UsageError for one that there is not."""
    if args.show is None:
        return list(sentences.values())[:3]
    numbers = args.show.split(",")
    for number in numbers:
        if not number.isdecimal() or int(number) not in sentences:
            raise UsageError(
                f"--show {args.show}: {number!r} is none of the {len(sentences)} sentences with "
                f"tokens, whose numbers begin with {', '.join(map(str, list(sentences)[:5]))}"
            )
    return [sentences[int(number)] for number in numbers]


def report_twin_distance(args: Namespace) -> int:
    """Write the files; print the summary and their names."""
    if args.sentences < 1 or args.max_tokens < 1:
        raise UsageError(f"--sentences {args.sentences} --max-tokens {args.max_tokens}: from 1")
    if args.rare < 1:
        raise UsageError(f"--rare {args.rare}: from 1")
    model, criterion, task = load(args)
    target = LanguagePair.parse(args.pair).target if args.pair else None
    samples = batches(args, model, task)
    words = getattr(task, "dictionaries", None)
    dictionary = words[target] if words and target in words else task.target_dictionary
    tokens = collect(model, criterion, samples, dictionary)
    if not tokens:
        raise UsageError(f"--subset {args.subset}: no sentence has a token")
    check_finite(tokens, args.checkpoint)
    sentences = by_sentence(tokens)
    chosen = shown(args, sentences)
    values = occurrences(sentences, args.unit)
    unknown = dictionary[dictionary.unk()]
    if not args.text and args.unit == "token" and len(values) > 1 and values.pop(unknown, None):
        # dict.txt has no number for it, and 1 would make it the rarest word
        print(f"{unknown} is left out of the words: --text counts it")
    table = words_with_frequency(values, counted(args, dictionary))
    groups = histogram(values, [word.text for word in table], args.rare)
    numbers = [*summary(tokens, table), *groups.summary()]
    save(draw_sentences(chosen, args.unit), f"{args.output}.png")
    save(draw_frequency(table, tokens), f"{args.output}.frequency.png")
    save(draw(groups), f"{args.output}.histogram.png")
    bins = ("from", "to", "rare", "frequent")
    write_rows(f"{args.output}.histogram.tsv", bins, groups.shares())
    columns = ("sentence", "position", "token", "L_t", "-log P_f")
    write_rows(f"{args.output}.tokens.tsv", columns, tokens)
    write_rows(f"{args.output}.words.tsv", Word._fields, table)
    rows = [(name, f"{value:g}") for name, value in numbers]
    write_rows(f"{args.output}.tsv", ("quantity", "value"), rows)
    print("\n".join(f"{name}: {value}" for name, value in rows))
    print("\n".join(f"{args.output}{ending}" for ending in ENDINGS))
    return 0
