"""`fairseq-ext twin-distance`: L_t of a model with a twin (Serdyuk et al., Fig. 2 and 3).

PREFIX.tokens.tsv has L_t and -log P_f (in nats) of every token, PREFIX.words.tsv the mean L_t of
every word beside its frequency, PREFIX.tsv means and correlations. PREFIX.png draws L_t along some
sentences, with dotted lines between words; PREFIX.frequency.png mean L_t against the frequency of
the word, and L_t against -log P_f.
"""

import math
from collections import Counter
from typing import Dict, Iterable, List, NamedTuple, Tuple
from zipfile import BadZipFile

from . import UsageError, atomic_path
from .checkpoint import read
from .export_twin import twin_models
from .plot import new_figure, save

ENDINGS = (".tsv", ".tokens.tsv", ".words.tsv", ".png", ".frequency.png")
UNITS = ("token", "subword_nmt", "sentencepiece", "letter", "characters")
# symbols that separate words and belong to none
SEPARATORS = {"letter": "|", "characters": "\u2581"}


def add_arguments(parser):
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="of a run with --criterion twin")
    parser.add_argument("data", metavar="DATA", help="the data folder")
    parser.add_argument(
        "--output",
        default="twin-distance",
        metavar="PREFIX",
        help="write PREFIX.tsv ... (default: twin-distance)",
    )
    parser.add_argument("--subset", default="test", help="which sentences (default: test)")
    parser.add_argument(
        "--features",
        metavar="DIR",
        help="of captions: folder of the feature files (default: that of the training)",
    )
    parser.add_argument("--pair", metavar="PAIR", help="direction of a multi-way model")
    parser.add_argument(
        "--unit",
        choices=UNITS,
        default="token",
        help="what a word is: a token, or tokens put together as fairseq's --post-process and "
        "--bpe characters do (letter, characters: with | or \u2581 between words)",
    )
    parser.add_argument(
        "--text",
        metavar="FILE",
        help="training text, tokens as in the data, to count words in (default: for tokens the "
        "counts of the dictionary, otherwise the sentences looked at)",
    )
    parser.add_argument(
        "--show", metavar="ID,...", help="sentences to draw (default: the first three)"
    )
    parser.add_argument(
        "--sentences", type=int, default=1000, metavar="N", help="look at N at most (default: 1000)"
    )
    parser.add_argument(
        "--max-tokens", type=int, default=4000, help="tokens in a batch (default: 4000)"
    )


class Token(NamedTuple):
    """One token that both networks predict. penalty: L_t. nll: -log P_f, in nats."""

    sentence: int
    position: int
    symbol: str
    penalty: float
    nll: float


# ---------------------------------------------------------------- the checkpoint


def load(args):
    """(model, criterion, task) of a checkpoint, all for evaluation."""
    from fairseq import tasks
    from omegaconf import DictConfig

    state = read(args.checkpoint, *twin_models())
    _check_trained(state, args.checkpoint)
    run = DictConfig(state["cfg"], flags={"allow_objects": True})
    run.task.data = args.data
    options = run.task if isinstance(run.task, DictConfig) else vars(run.task)
    if args.features is not None:
        if "features" not in options:
            raise UsageError(
                f"--features {args.features}: {args.checkpoint} is of the task "
                f"{options.get('_name')}, which reads none; leave it out"
            )
        options["features"] = args.features
    if "eval_bleu" in options:
        options["eval_bleu"] = False
    if "lang_pairs" in options:
        options["source_lang"] = options["target_lang"] = None
    run.criterion.twin_stored = False
    try:
        task = tasks.setup_task(run.task)
        model = task.build_model(run.model)
        model.load_state_dict(state["model"])
        criterion = task.build_criterion(run.criterion)
        criterion.load_state_dict(state["criterion"])
        task.load_dataset(args.subset)
    except (ValueError, RuntimeError, FileNotFoundError, KeyError) as error:
        raise UsageError(f"DATA {args.data}: {error}") from error
    return model.eval(), criterion.eval(), task


def _check_trained(state, path):
    options = state["cfg"]["criterion"]
    name = options if not isinstance(options, dict) else options.get("_name")
    if name != "twin" or not state.get("criterion"):
        raise UsageError(
            f"CHECKPOINT {path} has no backward network (criterion {name}); allowed: one of a "
            "training with --criterion twin --twin-target backward, as fairseq-train wrote it"
        )


