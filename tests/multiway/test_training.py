"""Training, translating and validating in all directions from one checkpoint."""

import math
import random

import pytest
import torch
from common import inprocess
from fairseq.data import Dictionary

TASK = ["--task", "multiway_translation"]
ALL_BUT_ONE = "xx-yy,yy-xx,xx-zz,zz-xx,yy-zz"
OPTIMISE = ["--optimizer", "adam", "--lr", 0.005, "--clip-norm", 1, "--seed", 1]
SMALL = ["--embed-dim", 16, "--hidden-size", 24, "--context-size", 20, "--readout-size", 16]
SMALL += ["--init-hidden-size", 12, "--init-size", 12]


def train(data, folder, updates, *flags, arch="multiway_gru"):
    sizes = SMALL if arch == "multiway_gru" else []
    return inprocess.train(
        data, *TASK, "--arch", arch, *sizes, *OPTIMISE, "--max-update", updates,
        "--save-dir", folder, "--no-epoch-checkpoints", "--no-progress-bar", *flags,
    )  # fmt: skip


@pytest.fixture(scope="module")
def trained(toy_corpus, tmp_path_factory):
    """A checkpoint after a few updates on five of the six directions."""
    folder = tmp_path_factory.mktemp("multiway")
    flags = ["--lang-pairs", ALL_BUT_ONE, "--encoder-hidden-size", "zz=10", "--batch-size", 24]
    train(toy_corpus.three, folder, 60, *flags)
    return folder / "checkpoint_last.pt"


def generate(data, checkpoint, source, target, *flags):
    return inprocess.generate(
        data, *TASK, "-s", source, "-t", target, "--path", checkpoint, "--beam", 3, *flags
    )


@pytest.mark.parametrize(
    "direction",
    ["xx-yy", "zz-xx", "zz-yy", "xx+zz-yy", "zz+xx-yy"],
    ids=["trained", "other size", "zero-shot", "two sources", "two sources, other order"],
)
def test_scoring_gives_the_scores_of_beam_search(trained, toy_corpus, tmp_path, direction):
    """Teacher-forced scores of the hypotheses are those that the search found step by step."""
    source, target = direction.split("-")
    searched = inprocess.hypotheses(generate(toy_corpus.three, trained, source, target))
    text = tmp_path / "text"
    text.mkdir()
    langs = [*source.split("+"), target]
    for lang in langs[:-1]:
        (text / f"test.{lang}").write_text(toy_corpus.text.joinpath(f"test.{lang}").read_text())
    lines = [searched[number][0][1] for number in range(len(searched))]
    (text / f"test.{target}").write_text("".join(line + "\n" for line in lines))
    data = binarise(text, tmp_path / "bin", toy_corpus.dictionary, langs)
    scored = inprocess.hypotheses(
        generate(data, trained, source, target, "--score-reference", "--batch-size", 5)
    )
    assert len(scored) == 24
    for number, (score, line) in ((number, nbest[0]) for number, nbest in searched.items()):
        if len(line.split()) < 50:  # a hypothesis without an end is scored without it
            assert abs(scored[number][0][0] - score) < 2e-4


def binarise(text, folder, dictionary, langs):
    """test.SOURCE-TARGET of every source, by fairseq's own indexed dataset."""
    from fairseq import options
    from fairseq_cli import preprocess

    for source in langs[:-1]:
        words = ["-s", source, "-t", langs[-1], "--srcdict", dictionary, "--tgtdict", dictionary]
        words += ["--testpref", text / "test", "--destdir", folder]
        parser = options.get_preprocessing_parser()
        preprocess.main(parser.parse_args([str(word) for word in words]))
        for lang in (source, langs[-1]):
            (folder / f"dict.{lang}.txt").rename(folder / f"{lang}.kept")
    for lang in langs:
        (folder / f"{lang}.kept").rename(folder / f"dict.{lang}.txt")
    for lang in {"xx", "yy", "zz"} - set(langs):
        (folder / f"dict.{lang}.txt").write_text(dictionary.read_text())
    return folder


def test_late_averaging_is_the_mean_of_the_distributions(trained, toy_corpus):
    """At the first step: a word's score (fairseq prints base 2) is that of the mean probability."""
    flags = ["--prefix-size", 1, "--max-len-a", 0, "--max-len-b", 1, "--batch-size", 4]

    def first_word(source, *more):
        output = generate(toy_corpus.three, trained, source, "yy", *flags, *more)
        lines = (line for line in output.splitlines() if line.startswith("P-"))
        return {line.split("\t")[0]: float(line.split("\t")[1].split()[0]) for line in lines}

    late = first_word("xx+zz", "--source-average", "late")
    alone = [first_word("xx"), first_word("zz")]
    early = first_word("xx+zz")
    for label, score in late.items():
        mean = torch.tensor([scores[label] for scores in alone]).double().exp2().mean().log2()
        assert abs(score - mean) < 2e-4  # printed with four digits
    assert any(abs(early[label] - late[label]) > 1e-3 for label in late)


