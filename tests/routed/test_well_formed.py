"""--well-formed-targets: just the well-formed sequences are allowed, and the search writes them."""

import itertools
import random
import re

import pytest
import torch
from common import inprocess
from common.words import dictionary_with
from fairseq_cli import preprocess as preprocessing

from fairseq_ext.routed.formats import Malformed, graphs, trees
from fairseq_ext.routed.well_formed import (
    Graphs,
    SourceWords,
    Tags,
    Trees,
    constraint_of,
    subword_mark,
)

STEPS = 6


class Fixed:
    """Sources of a number of words."""

    def __init__(self, words):
        self.words = words

    def count(self, tokens):
        return torch.tensor([self.words])

    def warn_of_lost_marks(self, tokens):
        pass


def accepted(constraint, steps=STEPS):
    """All lines that the constraint lets a search of so many steps write."""
    words, lines = constraint.dictionary, []
    waiting = [((), constraint.start(torch.zeros(1, 1), 1, torch.tensor([steps])))]
    while waiting:
        line, state = waiting.pop()
        (row,) = state.allowed(torch.tensor([steps - len(line)]))
        if len(line) == steps:  # the search allows nothing but the end now
            assert row[words.eos()], f"{line} cannot end"
        assert row.any(), f"{line} cannot go on"
        for index in row.nonzero().flatten().tolist():
            if index == words.eos():
                lines.append(line)
            elif len(line) < steps:
                constraint_copy = type(state).__new__(type(state))
                constraint_copy.__dict__.update(state.__dict__)
                constraint_copy.advance(torch.tensor([index]), torch.tensor([0]))
                waiting.append(((*line, words.symbols[index]), constraint_copy))
    assert len(lines) == len(set(lines))
    return set(lines)


def every_line(symbols, steps=STEPS):
    return (line for n in range(steps + 1) for line in itertools.product(symbols, repeat=n))


def is_tree(line, words):
    """By the reader of lines, which knows nothing of the search."""
    if not words:
        return not line
    try:
        return len(trees.read_line(" ".join(line)).leaves()) == words
    except Malformed:
        return False


@pytest.mark.parametrize("words", [0, 1, 3, STEPS])
@pytest.mark.parametrize(
    "symbols, lengths",
    [
        (("O", "B-X"), lambda line: len(line)),
        # a piece that goes on ends no word; it may not be the last one
        (
            ("O", "B-@@", "X"),
            lambda line: (
                -1 if line[-1:] == ("B-@@",) else sum(not piece.endswith("@@") for piece in line)
            ),
        ),
        # the first piece must begin a word
        (
            ("▁O", "▁B-", "X"),
            lambda line: -1 if line[:1] == ("X",) else sum(piece.startswith("▁") for piece in line),
        ),
    ],
    ids=["whole", "@@", "▁"],
)
def test_tags_are_as_many_as_words(symbols, lengths, words):
    expected = {line for line in every_line(symbols) if lengths(line) == words}
    assert accepted(Tags(Fixed(words), dictionary_with(*symbols), "dict")) == expected


@pytest.mark.parametrize("words", [0, 1, 2, STEPS - 2])
@pytest.mark.parametrize("mark", ["", "▁"])
def test_trees_are_those_that_can_be_read(words, mark):
    symbols = ["(A", ")A", "(B", ")B", "x"]
    target = dictionary_with(*(mark + symbol for symbol in (*symbols, "(C", "(", ")", "a(b")))
    expected = {line for line in every_line(symbols) if is_tree(line, words)}
    lines = accepted(Trees(Fixed(words), target, "dict"))
    assert {tuple(symbol[len(mark) :] for symbol in line) for line in lines} == expected


def is_balanced(line):
    """True if brackets match and nothing follows the outermost one."""
    text = "".join(line)
    depths = [text[:n].count("(") - text[:n].count(")") for n in range(len(text) + 1)]
    closed = [n for n in range(1, len(text)) if depths[n] == 0 and depths[n - 1] == 1]
    return depths[-1] == 0 and min(depths) == 0 and not closed


