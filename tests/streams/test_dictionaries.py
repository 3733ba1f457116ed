"""Each direction reads and writes with the dictionaries of its own languages."""

import math
import re

import pytest
from common import inprocess
from fairseq import options, tasks
from streams.folders import random_lines, words_of, write_pair

PAIRS = "xx-yy,zz-xx"
ARCHS = {
    "dual_translation": ["--arch", "dual_transformer_tiny", "--embed-dim", 16],
    "multiway_translation": ["--arch", "multiway_gru", "--embed-dim", 16, "--hidden-size", 16],
    "routed_mtl": ["--arch", "routed_gru", "--embed-dim", 16, "--hidden-size", 16],
}
LINES = {lang: random_lines(lang, 4, lengths=(3, 5)) for lang in ("xx", "yy", "zz")}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Three languages with dictionaries of equal size and no word in common."""
    folder = tmp_path_factory.mktemp("separate")
    for split in ("train", "valid", "test"):
        for pair in ("xx-yy", "zz-xx", "zz-yy"):
            languages = {lang: LINES[lang] for lang in pair.split("-")}
            write_pair(folder, split, pair, **languages)
    return folder


@pytest.fixture(scope="module", params=ARCHS)
def trained(request, data, tmp_path_factory):
    """(task, checkpoint) of one update."""
    task = request.param
    folder = tmp_path_factory.mktemp(task)
    pairs = "xx-yy,yy-xx,zz-xx,xx-zz"
    inprocess.train(
        data, "--task", task, *ARCHS[task], "--lang-pairs", pairs, "--schedule", "cycle",
        "--optimizer", "adam", "--lr", 0.001, "--batch-size", 12, "--max-update", 1,
        "--disable-validation", "--save-dir", folder, "--no-progress-bar",
    )  # fmt: skip
    return task, folder / "checkpoint_last.pt"


def printed(output, letter):
    """{sentence number: the last column without a task token} of the lines S-, T- or H-."""
    lines = re.findall(rf"^{letter}-(\d+)\t(?:.*\t)?(?:__task_\S+ )?(.*)$", output, re.MULTILINE)
    return {int(number): text for number, text in lines}


NAMED = ["--lang-pairs", "xx-yy,yy-xx,zz-xx,xx-zz"]


@pytest.mark.parametrize(
    "direction, named", [("xx-yy", NAMED), ("yy-xx", NAMED), ("xx-zz", NAMED), ("xx-zz", [])]
)
def test_generate_prints_the_words_of_the_direction(trained, data, direction, named):
    task, checkpoint = trained
    source, target = direction.split("-")
    words = [data, "--task", task, "-s", source, "-t", target, *named, "--path", checkpoint]
    output = inprocess.generate(*words, "--beam", 2, "--max-len-b", 4)
    assert printed(output, "S") == dict(enumerate(LINES[source]))
    assert printed(output, "T") == dict(enumerate(LINES[target]))
    written = set(" ".join(printed(output, "H").values()).split())
    assert written <= {*words_of(target), "<unk>"} and not written <= {"<unk>"}


def test_interactive_and_validate_read_the_words_of_the_direction(trained, data, tmp_path):
    """Sources, hypotheses and the references' scores are those of fairseq-generate."""
    task, checkpoint = trained
    lines = tmp_path / "lines"
    lines.write_text("\n".join(LINES["xx"]) + "\n")
    words = [data, "--task", task, "-s", "xx", "-t", "zz", "--path", checkpoint]
    named = [*words, *NAMED]
    search = ["--beam", 2, "--max-len-b", 4]
    output = inprocess.interactive(*named, *search, "--input", lines)
    assert printed(output, "S") == dict(enumerate(LINES["xx"]))
    assert printed(output, "H") == printed(inprocess.generate(*named, *search), "H")
    scored = inprocess.generate(*named, "--score-reference")
    assert printed(scored, "H") == dict(enumerate(LINES["zz"]))
    scores = [(nbest[0][0], nbest[0][1]) for nbest in inprocess.hypotheses(scored).values()]
    lengths = [len(text.split()) + 1 for _, text in scores]
    bits = sum(score * length for (score, _), length in zip(scores, lengths))
    record = inprocess.validate(*words, "--batch-size", 3)[-1]
    assert record["valid_loss"] == pytest.approx(-bits / sum(lengths), abs=2e-3)
    nats = bits * math.log(2) / len(scores)  # of a reference, in the mean
    for name in ("valid_xx-zz_log_likelihood", "valid_log_likelihood"):
        assert record[name] == pytest.approx(nats, abs=2e-3)


@pytest.mark.parametrize("task", ARCHS)
def test_bleu_leaves_the_dictionaries_of_the_task_alone(task, data):
    words = [data, "--task", task, *ARCHS[task], "--lang-pairs", PAIRS, "--eval-bleu"]
    words += ["--eval-bleu-args", '{"beam": 1}', "--schedule", "cycle"]
    words += ["--optimizer", "adam"]
    cfg = inprocess.configuration(options.get_training_parser(), words)
    run_task = tasks.setup_task(cfg.task)
    before = run_task.source_dictionary, run_task.target_dictionary
    run_task.build_model(cfg.model)
    assert (run_task.source_dictionary, run_task.target_dictionary) == before
    assert set(run_task.bleu.generators) >= set(PAIRS.split(","))
    for pair, generator in run_task.bleu.generators.items():
        source, expected = (run_task.dictionaries[lang] for lang in pair.split("-"))
        assert generator.eos == expected.eos() and generator.vocab_size == len(expected)
        (direction,) = generator.model.models
        assert direction.encoder.dictionary is source and direction.decoder.dictionary is expected


def test_several_sources_are_read_and_printed_with_a_dictionary_each(trained, data, tmp_path):
    task, checkpoint = trained
    if task != "multiway_translation":
        return
    words = [data, "--task", task, "-s", "xx+zz", "-t", "yy", "--path", checkpoint]
    words += ["--lang-pairs", "xx-yy,zz-xx", "--beam", 2, "--max-len-b", 4]
    output = inprocess.generate(*words)
    expected = [" ||| ".join(texts) for texts in zip(LINES["xx"], LINES["zz"])]
    assert printed(output, "S") == dict(enumerate(expected))
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in expected))
    typed = inprocess.interactive(*words, "--input", tmp_path / "lines")
    for letter in "SH":
        assert printed(typed, letter) == printed(output, letter)
