"""Options that speak of source words: --print-alignment, --replace-unk, --match-source-len."""

import shutil

import pytest
import torch
from common import inprocess
from inference.stock import ALL
from options.systems import SYSTEMS

from fairseq_ext.routed.task_tokens import without_task_token

FAST = ["dual_transformer", "multiway_gru", "routed_gru", "twin_lstm"]
SLOW = ["mtl_partial_gru", "transformer", "duo_transformer", "twin_transformer"]
TRANSLATES = [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
SEVERAL = ("--lang-pairs", "xx-yy,zz-yy")
LINES = ["an1 av2 an3 an1 at1", "an4", "an5 av1"]


def command(name, data, checkpoint, *more):
    system = ALL[name]
    words = [data[system.data], "--task", system.task, "--path", checkpoint, "--beam", 2]
    direction = [] if "-s" in more else system.inference.split()
    return [*words, *direction, "--min-len", 3, "--max-len-b", 8, *more]


@pytest.fixture
def lines(tmp_path):
    file = tmp_path / "lines"
    file.write_text("".join(line + "\n" for line in LINES))
    return file


def counts(output):
    """{number of the line: tokens of its hypothesis without the end symbol}."""
    rows = [line.split("\t") for line in output.splitlines() if line.startswith("P-")]
    return {int(name[2:]): len(text.split()) - 1 for name, text in rows}


def cells(output):
    """{number of the line: its alignment as text cells}."""
    rows = [line.split("\t") for line in output.splitlines() if line.startswith("A-")]
    return {int(name[2:]): text.split() for name, text in rows}


@pytest.mark.parametrize("batch", [("--buffer-size", 1), ("--buffer-size", 3, "--batch-size", 3)])
@pytest.mark.parametrize("name", TRANSLATES)
def test_alignments_count_words(data, checkpoint_of, lines, name, batch):
    """Of the hard alignment each target word has a word of the line that has most attention."""
    words = command(name, data, checkpoint_of(name), "--input", lines, *batch)
    hard = inprocess.interactive(*words, "--print-alignment", "hard")
    soft = inprocess.interactive(*words, "--print-alignment", "soft")
    for number, line in enumerate(LINES):
        length = len(line.split())
        pairs = [tuple(map(int, cell.split("-"))) for cell in cells(hard)[number]]
        assert [target for _, target in pairs] == list(range(counts(hard)[number]))
        table = [list(map(float, cell.split(","))) for cell in cells(soft)[number]]
        assert len(table) == len(pairs) + 1  # the end symbol has its row
        for (source, _), weights in zip(pairs, table):
            assert len(weights) == length + 1  # and its column
            assert 0 <= source < length
            assert weights[source] == max(weights[:length])


def test_the_word_with_most_attention_is_named(data, checkpoint_of, lines):
    """Routed: the attention of the model itself, task token first, names the same word."""
    name = "routed_gru"
    words = command(name, data, checkpoint_of(name), "--input", lines)
    output = inprocess.interactive(*words, "--print-alignment", "hard")
    from fairseq import checkpoint_utils

    models, _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(checkpoint_of(name))],
        arg_overrides={"data": str(data["three"]), "source_lang": "xx", "target_lang": "yy"},
    )
    direction = models[0].eval().direction("xx-yy", need_attention=True)
    source, target = task.source_dictionary, task.target_dictionary
    said = inprocess.hypotheses(output)
    for number, line in enumerate(LINES):
        tokens = source.encode_line(line, add_if_not_exist=False).long()
        tokens = torch.cat([tokens.new_tensor([task.task_token("xx-yy")]), tokens])[None]
        answer = target.encode_line(said[number][0][1], append_eos=False, add_if_not_exist=False)
        before = torch.cat([answer.new_tensor([target.eos()]), answer])[None].long()
        _, more = direction(tokens, torch.tensor([tokens.size(1)]), before)
        weights = more["attn"][0][0, : len(answer), 1:-1]  # (T, words)
        expected = [f"{word}-{place}" for place, word in enumerate(weights.argmax(1).tolist())]
        assert cells(output)[number] == expected


@pytest.mark.parametrize("name", TRANSLATES)
def test_unknown_words_are_copied(data, checkpoint_of, lines, name, tmp_path):
    """With an output of unknown words alone: every word is the one it is aligned to, or its own
    translation in the dictionary; also words that the model's dictionary does not have."""
    lines.write_text("an1 new1 av2 new2\nnew3\n")
    unknown = ("--unkpen", -1000, "--print-alignment", "hard")
    words = command(name, data, checkpoint_of(name), "--input", lines, *unknown)
    plain, copied = (inprocess.interactive(*words, *more) for more in ((), ("--replace-unk",)))
    assert "<unk>" in inprocess.hypotheses(plain)[0][0][1]
    (tmp_path / "dictionary").write_text("new1 neu1\nnew3 neu3\n")
    translated = inprocess.interactive(*words, "--replace-unk", tmp_path / "dictionary")
    table = {"new1": "neu1", "new3": "neu3"}
    for number, line in enumerate(lines.read_text().splitlines()):
        source = [int(cell.split("-")[0]) for cell in cells(plain)[number]]
        chosen = [line.split()[place] for place in source]
        text = inprocess.hypotheses(plain)[number][0][1].split()
        both = list(zip(text, chosen))
        expected = [new if word == "<unk>" else word for word, new in both]
        assert inprocess.hypotheses(copied)[number][0][1].split() == expected
        expected = [table.get(new, new) if word == "<unk>" else word for word, new in both]
        assert inprocess.hypotheses(translated)[number][0][1].split() == expected
    alone = inprocess.interactive(*words[:-2], "--replace-unk")  # without --print-alignment
    assert inprocess.hypotheses(alone) == inprocess.hypotheses(copied)