def test_interactive_takes_several_sources_in_a_line(trained, toy_corpus, tmp_path):
    lines = [
        f"{first} ||| {second}"
        for first, second in zip(
            toy_corpus.text.joinpath("test.xx").read_text().splitlines()[:5],
            toy_corpus.text.joinpath("test.zz").read_text().splitlines()[:5],
        )
    ]
    file = tmp_path / "input"
    file.write_text("".join(line + "\n" for line in lines))
    flags = [*TASK, "-s", "xx+zz", "-t", "yy", "--path", trained, "--beam", 3]
    output = inprocess.interactive(toy_corpus.three, *flags, "--input", file)
    whole = inprocess.hypotheses(generate(toy_corpus.three, trained, "xx+zz", "yy"))
    typed = inprocess.hypotheses(output)
    assert [typed[n][0][1] for n in range(5)] == [whole[n][0][1] for n in range(5)]
    assert f"S-0\t{lines[0]}" in output


def test_an_empty_text_among_several_is_read_as_if_binarised(trained, tmp_path, toy_corpus, run):
    sides = {"xx": ["", "an1 av1 an2", ""], "zz": ["iv1 in2 ko in1", "", ""]}
    sides["yy"] = ["un1 un2 uv1"] * 3
    for language, lines in sides.items():
        (tmp_path / f"test.{language}").write_text("".join(line + "\n" for line in lines))
    words = ["fairseq-preprocess", "--testpref", tmp_path / "test", "--destdir", tmp_path / "bin"]
    words += ["--srcdict", toy_corpus.dictionary, "--tgtdict", toy_corpus.dictionary]
    for source in ("xx", "zz"):
        run(*words, "-s", source, "-t", "yy")
    file = tmp_path / "input"
    file.write_text("".join(f"{x} ||| {z}\n" for x, z in zip(sides["xx"], sides["zz"])))
    flags = [*TASK, "-s", "xx+zz", "-t", "yy", "--path", trained, "--beam", 3]
    whole = inprocess.hypotheses(inprocess.generate(tmp_path / "bin", *flags))
    typed = inprocess.hypotheses(inprocess.interactive(toy_corpus.three, *flags, "--input", file))
    assert sorted(typed) == sorted(whole) == [0, 1, 2]
    for number in range(3):
        assert [score for score, _ in typed[number]] == pytest.approx(
            [score for score, _ in whole[number]], abs=1e-4
        )


def test_a_bad_line_of_several_sources_has_an_empty_answer(trained, tmp_path, toy_corpus):
    """It is named by its number in the input, and the session goes on."""
    file = tmp_path / "input"
    bad, good = "an1 av1 an2", "an1 av1 an2 ||| iv1 in2 ko in1"
    file.write_text(f"{good}\n{bad}\n\n{good}\nan1 </s> av1 an2 ||| iv1 in2 ko in1\n")
    flags = [*TASK, "-s", "xx+zz", "-t", "yy", "--path", trained, "--beam", 3, "--buffer-size", 2]
    output = inprocess.interactive(toy_corpus.three, *flags, "--batch-size", 2, "--input", file)
    assert f"{file}: line 2 is not translated: -s xx+zz: {bad!r} must hold 2 texts" in output
    assert f"{file}: line 3 is not translated" in output
    answers = inprocess.hypotheses(output)
    assert sorted(answers) == [0, 1, 2, 3, 4]
    assert answers[1] == answers[2] == [(-math.inf, "")]
    assert answers[0] == answers[3] != answers[1]
    assert answers[4][0][1]  # a word that is spelt like the end symbol is unknown


def test_validate_takes_a_direction_or_several_sources(trained, toy_corpus):
    for source in ("xx", "xx+zz"):
        records = inprocess.validate(
            toy_corpus.three, *TASK, "-s", source, "-t", "yy", "--path", trained, "--batch-size", 8
        )
        assert records[-1][f"valid_{source}-yy_loss"] > 0


def test_validate_refuses_the_late_average(trained, toy_corpus):
    words = (toy_corpus.three, *TASK, "-s", "xx+zz", "-t", "yy", "--path", trained)
    with pytest.raises(ValueError, match="--source-average late: .*allowed: early"):
        inprocess.validate(*words, "--batch-size", 8, "--source-average", "late")


def test_any_stock_criterion_and_bleu_of_every_pair(toy_corpus, tmp_path):
    for criterion in ("cross_entropy", "label_smoothed_cross_entropy"):
        records = train(
            toy_corpus.three, tmp_path / criterion, 2, "--lang-pairs", "xx-yy,zz-xx",
            "--criterion", criterion, "--batch-size", 16, "--eval-bleu",
            "--eval-bleu-args", '{"beam": 2, "max_len_b": 6}',
            "--best-checkpoint-metric", "worst_bleu", "--maximize-best-checkpoint-metric",
        )  # fmt: skip
        last = [record for record in records if "valid_bleu" in record][-1]
        assert {"valid_xx-yy_bleu", "valid_zz-xx_bleu", "valid_worst_bleu"} <= set(last)
        assert (tmp_path / criterion / "checkpoint_best.pt").exists()