def test_brackets_of_graphs_match():
    symbols = ["(", ")", "a"]
    expected = {line for line in every_line(symbols, 7) if is_balanced(line)}
    assert accepted(Graphs(Fixed(2), dictionary_with(*symbols), "dict"), 7) == expected
    readable = {line for line in every_line(["(", ")", "a", ":r"], 7) if _is_graph(line)}
    assert readable <= accepted(Graphs(Fixed(2), dictionary_with("(", ")", "a", ":r"), "dict"), 7)
    pieces = accepted(Graphs(Fixed(2), dictionary_with("▁(", "a)", ")", "b"), "dict"), 4)
    assert ("▁(", "▁(", "a)", ")") in pieces and ("a)",) not in pieces


@pytest.mark.parametrize("piece", ["(a)", ")(", "()()", ")a", "(a)(", "a)", "((", "))"])
def test_symbols_of_several_brackets(piece):
    """A symbol may hold a whole pair, or close the outermost one and begin another."""
    symbols = ["(", ")", "a", piece]
    lines = accepted(Graphs(Fixed(2), dictionary_with(*symbols), "dict"), 5)
    expected = {line for line in every_line(symbols, 5) if is_balanced(line)}
    # every open bracket has a step of its own to be closed in
    assert lines < expected if piece == "))" else lines == expected


def _is_graph(line):
    try:
        graphs.read_line(" ".join(line))
    except Malformed:
        return False
    return True


@pytest.mark.parametrize(
    "symbols, text, words",
    [
        (("the", "cat"), "the cat", 2),
        (("▁the", "▁c", "at", "s"), "▁the ▁c at s", 2),
        (("▁the", "at"), "at ▁the at", 2),
        (("the", "c@@", "at"), "the c@@ at the c@@ c@@ at", 4),
        (("the",), "what the", 2),
    ],
)
@pytest.mark.parametrize("left", [False, True], ids=["right-padded", "left-padded"])
def test_words_of_sources(symbols, text, words, left):
    source = dictionary_with(*symbols)
    token = source.add_symbol("__task_a-b__")
    row = torch.cat([torch.tensor([token]), source.encode_line(text, add_if_not_exist=False)])
    padding = row.new_full((3,), source.pad())
    row = torch.cat([padding, row.long()] if left else [row.long(), padding])
    assert SourceWords(source, "dict", 1).count(row.unsqueeze(0)).tolist() == [words]


@pytest.mark.parametrize(
    "symbols, kind, text, warning",
    [
        (("a@@", "b"), "tags", "a@@ x@@ b", "'@@' of these is lost: each ends a word, .* too many"),
        (("▁a", "b"), "tags", "▁a b ▁x", "'▁' of these is lost: each goes on with .* too few"),
        (("a@@", "b"), "tags", "a@@ b", None),
        (("a", "b"), "tags", "a x b", None),
        (("a@@", "b"), "graphs", "a@@ x@@ b", None),
    ],
)
def test_unknown_pieces_have_lost_their_marks(symbols, kind, text, warning, caplog):
    """Unknown words have not: they are words."""
    source, target = dictionary_with(*symbols), dictionary_with("O", "(", ")")
    constraint = constraint_of(kind, source, target, ("xx", "yy"))
    tokens = source.encode_line(f"b {text}", add_if_not_exist=False).unsqueeze(0)
    for _ in range(2):
        constraint.start(tokens, 1, torch.tensor([9]))
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == (warning is not None)  # once
    for line in lines:
        assert re.match(f"--well-formed-targets: sources have .* in dict.xx.txt.*{warning}", line)


def test_dictionaries_that_do_not_fit():
    both = dictionary_with("▁a", "b@@")
    with pytest.raises(ValueError, match="dict.yy.txt .* '▁' .* '@@'"):
        subword_mark(both, "dict.yy.txt")
    source, pair = dictionary_with("a"), ("xx", "yy")
    for symbols, error in (
        (("▁(A", "▁)A", "x"), "'x', a part of one"),
        (("(A", "x"), "no bracket that is closed"),
        (("(A", ")A"), "no leaf"),
    ):
        with pytest.raises(ValueError, match=f"--well-formed-targets: dict.yy.txt .*{error}"):
            constraint_of("trees", source, dictionary_with(*symbols), pair)
    with pytest.raises(ValueError, match="none that closes"):
        constraint_of("graphs", source, dictionary_with("(", "a"), pair)
    assert constraint_of("text", source, both, pair) is None


