"""preprocess -> train -> resume -> generate -> interactive -> validate, as users type it.

The chain runs real commands. Variants of generation that need no process of their own run in this
one, on the checkpoint that the chain has made.
"""

import functools
import json
import math

import pytest
from common import inprocess

TASK = ["--task", "dual_translation"]
TRAIN = [*TASK, "--arch", "dual_transformer_tiny", "-s", "xx", "-t", "yy"]
TRAIN += ["--share-all-embeddings", "--dropout", 0, "--optimizer", "adam", "--lr", 0.003]
TRAIN += ["--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1]
TRAIN += ["--batch-size", 16, "--seed", 1, "--cpu", "--num-workers", 0, "--no-progress-bar"]
TRAIN += ["--log-format", "simple"]
DIRECTIONS = [("xx", "yy"), ("yy", "xx")]


@pytest.fixture(scope="module")
def chain(run, user_dir, toy_corpus, tmp_path_factory):
    """Folder with `bin` (preprocessed) and `model` (trained, then resumed), and the two logs."""
    folder = tmp_path_factory.mktemp("chain")
    command = ["fairseq-preprocess", "-s", "xx", "-t", "yy", "--joined-dictionary"]
    for split in ("train", "valid", "test"):
        command += [f"--{split}pref", toy_corpus.text / split]
    run(*command, "--destdir", "bin", cwd=folder)
    command = ["fairseq-train", "bin", "--user-dir", user_dir, *TRAIN, "--save-dir", "model"]
    logs = [run(*command, "--max-epoch", epochs, cwd=folder) for epochs in (4, 5)]
    return folder, logs


def direction(source, target):
    return [*TASK, "-s", source, "-t", target]


def checkpoint(folder, name="checkpoint_last.pt"):
    return str(folder / "model" / name)


@pytest.fixture(scope="module")
def generate(chain):
    """Function (source, target, options...) -> output of fairseq-generate on the test set."""
    folder, _ = chain

    def generate(source, target, *flags, path=None, data=None):
        return inprocess.generate(
            data or folder / "bin",
            *direction(source, target),
            *["--path", path or checkpoint(folder), "--batch-size", 9, "--max-len-b", 20],
            *flags,
        )

    return generate


def test_training_ends_as_fairseq_does(chain):
    folder, (log, _) = chain
    last = log.strip().splitlines()[-2:]
    assert "| train | epoch 004 | loss" in last[0], last
    assert "done training in" in last[1], last
    for name in ("checkpoint1.pt", "checkpoint_last.pt", "checkpoint_best.pt"):
        assert (folder / "model" / name).is_file()


def test_training_logs_each_direction(chain):
    _, (log, _) = chain
    for source, target in DIRECTIONS:
        line = next(line for line in log.splitlines() if "valid on 'valid' subset" in line)
        assert f"{source}-{target}_loss" in line and f"{source}-{target}_ppl" in line


def test_training_resumes(chain):
    _, (_, log) = chain
    assert "checkpoint_last.pt (epoch 5 @ 60 updates)" in log
    assert "begin training epoch 5" in log
    assert "begin training epoch 4" not in log


@pytest.mark.parametrize("source, target", DIRECTIONS)
def test_generate_and_n_best(chain, run, user_dir, toy_corpus, source, target):
    folder, _ = chain
    output = run(
        *["fairseq-generate", "bin", "--user-dir", user_dir, *direction(source, target)],
        *["--path", "model/checkpoint_last.pt", "--beam", 4, "--nbest", 3, "--cpu"],
        *["--scoring", "sacrebleu", "--max-len-b", 20],
        cwd=folder,
    )
    hypotheses = inprocess.hypotheses(output)
    assert sorted(hypotheses) == list(range(toy_corpus.sizes["test"]))
    for nbest in hypotheses.values():
        assert len(nbest) == 3
        assert [score for score, _ in nbest] == sorted((s for s, _ in nbest), reverse=True)
        assert len({text for _, text in nbest}) == 3
    expected = toy_corpus.lines[target][-toy_corpus.sizes["test"] :]
    assert [text for _, text in sorted(inprocess.references(output).items())] == expected
    assert "Generate test with beam=4: BLEU = " in output


def test_data_binarised_as_xx_yy_trains_as_yy_xx(chain, tmp_path):
    folder, _ = chain
    flags = [word for word in TRAIN if word not in ("-s", "-t", "xx", "yy")]
    inprocess.train(
        folder / "bin", *flags, "-s", "yy", "-t", "xx", "--max-update", 1, "--save-dir", tmp_path,
        "--disable-validation",
    )  # fmt: skip
    for source, target in DIRECTIONS:
        output = inprocess.generate(
            folder / "bin",
            *direction(source, target),
            *["--path", tmp_path / "checkpoint_last.pt", "--max-len-b", 5],
        )
        assert inprocess.hypotheses(output)


@pytest.mark.parametrize("source, target", DIRECTIONS)
def test_batch_size_does_not_change_the_hypotheses(generate, source, target):
    single = inprocess.hypotheses(generate(source, target, "--batch-size", 1, "--nbest", 2))
    many = inprocess.hypotheses(generate(source, target, "--batch-size", 24, "--nbest", 2))
    assert single.keys() == many.keys()
    for number, nbest in single.items():
        assert [text for _, text in nbest] == [text for _, text in many[number]]
        for (score, _), (other, _) in zip(nbest, many[number]):
            assert score == pytest.approx(other, abs=2e-4)


@pytest.mark.parametrize("source, target", DIRECTIONS)
def test_ensemble(chain, generate, source, target):
    """Of a checkpoint with itself: the same. Of two: the log of the mean of their probabilities."""
    folder, _ = chain
    early, late = checkpoint(folder, "checkpoint1.pt"), checkpoint(folder)
    alone = inprocess.hypotheses(generate(source, target))
    twice = inprocess.hypotheses(generate(source, target, path=f"{late}:{late}"))
    for number, nbest in alone.items():
        assert [text for _, text in twice[number]] == [text for _, text in nbest]
        assert twice[number][0][0] == pytest.approx(nbest[0][0], abs=1e-4)
    score = [source, target, "--score-reference"]
    parts = [positional_scores(generate(*score, path=path)) for path in (early, late)]
    both = positional_scores(generate(*score, path=f"{early}:{late}"))
    for number, scores in both.items():
        for together, first, second in zip(scores, parts[0][number], parts[1][number]):
            mean = math.log2((2**first + 2**second) / 2)
            assert together == pytest.approx(mean, abs=1e-3)
    assert inprocess.hypotheses(generate(source, target, path=f"{early}:{late}"))


def positional_scores(output):
    """{sentence number: scores of the tokens of the first hypothesis} of the P lines, base 2."""
    by_sentence = {}
    for line in output.splitlines():
        if line.startswith("P-"):
            label, scores = line.split("\t")
            by_sentence.setdefault(int(label[2:]), [float(score) for score in scores.split()])
    return by_sentence


@pytest.mark.parametrize("source, target", DIRECTIONS)
def test_prefix_tokens(generate, source, target):
    output = generate(source, target, "--prefix-size", 2, "--beam", 3)
    references, hypotheses = inprocess.references(output), inprocess.hypotheses(output)
    assert len(hypotheses) == len(references)
    for number, nbest in hypotheses.items():
        assert nbest[0][1].split()[:2] == references[number].split()[:2]
    free = inprocess.hypotheses(generate(source, target, "--beam", 3))
    assert free != hypotheses


@pytest.mark.parametrize("source, target", DIRECTIONS)
def test_reference_score_is_the_generation_score(
    chain, generate, toy_corpus, tmp_path, source, target
):
    """The hypotheses, given back as references, are scored as they were when generated."""
    from fairseq import options
    from fairseq_cli import preprocess

    folder, _ = chain
    generated = inprocess.hypotheses(generate(source, target))
    numbers = sorted(generated)
    size = toy_corpus.sizes["test"]
    lines = {source: toy_corpus.lines[source][-size:]}
    lines[target] = [generated[number][0][1] for number in numbers]
    for lang, text in lines.items():
        path = tmp_path / f"again.{lang}"
        path.write_text("".join(line + "\n" for line in text), encoding="utf-8")
    dictionary = str(folder / "bin" / f"dict.{source}.txt")
    arguments = ["-s", source, "-t", target, "--testpref", str(tmp_path / "again")]
    arguments += ["--destdir", str(tmp_path / "bin")]
    arguments += ["--srcdict", dictionary, "--joined-dictionary"]
    preprocess.main(options.get_preprocessing_parser().parse_args(arguments))
    output = generate(source, target, "--score-reference", data=tmp_path / "bin")
    scored = inprocess.hypotheses(output)
    assert sorted(scored) == numbers
    for number in numbers:
        assert scored[number][0][1] == generated[number][0][1]
        assert scored[number][0][0] == pytest.approx(generated[number][0][0], abs=2e-4)


@pytest.fixture(scope="module")
def plain(generate):
    """Function (beam) -> all that the search finds with no other option."""

    @functools.cache
    def search(beam):
        return inprocess.hypotheses(generate("xx", "yy", "--beam", beam, "--nbest", beam))

    return search


@pytest.mark.parametrize(
    "beam, flags",
    [
        (1, ["--sampling", "--sampling-topk", 5, "--seed", 1]),
        (4, ["--diverse-beam-groups", 2, "--diverse-beam-strength", 0.5]),
        (4, ["--diversity-rate", 0.5]),
        (2, ["--no-repeat-ngram-size", 1]),
        (2, ["--lenpen", 0.5]),
        (2, ["--min-len", 6]),
        (2, ["--bf16"]),
    ],
    ids=lambda flags: flags[0] if isinstance(flags, list) else None,
)
def test_other_ways_to_generate(generate, toy_corpus, plain, beam, flags):
    """Each finds a translation of every sentence, and not those of the plain search."""
    search = ["--beam", beam, "--nbest", beam]
    hypotheses = inprocess.hypotheses(generate("xx", "yy", *search, *flags))
    assert len(hypotheses) == toy_corpus.sizes["test"]
    assert hypotheses != plain(beam)
    sentences = [text.split() for nbest in hypotheses.values() for _, text in nbest]
    if "--no-repeat-ngram-size" in flags:
        assert all(len(set(words)) == len(words) for words in sentences)
    if "--min-len" in flags:
        assert min(map(len, sentences)) >= 6


def test_alignments_point_into_the_source(generate):
    output = generate("yy", "xx", "--print-alignment", "--beam", 2)
    sources = {}
    for line in output.splitlines():
        label, _, text = line.partition("\t")
        if label.startswith("S-"):
            sources[label[2:]] = len(text.split()) + 1
        if label.startswith("A-"):
            links = [tuple(map(int, link.split("-"))) for link in text.split()]
            assert links and all(0 <= word < sources[label[2:]] for word, _ in links)
    assert "\nA-" in output


@pytest.mark.parametrize("source, target", DIRECTIONS)
def test_interactive(chain, run, user_dir, toy_corpus, generate, source, target):
    """The sentences of the test set, typed in, get the translations that generate gives them."""
    folder, _ = chain
    typed = toy_corpus.lines[source][-6:]
    output = run(
        *["fairseq-interactive", "bin", "--user-dir", user_dir, *direction(source, target)],
        *["--path", "model/checkpoint_last.pt", "--cpu", "--beam", 3, "--max-len-b", 20],
        cwd=folder,
        stdin="".join(line + "\n" for line in typed),
    )
    texts = [nbest[0][1] for _, nbest in sorted(inprocess.hypotheses(output).items())]
    all_of_test = sorted(inprocess.hypotheses(generate(source, target, "--beam", 3)).items())
    assert texts == [nbest[0][1] for _, nbest in all_of_test][-6:]


@pytest.mark.parametrize("kind", ["ordered", "unordered"])
@pytest.mark.parametrize("source, target", DIRECTIONS)
def test_lexical_constraints(chain, toy_corpus, tmp_path, source, target, kind):
    """Words that the model would not choose appear in the hypotheses; batches are mixed."""
    folder, _ = chain
    first = "u" if target == "yy" else "a"
    constraints = [[f"{first}n8", f"{first}v7"], [f"{first}v0"], [], [f"{first}n1"]]
    typed = tmp_path / "typed"
    lines = [
        "\t".join([line, *words]) for line, words in zip(toy_corpus.lines[source], constraints)
    ]
    typed.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    output = inprocess.interactive(
        folder / "bin",
        *direction(source, target),
        *["--path", checkpoint(folder), "--input", typed, "--beam", 8, "--constraints", kind],
        *["--buffer-size", 4, "--batch-size", 4, "--max-len-b", 15],
    )
    hypotheses = inprocess.hypotheses(output)
    assert len(hypotheses) == 4
    for number, words in enumerate(constraints):
        hypothesis = hypotheses[number][0][1].split()
        assert set(words) <= set(hypothesis)
        if kind == "ordered":
            positions = [hypothesis.index(word) for word in words]
            assert positions == sorted(positions)


@pytest.mark.parametrize("source, target", DIRECTIONS)
def test_validate(chain, run, user_dir, source, target):
    folder, (_, log) = chain
    output = run(
        *["fairseq-validate", "bin", "--user-dir", user_dir, *direction(source, target)],
        *["--path", "model/checkpoint_last.pt", "--batch-size", 8, "--cpu"],
        *["--log-format", "json"],
        cwd=folder,
    )
    line = next(line for line in output.splitlines() if f"{source}-{target}_loss" in line)
    loss = float(json.loads(line[line.index("{") :])[f"valid_{source}-{target}_loss"])
    trained = [line for line in log.splitlines() if "valid on 'valid' subset" in line][-1]
    expected = float(trained.split(f"{source}-{target}_loss ")[1].split()[0])
    assert loss == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("source, target", DIRECTIONS)
def test_python_interface(chain, toy_corpus, generate, source, target):
    """`from_pretrained(...).translate(...)` gives the hypotheses of fairseq-generate."""
    from fairseq.models import MODEL_REGISTRY

    folder, _ = chain
    hub = MODEL_REGISTRY["dual_transformer"].from_pretrained(
        str(folder / "model"),
        "checkpoint_last.pt",
        data_name_or_path=str(folder / "bin"),
        source_lang=source,
        target_lang=target,
    )
    typed = toy_corpus.lines[source][-3:]
    texts = hub.translate(typed, beam=3, max_len_b=20)
    generated = sorted(inprocess.hypotheses(generate(source, target, "--beam", 3)).items())
    assert texts == [nbest[0][1] for _, nbest in generated][-3:]


def test_model_has_learnt_something(generate, toy_corpus):
    """What the tests above compare is not noise: most words of the output are right."""
    output = generate("xx", "yy")
    references, hypotheses = inprocess.references(output), inprocess.hypotheses(output)
    right = sum(
        len(set(nbest[0][1].split()) & set(references[number].split()))
        for number, nbest in hypotheses.items()
    )
    assert right / sum(len(text.split()) for text in references.values()) > 0.3