def batches(args, model, task):
    """The samples of the subset, in order, until there are enough sentences."""
    from fairseq import utils

    dataset, pair = task.dataset(args.subset), args.pair
    known = getattr(dataset, "datasets", None) if hasattr(task, "dictionaries") else None
    if known is not None:
        if pair not in known:
            raise UsageError(f"--pair {pair}: allowed: {', '.join(known)}")
        dataset = known[pair]
    elif pair:
        raise UsageError(f"--pair {pair}: {args.checkpoint} is of one direction; leave it out")
    limits = utils.resolve_max_positions(task.max_positions(), model.max_positions())
    indices = dataset.ordered_indices()
    indices, _ = dataset.filter_indices_by_size(indices, limits)
    chosen = set(sorted(indices.tolist())[: args.sentences])
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


def _item(dataset, index, data):
    """One entry of the dataset; UsageError naming the file where its features cannot be read."""
    try:
        return dataset[index]
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        # of speech_to_text and of image_captioning; the error does not always say the file
        paths = getattr(dataset, "audio_paths", getattr(dataset, "paths", None))
        known = paths is None or str(paths[index]) in str(error)
        raise UsageError(f"DATA {data}: {'' if known else f'{paths[index]}: '}{error}") from error


# ---------------------------------------------------------------- numbers


def collect(model, criterion, samples, dictionary) -> List[Token]:
    """The matched tokens of the samples, by sentence and position."""
    import torch

    from ..twin.contract import matched

    found = []
    for sample in samples:
        target = sample["target"]
        call, _ = criterion.call(sample)
        with torch.no_grad():
            (logits, *_), twin = model(**sample["net_input"], twin=call)
            padding = target.eq(dictionary.pad())
            penalty, _ = criterion.distance(twin, padding)
        nll = -logits.float().log_softmax(dim=2).gather(2, target.unsqueeze(2)).squeeze(2)
        for row, position in matched(padding).nonzero().tolist():
            symbol = dictionary[int(target[row, position])]
            numbers = penalty[row, position].item(), nll[row, position].item()
            found.append(Token(int(sample["id"][row]), position, symbol, *numbers))
    return sorted(found)


def words_of(symbols: List[str], unit: str) -> List[Tuple[str, List[int]]]:
    """[(word, its places)] of a sentence; what only separates words is in none."""
    if unit == "token":
        return [(symbol, [place]) for place, symbol in enumerate(symbols)]
    words: List[Tuple[str, List[int]]] = []
    begin = True
    for place, symbol in enumerate(symbols):
        if symbol == SEPARATORS.get(unit):
            begin = True
            continue
        if unit == "sentencepiece" and symbol.startswith("\u2581"):
            begin, symbol = True, symbol[1:]
        joined = unit == "subword_nmt" and symbol.endswith("@@")
        text = symbol[:-2] if joined else symbol
        if begin:
            words.append((text, [place]))
        else:
            words[-1] = (words[-1][0] + text, [*words[-1][1], place])
        begin = unit == "subword_nmt" and not joined
    return words


def by_sentence(tokens: Iterable[Token]) -> Dict[int, List[Token]]:
    found: Dict[int, List[Token]] = {}
    for token in tokens:
        found.setdefault(token.sentence, []).append(token)
    return found


class Word(NamedTuple):
    """A word's mean L_t over ``count`` occurrences, each the mean of its tokens."""

    text: str
    frequency: int
    count: int
    mean: float
    deviation: float


def words_with_frequency(sentences, unit, frequencies) -> List[Word]:
    """Most frequent first; frequencies: {word: count}, None to count here."""
    values: Dict[str, List[float]] = {}
    for tokens in sentences.values():
        for text, places in words_of([token.symbol for token in tokens], unit):
            mean = sum(tokens[place].penalty for place in places) / len(places)
            values.setdefault(text, []).append(mean)
    found = []
    for text, means in values.items():
        mean = sum(means) / len(means)
        spread = math.sqrt(sum((value - mean) ** 2 for value in means) / len(means))
        frequency = len(means) if frequencies is None else frequencies.get(text, 0)
        found.append(Word(text, frequency, len(means), mean, spread))
    return sorted(found, key=lambda word: (-word.frequency, word.text))


def _words_in(path, unit):
    """The words of a text one after the other; UsageError with the line that is not UTF-8."""
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                symbols = line.decode("utf-8").split()
            except UnicodeDecodeError as error:
                raise UsageError(
                    f"--text {path}, line {number}: not UTF-8 ({error.reason})"
                ) from error
            for word, _ in words_of(symbols, unit):
                yield word


def counted(args, dictionary):
    """{word: how often it is in the training text}, or None to count what is looked at."""
    if args.text:
        try:
            return Counter(_words_in(args.text, args.unit))
        except OSError as error:
            raise UsageError(f"--text {args.text}: {error.strerror}") from error
    if args.unit == "token":
        return dict(zip(dictionary.symbols, dictionary.count))
    return None