@pytest.mark.parametrize("average", ["early", "late"])
def test_unknown_words_of_several_sources(data, checkpoint_of, lines, average):
    lines.write_text("an1 new1 ||| new2 in1\n")
    words = command(
        "multiway_gru", data, checkpoint_of("multiway_gru", *SEVERAL), "--input", lines,
        "-s", "xx+zz", "-t", "yy", "--source-average", average, "--unkpen", -1000,
    )  # fmt: skip
    output = inprocess.interactive(*words, "--replace-unk", "--print-alignment", "hard")
    source = "an1 new1 new2 in1".split()
    expected = [source[int(cell.split("-")[0])] for cell in cells(output)[0]]
    assert inprocess.hypotheses(output)[0][0][1].split() == expected
    with pytest.raises(ValueError, match="--match-source-len with -s xx[+]zz: several sources"):
        inprocess.interactive(*words, "--match-source-len")


@pytest.mark.parametrize(
    "name, side",
    [
        ("stock lstm", ()),
        ("multiway_gru", ("-s", "xx+zz", "-t", "yy")),
        pytest.param("routed_gru", (), marks=pytest.mark.slow),
    ],
)
def test_unknown_sub_words_are_copied_before_they_are_joined(data, sharp, tmp_path, name, side):
    """fairseq-generate --bpe: as fairseq-interactive, which cuts the words itself."""
    folder = tmp_path / "raw"
    folder.mkdir()
    for path in data[ALL[name].data].glob("dict.*.txt"):
        shutil.copy(path, folder)
    texts = {"xx": ["an1 new1", "zu"], "yy": ["un1 uv1", "un2"], "zz": ["abc de", "f"]}
    for target in ("xx", "yy", "zz"):
        for source in {*texts} - {target}:
            for lang in (source, target):
                lines = [" ".join(line.replace(" ", "\u2581")) for line in texts[lang]]
                text = "".join(f"{line}\n" for line in lines)
                (folder / f"valid.{source}-{target}.{lang}").write_text(text, "utf-8")
    checkpoint = sharp(name, *(SEVERAL if side else ()))
    words = command(name, {ALL[name].data: folder}, checkpoint, *side, "--bpe", "characters")
    words += ["--unkpen", -1000, "--replace-unk"]
    raw = ("--gen-subset", "valid", "--dataset-impl", "raw")
    generated = inprocess.generate(*words, *raw, "--tokenizer", "space")
    sources = ["xx", "zz"] if side else ["xx"]
    (tmp_path / "lines").write_text(
        "".join(f"{' ||| '.join(pair)}\n" for pair in zip(*(texts[s] for s in sources)))
    )
    typed = inprocess.interactive(*words, "--input", tmp_path / "lines")
    hypotheses = inprocess.hypotheses(generated)
    assert {n: [text for _, text in rows] for n, rows in hypotheses.items()} == {
        n: [text for _, text in rows] for n, rows in inprocess.hypotheses(typed).items()
    }
    for number in (0, 1):  # sub-words of the source alone, and none is unknown
        pieces = {"\u2581", *"".join(texts[s][number] for s in sources)}
        said = hypotheses[number][0][1].split()
        assert said and set(said) <= pieces


@pytest.mark.parametrize("name", TRANSLATES)
def test_lengths_match_the_source(data, checkpoint_of, lines, name):
    words = command(name, data, checkpoint_of(name), "--input", lines, "--min-len", 1)
    output = inprocess.interactive(*words, "--match-source-len")
    assert counts(output) == {number: len(line.split()) for number, line in enumerate(LINES)}


def test_generate_replaces_with_raw_text(data, checkpoint_of, tmp_path):
    """fairseq-generate has the words of raw data only; sub-words are joined after replacing."""
    source = ["an1", "new@@", "er", "av2"]
    for name in ("routed_gru", "dual_transformer"):
        folder = tmp_path / name
        folder.mkdir()
        for path in data[SYSTEMS[name].data].glob("dict.*.txt"):
            shutil.copy(path, folder)
        (folder / "test.xx-yy.xx").write_text(" ".join(source) + "\n")
        (folder / "test.xx-yy.yy").write_text("un1 u@@ v2\n")
        words = command(name, {SYSTEMS[name].data: folder}, checkpoint_of(name))
        words += ["--unkpen", -1000, "--dataset-impl", "raw", "--print-alignment", "hard"]
        output = inprocess.generate(*words, "--replace-unk", "--post-process")
        chosen = [source[int(cell.split("-")[0])] for cell in cells(output)[0]]
        expected = (" ".join(chosen) + " ").replace("@@ ", "").strip()
        assert inprocess.hypotheses(output)[0][0][1] == expected
        assert inprocess.references(output) == {0: "un1 uv2"}
    with pytest.raises(ValueError, match="--replace-unk with --dataset-impl mmap"):
        inprocess.generate(*command("transformer", data, "none"), "--replace-unk")


def test_steps_of_refinement_are_refused(data, checkpoint_of, lines):
    words = command("transformer", data, checkpoint_of("transformer"), "--input", lines)
    for option in ("--print-step", "--retain-iter-history"):
        with pytest.raises(ValueError, match=f"{option}: there are no steps"):
            inprocess.interactive(*words, option)


def test_alignments_without_the_task_token():
    assert without_task_token([(1, 0), (3, 1)]) == [(0, 0), (2, 1)]
    assert without_task_token([["0.1", "0.9"], ["1.0", "0.0"]]) == [["0.9"], ["0.0"]]
    nothing = torch.empty(0)
    assert without_task_token(nothing) is nothing