@pytest.mark.parametrize(
    "source, target, message",
    [
        ("xx", "qq", "no dictionary for language 'qq'"),
        ("xx+xx", "yy", "the checkpoint translates"),
        ("xx+yy", "yy", "the checkpoint translates"),
        ("xx", "xx", "must be two different languages"),
    ],
)
def test_wrong_directions_are_named(trained, toy_corpus, source, target, message):
    with pytest.raises(ValueError, match=message):
        generate(toy_corpus.three, trained, source, target)


@pytest.mark.parametrize(
    "flags, error, message",
    [
        (["--lang-pairs", "xx-qq"], ValueError, "no dictionary for language 'qq'"),
        (["--lang-pairs", "xx-yy,zz"], ValueError, "'zz' is not of the form SOURCE-TARGET"),
        (
            ["--lang-pairs", "xx-yy", "--encoder-hidden-size", "qq=4"],
            ValueError,
            "'qq' is not a so",
        ),
        (["--lang-pairs", "xx-yy", "--encoder-hidden-size", "xx=0"], ValueError, "positive number"),
        (["--lang-pairs", "xx-yy", "--hidden-size", "0"], ValueError, "--hidden-size 0"),
        (["--lang-pairs", "xx-yy", "--join-at", "xx-yy=3"], ValueError, "--join-at"),
        (["--lang-pairs", "xx-yy,zz-yy", "--join-at", "zz-yy=99"], ValueError, "99"),
        (["--lang-pairs", "xx-yy", "--train-only", "sharde"], ValueError, "sharde"),
    ],
)
def test_wrong_options_are_named(toy_corpus, tmp_path, flags, error, message):
    with pytest.raises(error, match=message):
        train(toy_corpus.three, tmp_path, 2, "--batch-size", 16, *flags)


def test_pair_without_data_and_sources_that_do_not_align_are_named(trained, toy_corpus, tmp_path):
    folder = tmp_path / "part"
    folder.mkdir()
    for path in toy_corpus.three.iterdir():
        if not path.name.startswith(("train.xx-zz", "test.yy-zz")):
            (folder / path.name).write_bytes(path.read_bytes())
    with pytest.raises(FileNotFoundError, match=r"no train\.xx-zz or train\.zz-xx"):
        train(folder, tmp_path / "run", 2, "--lang-pairs", "xx-yy,xx-zz", "--batch-size", 16)
    dictionary = Dictionary.load(str(toy_corpus.dictionary))
    assert dictionary.eos() == 2
    for kind in ("bin", "idx"):  # another test set under the pair's name
        for lang in ("yy", "zz"):
            source = toy_corpus.three / f"valid.yy-zz.{lang}.{kind}"
            (folder / f"test.yy-zz.{lang}.{kind}").write_bytes(source.read_bytes())
    with pytest.raises(ValueError, match="line 1 of test has different targets"):
        generate(folder, trained, "xx+zz", "yy")


@pytest.mark.slow
def test_six_directions_are_learnt(run, tmp_path):
    """Letters of three alphabets, turned round in one: every direction, trained or not."""
    rng, langs = random.Random(4), ("xx", "yy", "zz")
    for split, size in (("train", 1500), ("valid", 50), ("test", 100)):
        lines = {lang: [] for lang in langs}
        for _ in range(size):
            words = [rng.randrange(12) for _ in range(rng.randint(1, 6))]
            for lang in langs:
                order = reversed(words) if lang == "yy" else words
                lines[lang].append(" ".join(f"{lang}{word}" for word in order))
        for lang, texts in lines.items():
            text = "".join(line + "\n" for line in texts)
            (tmp_path / f"{split}.{lang}").write_text(text)
    words = "".join(f"{lang}{word} 1\n" for lang in langs for word in range(12))
    (tmp_path / "dict.txt").write_text(words)
    pairs = [("xx", "yy"), ("xx", "zz"), ("yy", "zz")]
    for source, target in pairs:
        prefixes = [f"--{split}pref={tmp_path / split}" for split in ("train", "valid", "test")]
        run(
            "fairseq-preprocess", "-s", source, "-t", target, *prefixes,
            "--srcdict", tmp_path / "dict.txt", "--tgtdict", tmp_path / "dict.txt",
            "--destdir", tmp_path / "bin",
        )  # fmt: skip
    both = [f"{source}-{target}" for pair in pairs for source, target in (pair, pair[::-1])]
    train(
        tmp_path / "bin", tmp_path / "run", 2400, "--lang-pairs", ",".join(both),
        "--lr-scheduler", "polynomial_decay", "--total-num-update", 2400,
        "--batch-size", 50, "--disable-validation", arch="multiway_gru_tiny",
    )  # fmt: skip
    for pair in both:
        source, target = pair.split("-")
        output = generate(tmp_path / "bin", tmp_path / "run/checkpoint_last.pt", source, target)
        hypotheses, references = inprocess.hypotheses(output), inprocess.references(output)
        right = sum(hypotheses[number][0][1] == text for number, text in references.items())
        assert right >= 90, f"{pair}: {right} of {len(references)}"