def ranks(values) -> List[float]:
    """Places in ascending order, from 1; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found, start = [0.0] * len(values), 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            found[place] = (start + 1 + end) / 2
        start = end
    return found


def spearman(one, other) -> float:
    """Rank correlation; NaN where one of them does not vary."""
    one, other = ranks(one), ranks(other)
    middle = (len(one) + 1) / 2
    one, other = ([value - middle for value in values] for values in (one, other))
    scale = math.sqrt(sum(v * v for v in one) * sum(v * v for v in other))
    return sum(a * b for a, b in zip(one, other)) / scale if scale else math.nan


def summary(tokens: List[Token], words: List[Word]) -> List[Tuple[str, float]]:
    """Names and numbers of PREFIX.tsv."""
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


def draw_sentences(sentences: List[List[Token]], unit: str):
    """L_t along sentences (Fig. 3), dotted lines where words begin."""
    longest = max(len(tokens) for tokens in sentences)
    inches = (min(24.0, max(6.0, 0.22 * longest)), 2.4)
    figure, panels = new_figure(len(sentences), 1, inches)
    for panel, tokens in zip(panels, sentences):
        panel.plot(range(len(tokens)), [token.penalty for token in tokens], marker="o", ms=3)
        symbols = [token.symbol for token in tokens]
        if unit != "token":
            for _, places in words_of(symbols, unit):
                panel.axvline(places[0] - 0.5, linestyle=":", color="grey", linewidth=1)
        # a dollar sign would begin a formula
        names = [symbol.replace("$", r"\$") for symbol in symbols]
        panel.set_xticks(range(len(names)), names, rotation=90, fontsize="small")
        panel.set_ylabel("L_t")
        panel.set_title(f"sentence {tokens[0].sentence}", fontsize="small")
    return figure


def draw_frequency(words: List[Word], tokens: List[Token]):
    """Mean L_t against the frequency of the word; L_t against -log P_f (Fig. 2c)."""
    figure, (left, right) = new_figure(2, 2)
    left.scatter([word.frequency for word in words], [word.mean for word in words], s=6)
    left.set_xscale("log" if words[-1].frequency else "symlog")
    left.set_xlabel("frequency of the word")
    left.set_ylabel("mean L_t")
    right.scatter([t.nll for t in tokens], [t.penalty for t in tokens], s=2, alpha=0.3)
    right.set_xlabel("-log P_f of the token, in nats")
    right.set_ylabel("L_t")
    return figure


def write_rows(output, names, rows):
    lines = ("\t".join(map(str, row)) for row in [names, *rows])
    with atomic_path(output) as partial:
        partial.write_text("\n".join(lines) + "\n", encoding="utf-8")


def shown(args, sentences) -> List[List[Token]]:
    """The sentences that --show names; UsageError for one that there is not."""
    if args.show is None:
        return list(sentences.values())[:3]
    wanted = args.show.split(",")
    for number in wanted:
        if not number.isdecimal() or int(number) not in sentences:
            raise UsageError(
                f"--show {args.show}: {number!r} is none of the {len(sentences)} sentences with "
                f"tokens, whose numbers begin with {', '.join(map(str, list(sentences)[:5]))}"
            )
    return [sentences[int(number)] for number in wanted]


def run(args):
    """Write the files; prints the summary and their names."""
    if args.sentences < 1 or args.max_tokens < 1:
        raise UsageError(f"--sentences {args.sentences} --max-tokens {args.max_tokens}: from 1")
    model, criterion, task = load(args)
    target = args.pair.split("-")[1] if args.pair else None
    samples = batches(args, model, task)
    words = getattr(task, "dictionaries", None)
    dictionary = words[target] if words and target in words else task.target_dictionary
    tokens = collect(model, criterion, samples, dictionary)
    if not tokens:
        raise UsageError(f"--subset {args.subset}: no sentence has a token")
    sentences = by_sentence(tokens)
    chosen = shown(args, sentences)
    table = words_with_frequency(sentences, args.unit, counted(args, dictionary))
    numbers = summary(tokens, table)
    save(draw_sentences(chosen, args.unit), f"{args.output}.png")
    save(draw_frequency(table, tokens), f"{args.output}.frequency.png")
    columns = ("sentence", "position", "token", "L_t", "-log P_f")
    write_rows(f"{args.output}.tokens.tsv", columns, tokens)
    write_rows(f"{args.output}.words.tsv", Word._fields, table)
    rows = [(name, f"{value:g}") for name, value in numbers]
    write_rows(f"{args.output}.tsv", ("quantity", "value"), rows)
    print("\n".join(f"{name}: {value}" for name, value in rows))
    print("\n".join(f"{args.output}{ending}" for ending in ENDINGS))
    return 0
