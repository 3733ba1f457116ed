"""`fairseq-ext twin-distance`: L_t of a model with a twin (Serdyuk et al., Fig. 2 and 3).

PREFIX.tokens.tsv has L_t and -log P_f (in nats) of every token, PREFIX.words.tsv the mean L_t of
every word beside its frequency, PREFIX.tsv means and correlations. PREFIX.png draws L_t along some
sentences, with dotted lines between words; PREFIX.frequency.png mean L_t against the frequency of
the word, and L_t against -log P_f; PREFIX.histogram.png (.tsv) L_t of rare and of frequent words.
"""

from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from ...compat.text_lines import UnreadableText, lines_of
from ...compat.user_errors import option_of
from ...streams.language_pair import LanguagePair
from ...tools import UsageError
from ...tools.curves.figures import save, write_table
from .figures import draw_frequency, draw_sentences
from .ranks import spearman
from .token_distances import batches, check_finite, collect, load
from .twin_histogram import RARE, draw, histogram
from .words import (
    UNITS,
    Sentences,
    Token,
    Word,
    by_sentence,
    has_mark,
    name_of_mark,
    occurrences,
    words_of,
    words_with_frequency,
)

if TYPE_CHECKING:
    from fairseq.data import Dictionary

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
        "--bpe characters (letter, characters: with | or \u2581 between words; default: token)",
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


def check_unit(unit: str, dictionary: "Dictionary") -> None:
    """Raise UsageError, or print a note, where each sentence would count as one word."""
    if has_mark(dictionary.symbols, unit):
        return
    if unit == "sentencepiece":  # whose every text has the mark
        raise UsageError(
            f"--unit {unit}: the dictionary of the target has no {name_of_mark(unit)}, so that a "
            "sentence would count as one word; allowed: the unit of the data, such as --unit token"
        )
    # right for recordings of single words
    print(f"--unit {unit}: the dictionary has no {name_of_mark(unit)}: a sentence is one word")


def _words_in(path: str, unit: str, has_marks: bool) -> Iterator[str]:
    """Yield the words of a text one after the other; UsageError for a text without marks.

    has_marks: whether the data have them.
    """
    is_marked = False
    for line in lines_of(path):
        symbols = line.split()
        is_marked = is_marked or has_mark(symbols, unit)
        for word, _ in words_of(symbols, unit):
            yield word
    if has_marks and not is_marked:
        raise UsageError(
            f"--text {path}: --unit {unit}, and the text has no {name_of_mark(unit)}, so that a "
            "line would count as one word; allowed: a text that is cut as the data are"
        )


def counted(args: Namespace, dictionary: "Dictionary") -> Optional[Mapping[str, int]]:
    """Return {word: how often it is in the training text}, or None to count what is looked at."""
    if args.text:
        try:
            has_marks = has_mark(dictionary.symbols, args.unit)
            words = Counter(_words_in(args.text, args.unit, has_marks))
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


def frequencies(
    args: Namespace,
    values: Mapping[str, Sequence[float]],
    dictionary: "Dictionary",
    source: Optional["Dictionary"],
) -> Optional[Mapping[str, int]]:
    """Return what `counted` does, with a note where the dictionary does not count the target.

    values: {word: ..} of what is looked at. source: the dictionary of the source, if there is one.
    """
    words = counted(args, dictionary)
    if args.text or words is None or len(values) < 2:
        return words
    # one that was made of the vocabulary of a sub-word model has numbers that count nothing
    if len({words.get(word) for word in values}) == 1:
        print(
            "the dictionary has one count for all words: they are counted among the sentences "
            "read; --text counts them in a text"
        )
        return None
    # of language models both are one object; fairseq-preprocess --joined-dictionary writes two
    if source is not None and source is not dictionary:
        if (source.symbols, source.count) == (dictionary.symbols, dictionary.count):
            print("the dictionary counts words of source and target; --text counts those of a text")
    return words


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


def dictionaries(task: Any, pair: Optional[str]) -> Tuple[Optional["Dictionary"], "Dictionary"]:
    """Return the dictionaries of source and target; None for a source that is no text."""
    of_language = getattr(task, "dictionaries", None) or {}
    langs = LanguagePair.parse(pair) if pair else ("", "")
    source, target = (of_language.get(lang) for lang in langs)
    return source or task.source_dictionary, target or task.target_dictionary


def report_twin_distance(args: Namespace) -> int:
    """Write the files; print the summary and their names."""
    for name in ("sentences", "max_tokens", "rare"):
        if getattr(args, name) < 1:
            option = option_of(name, getattr(args, name))
            raise UsageError(f"{option} is not allowed; allowed: at least 1")
    model, criterion, task = load(args)
    samples = batches(args, model, task)
    source, dictionary = dictionaries(task, args.pair)
    check_unit(args.unit, dictionary)
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
    table = words_with_frequency(values, frequencies(args, values, dictionary, source))
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