KINDS = {"tags": ["O", "B-X", "I-X"], "trees": ["(S", ")S", "(NP", ")NP", "DT", "NN"]}
KINDS["graphs"] = ["(", ")", "know", ":ARG0"]


def is_well_formed(kind, words, line):
    if kind == "tags":
        return len(line.split()) == words
    if kind == "trees":
        return is_tree(line.split(), words)
    depth = 0
    for symbol in line.split():
        depth += (symbol == "(") - (symbol == ")")
        if depth < 0:
            return False
    return depth == 0


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Sentences of up to 7 words, and targets of all kinds of which nothing is learnt."""
    folder, rng = tmp_path_factory.mktemp("kinds"), random.Random(2)
    for kind, symbols in KINDS.items():
        for split, count in (("train", 8), ("valid", 24)):
            sentences = [" ".join(rng.choices("abcdef", k=rng.randint(1, 7))) for _ in range(count)]
            sentences[-1] = ""
            targets = [" ".join(symbols)] * count
            for lang, lines in (("xx", sentences), (kind, targets)):
                text = "".join(line + "\n" for line in lines)
                (folder / f"{split}.xx-{kind}.{lang}").write_text(text, encoding="utf-8")
    with open(folder / "dict.xx.txt", "w", encoding="utf-8") as file:
        file.writelines(f"{word} 9\n" for word in "abcdef")
    for kind in KINDS:
        prefs = [f"{folder}/{split}.xx-{kind}" for split in ("train", "valid")]
        words = ["-s", "xx", "-t", kind, "--trainpref", prefs[0], "--validpref", prefs[1]]
        words += ["--srcdict", folder / "dict.xx.txt", "--destdir", folder / "bin" / kind]
        words += [
            "--padding-factor",
            64,
        ]  # a beam has at most as many hypotheses as there are words
        parser = preprocessing.options.get_preprocessing_parser()
        preprocessing.main(parser.parse_args([str(word) for word in words]))
    merged = folder / "all"
    merged.mkdir()
    for kind in KINDS:
        for path in (folder / "bin" / kind).iterdir():
            path.rename(merged / path.name)
    return merged


PAIRS = ",".join(f"xx-{kind}" for kind in KINDS)
TASK = ["--task", "routed_mtl", "--lang-pairs", PAIRS, "--main-pair", "xx-tags"]
TASK += ["--target-kinds", "tags=tags,trees=trees,graphs=graphs"]
SIZES = ["--embed-dim", 8, "--hidden-size", 8, "--attention-size", 8, "--router-size", 6]
WELL_FORMED = "--well-formed-targets"


@pytest.fixture(scope="module")
def checkpoint(data, tmp_path_factory):
    """A model with random weights, large enough that its outputs differ."""
    folder = tmp_path_factory.mktemp("untrained")
    inprocess.train(
        data, *TASK, "--arch", "routed_gru", *SIZES, "--criterion", "cross_entropy", "--lr", 0.0,
        "--max-update", 1, "--batch-size", 8, "--save-dir", folder, "--disable-validation",
    )  # fmt: skip
    state = torch.load(folder / "checkpoint_last.pt", weights_only=True)
    generator = torch.Generator().manual_seed(2)
    for name, values in state["model"].items():
        if values.is_floating_point() and values.dim():
            state["model"][name] = torch.randn(values.shape, generator=generator)
    torch.save(state, folder / "random.pt")
    return folder / "random.pt"


def generated(data, checkpoint, kind, *more):
    """[(words of the source, hypothesis)] of the validation set."""
    output = inprocess.generate(
        data, *TASK[:2], *TASK[-2:], "-s", "xx", "-t", kind, "--path", checkpoint, "--gen-subset",
        "valid", "--max-len-b", 20, *more,
    )  # fmt: skip
    lines = output.splitlines()
    sources = {line[2:].split("\t")[0]: line.split("\t")[1] for line in lines if line[:2] == "S-"}
    rows = [line[2:].split("\t") for line in lines if line[:2] == "H-"]
    return [(len(sources[number].split()), text) for number, _, text in rows]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flags", [["--beam", 4, "--nbest", 4], ["--beam", 1, "--batch-size", 5]])
def test_all_hypotheses_are_well_formed(data, checkpoint, kind, flags):
    lines = generated(data, checkpoint, kind, WELL_FORMED, *flags)
    assert {is_well_formed(kind, *line) for line in lines} == {True}
    assert len({text for _, text in lines}) > 2
    free = generated(data, checkpoint, kind, *flags)
    assert not all(is_well_formed(kind, *line) for line in free)


def test_a_wide_beam_finds_all_well_formed_targets_in_the_order_of_their_scores(data, checkpoint):
    words = [WELL_FORMED, "--beam", 30, "--nbest", 30, "--unnormalized"]
    output = generated(data, checkpoint, "tags", *words)
    assert any(length == 3 for length, _ in output)
    for length in (1, 2, 3):
        lines = {text for words, text in output if words == length}
        assert lines == {" ".join(line) for line in itertools.product(KINDS["tags"], repeat=length)}


def test_kinds_of_the_training_are_known(data, checkpoint):
    """The command that translates need not name them, and may name others."""
    words = [data, *TASK[:2], "-s", "xx", "-t", "tags", "--path", checkpoint, WELL_FORMED]
    words += ["--gen-subset", "valid", "--max-len-b", 20]
    printed = [
        [line for line in inprocess.generate(*words, *more).splitlines() if line[:2] == "H-"]
        for more in ([], TASK[-2:])
    ]
    assert printed[0] == printed[1] != []
    with pytest.raises(ValueError, match="--target-kinds tags=text makes tags a text"):
        inprocess.generate(*words, "--target-kinds", "tags=text")


def test_a_training_that_searches_nothing_has_no_use_for_it(data, tmp_path):
    words = [data, *TASK, "--arch", "routed_gru", *SIZES, "--criterion", "cross_entropy"]
    with pytest.raises(ValueError, match="--well-formed-targets does nothing without --eval-bleu"):
        inprocess.train(*words, "--lr", 0.1, "--batch-size", 8, "--no-save", WELL_FORMED)


@pytest.mark.parametrize(
    "flags",
    [
        ["--sampling", "--beam", 2, "--nbest", 2],
        ["--diverse-beam-groups", 2, "--beam", 4],
        ["--no-repeat-ngram-size", 2],
        ["--match-source-len"],
        ["--min-len", 3],
        ["--prefix-size", 1],
        ["--max-len-b", 4],
    ],
    ids=lambda flags: flags[0],
)
def test_what_does_not_go_together_is_refused(data, checkpoint, flags):
    with pytest.raises(ValueError, match="^--well-formed-targets: .*allowed"):
        generated(data, checkpoint, "tags", WELL_FORMED, *flags)


def test_validation_writes_them_too(data, tmp_path):
    """Accuracy counts the longer of two lines; F1 would not show a wrong length."""
    words = [data, *TASK, "--arch", "mtl_full_gru", *SIZES[:-2], "--criterion", "cross_entropy"]
    words += ["--max-update", 1, "--batch-size", 8, "--no-save", "--eval-bleu", "--lr", 0.1]
    words += ["--eval-bleu-args", '{"max_len_b": 20}', "--eval-bleu-print-samples"]
    with inprocess.logged_lines() as lines:
        inprocess.train(*words, WELL_FORMED, "--seed", 4)
    for kind in KINDS:
        start = f"xx-{kind} example hypothesis: "
        written = [line[len(start) :].split() for line in lines if line.startswith(start)]
        assert written
        for line in written:
            words = len(line) if kind == "tags" else sum(symbol in ("DT", "NN") for symbol in line)
            assert is_well_formed(kind, words, " ".join(line))
