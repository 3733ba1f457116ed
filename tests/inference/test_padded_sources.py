"""Attention of sentences of different length in a batch: what each sentence has alone."""

import shutil

import numpy as np
import pytest
from common import inprocess
from inference.stock import ALL
from inference.test_alignment import command

import fairseq_ext

LINES = ["an1 av2 an3 an1 at1", "an4", "an5 av1", "an3 av4 an7 at2"]
ALONE, TOGETHER = ("--buffer-size", 1), ("--buffer-size", 8, "--batch-size", 8)
FAST = ["twin_lstm", "routed_gru"]
SLOW = [
    "stock lstm",
    "multiway_gru",
    "dual_transformer",
    "full context",
    "transformer",
    "stock fconv",
    "stock lightconv",
    "stock transformer_align",
]
SLOW += [
    "tagged_transformer",
    "mtl_partial_gru",
    "duo_transformer",
    "twin_transformer",
    "dual_supervised_transformer",
]
NAMES = [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
SEVERAL = ("--lang-pairs", "xx-yy,zz-yy")
PAIRS = [("an1 av2 an3", "iv2 in3 ko in1"), ("an4", "iv5"), ("an5", "iv2 in3 ko in2 at1")]


def alignments(output):
    """[(number of the line, cells)] of the alignments, in order; weights as an array."""
    rows = []
    for line in output.splitlines():
        if line.startswith("A-"):
            label, _, text = line.partition("\t")
            words = text.split()
            if words and "," in words[0]:
                words = np.array([[float(x) for x in word.split(",")] for word in words])
            rows.append((int(label[2:]), words))
    return sorted(rows, key=lambda row: row[0])


def check_same(first, second):
    assert len(first) == len(second) > 0
    for (number, row), (other, again) in zip(first, second):
        assert number == other
        if isinstance(row, list):
            assert row == again
        else:
            assert np.allclose(row, again, atol=1e-4)


@pytest.fixture
def typed(tmp_path):
    """Function (words of the command, lines, ...) -> what is printed, one line at a time and all
    lines in a batch."""

    def printed(words, lines, *more):
        file = tmp_path / "lines"
        file.write_text("".join(f"{line}\n" for line in lines))
        words = [*words, "--input", file, *more]
        return [inprocess.interactive(*words, *batch) for batch in (ALONE, TOGETHER)]

    return printed


@pytest.mark.parametrize("name", NAMES)
def test_typed_lines(name, data, sharp, typed):
    words = command(name, data, sharp(name))
    alone, together = typed(words, LINES, "--print-alignment", "soft")
    check_same(alignments(alone), alignments(together))
    # the weights differ from word to word, else any column would do
    assert max(np.ptp(row) for _, row in alignments(alone)) > 0.05
    alone, together = typed(words, LINES, "--print-alignment", "hard", "--nbest", 2)
    check_same(alignments(alone), alignments(together))
    # what Python has is what the command has
    model = fairseq_ext.load(sharp(name), data[ALL[name].data])
    for batch in (1, 8):
        results = model.translate(LINES, 2, batch=batch, min_len=3, max_len_b=8)
        first = 1 if name in ("routed_gru", "mtl_partial_gru") else 0  # the task token
        rows = [(n, r.hypotheses[0].attention[:, first:]) for n, r in enumerate(results)]
        check_same(rows, alignments(typed(words, LINES, "--print-alignment", "soft")[0]))


@pytest.mark.parametrize("name", NAMES)
def test_unknown_words_are_copied_in_batches(name, data, sharp, typed):
    words = command(name, data, sharp(name), "--unkpen", -1000)
    lines = ["an1 new1 av2 new2 new3", "new4", "new5 new6"]
    alone, together = typed(words, lines, "--replace-unk")
    texts = [
        [text for _, ((_, text), *_) in sorted(inprocess.hypotheses(o).items())]
        for o in (alone, together)
    ]
    assert texts[0] == texts[1]
    for line, text in zip(lines, texts[1]):
        assert set(text.split()) <= set(line.split())


GENERATED = [
    ("multiway_gru", ("--prefix-size", 2)),
    ("routed_gru", ("--left-pad-source",)),
    *[
        pytest.param(*row, marks=pytest.mark.slow)
        for row in (
            ("routed_gru", ("--prefix-size", 2)),
            ("twin_lstm", ("--left-pad-source",)),
            ("stock lstm", ("--prefix-size", 2)),
            ("stock lstm", ("--left-pad-source",)),
        )
    ],
    *[(name, ("--score-reference",)) for name in FAST],
    ("transformer", ("--score-reference", "--left-pad-target")),
    ("dual_transformer", ("--dual-alpha", 0.5, "--nbest", 2)),
]


@pytest.mark.parametrize("name, more", GENERATED, ids=lambda value: str(value))
def test_binarised_sentences(name, more, data, sharp):
    system = ALL[name]
    limits = ("--beam", 2, "--max-len-b", 8)
    if "--left-pad-target" in more:
        system = system._replace(task="translation")
    words = system.inference_words(data[system.data], sharp(name), *limits, *more)
    for kind in ("soft", "hard"):
        outputs = [
            inprocess.generate(*words, "--print-alignment", kind, "--batch-size", size)
            for size in (1, 16)
        ]
        check_same(*map(alignments, outputs))
        scores = [
            [pytest.approx(score, abs=1e-4) for _, entries in said.items() for score, _ in entries]
            for said in (dict(sorted(inprocess.hypotheses(o).items())) for o in outputs)
        ]
        assert [s.expected for s in scores[0]] == scores[1]


@pytest.mark.parametrize(
    "first, second",
    [("stock lstm", "transformer"), ("multiway_gru", "multiway_gru"), ("routed_gru", "routed_gru")],
)
def test_ensembles(first, second, data, sharp, typed):
    paths = f"{sharp(first)}:{sharp(second, '--seed', 9)}"
    outputs = typed(command(first, data, paths), LINES, "--print-alignment", "soft")
    check_same(*map(alignments, outputs))


@pytest.mark.parametrize("average", ["early", "late"])
def test_several_sources(average, data, sharp, typed):
    checkpoint = sharp("multiway_gru", *SEVERAL)
    words = command("multiway_gru", data, checkpoint, "-s", "xx+zz", "-t", "yy")
    lines = [" ||| ".join(pair) for pair in PAIRS]
    more = ("--source-average", average, "--print-alignment", "soft")
    alone, together = typed(words, lines, *more)
    check_same(alignments(alone), alignments(together))
    model = fairseq_ext.load(checkpoint, data["three"], "xx+zz-yy")
    options = {"min_len": 3, "max_len_b": 8, "source_average": average}
    results = model.translate(PAIRS, 2, **options)
    rows = [(number, result.hypotheses[0].attention) for number, result in enumerate(results)]
    check_same(rows, alignments(alone))
    targets = [" ".join(result.hypotheses[0].tokens[:-1]) for result in results]
    scores = model.score(PAIRS, targets, source_average=average)
    for (_, row), score, result in zip(rows, scores, results):
        if score.tokens == result.hypotheses[0].tokens:  # none that is spelt like a symbol
            assert np.allclose(score.attention, row, atol=1e-4)
            assert score.score == pytest.approx(result.hypotheses[0].score, abs=1e-4)
    with pytest.raises(ValueError, match="score: beam: no option of scores; allowed: source_av"):
        model.score(PAIRS, targets, beam=3)


def test_references_have_their_words_replaced(data, sharp, toy_corpus, tmp_path):
    """--score-reference --replace-unk: without --print-alignment as well."""
    for path in data["two"].glob("dict.*.txt"):
        shutil.copy(path, tmp_path)
    (tmp_path / "valid.xx-yy.xx").write_text("an1 new1 av2\nnew2\n")
    (tmp_path / "valid.xx-yy.yy").write_text("un1 nowhere uv2\nnowhere\n")
    system = ALL["stock lstm"]
    words = system.inference_words(tmp_path, sharp("stock lstm"), "--dataset-impl", "raw")
    output = inprocess.generate(*words, "--score-reference", "--replace-unk")
    said = inprocess.hypotheses(output)
    assert said[1][0][1] == "new2" and said[0][0][1].split()[1] in ("an1", "new1", "av2")
    with pytest.raises(ValueError, match="--replace-unk with --print-alignment soft"):
        inprocess.generate(*words, "--replace-unk", "--print-alignment", "soft")
