"""The experiments of examples/routed: equal sizes and batches, and from corpora to tables."""

import re
import shlex

import pytest
from examples.test_corpora_annotated import write_annotated
from experiments.definition import read_experiment
from experiments.execution import Run
from small_experiment import SmallExperiment, values_of

UPDATES = {"5000": (1500, 4500), "10000": (2000, 6000), "all": (2500, 7500)}
MODELS = ("single", "full", "partial", "routed", "shallow", "shallow_full", "unit")
ALONE = ("single", "shallow", "unit")
ENTRIES = {"en": 2500, "de": 2000, "ner": 9, "tree": 100, "amr": 1000}
OWN = ("--arch", "--hidden-size", "--router-size", "--shared-blocks", "--encoder-layers",
       "--decoder-layers", "--lang-pairs", "--save-dir")  # fmt: skip
SMALL = """
SIZE = "40"
LINES = 40
SHORT = "+10+4+1+2"
LONGER = "_long+30+6+1+2"
ENGLISH = "--vocabulary 60"
GERMAN = "--vocabulary 60"
GRAPHS = "--vocabulary 24"
SIZES = "--embed-dim 8 --attention-size 8"
STACKED = "--hidden-size 8"
ONE_LAYER = "--encoder-layers 1 --decoder-layers 1 --hidden-size 8"
BLOCKS = "--hidden-size 8 --router-size 4 --shared-blocks 2"
SEARCH = "--beam 2 --max-tokens 400 --max-len-b 5"
GREEDY = "--beam 1 --max-tokens 400 --max-len-b 5"
"""


def training(size, system, folder="DATA"):
    """The words of a system's training."""
    experiment = read_experiment(f"routed/{size}")
    run = Run(experiment.system(f"{system}.{size}"), 1, folder, folder / "runs")
    return shlex.split(run.lines("train")[0])


def without(words, flags):
    """The words without some options that have a value."""
    places = [words.index(flag) for flag in flags if flag in words]
    return [word for place, word in enumerate(words) if not {place, place - 1} & {*places}]


def test_systems_differ_in_model_and_pairs_alone(tmp_path):
    commands = {model: training("5000", model, tmp_path) for model in MODELS}
    for model, words in commands.items():
        pairs = words[words.index("--lang-pairs") + 1]
        assert pairs == ("en-de" if model in ALONE else "en-de,en-ner,en-tree,en-amr")
    assert len({tuple(without(words, OWN)) for words in commands.values()}) == 1


@pytest.mark.parametrize("size", UPDATES)
def test_long_ones_differ_in_their_updates_alone(size, tmp_path):
    for model in MODELS:
        short, longer = (training(size, name, tmp_path) for name in (model, f"{model}_long"))
        pairs = [pair for pair in zip(short, longer) if pair[0] != pair[1] and "/" not in pair[0]]
        less, more = UPDATES[size]
        assert [tuple(map(int, pair)) for pair in pairs] == [
            (less, more), (less, more), (less // 10, more // 10), *[(less // 8, more // 8)] * 2,
        ]  # fmt: skip


def used_for_translation(words):
    """Parameters on the way from English to German, of the model that the command builds."""
    import torch
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    import fairseq_ext.routed  # noqa: F401

    words = without(words[1:], ["--user-dir"])
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    cfg = convert_namespace_to_omegaconf(args)
    task = tasks.setup_task(cfg.task)
    task.build_criterion(cfg.criterion)
    with torch.device("meta"):
        model = task.build_model(cfg.model)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    return sum(sizes[name] for name in model.pair_parameters("en-de"))


def test_commands_build_models_of_equal_size(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir(parents=True)
    for language, size in ENTRIES.items():
        text = "".join(f"{language}{number} 9\n" for number in range(size))
        (folder / f"dict.{language}.txt").write_text(text, encoding="utf-8")
    counts = [used_for_translation(training("5000", model, tmp_path)) for model in MODELS]
    assert max(counts) < 1.01 * min(counts) and counts[0] == pytest.approx(1.2e6, rel=0.02)


def test_symbols_are_joined_as_sentencepiece_does(run, tmp_path, write):
    command = next(text for text in read_experiment("routed/5000").prepare if "sed" in text)
    script = re.search(r"sed '(.*?)'", command)[1]
    path = write(tmp_path / "in", ["(S (NP NN )NP )S"])
    pieces = run("sed", script, path).strip()
    assert pieces.replace(" ", "").replace("\u2581", " ").strip() == "(S (NP NN )NP )S"


@pytest.mark.slow
@pytest.mark.timeout(3600)  # many commands, each of which imports fairseq
def test_from_corpora_to_the_page(run, raw_text, tmp_path, write):
    small = SmallExperiment(run, tmp_path, "routed/5000", SMALL)
    raw = write_annotated(tmp_path / "raw", write)
    sizes = (("train", 120), ("val", 12), ("test_2016_flickr", 12))
    raw_text(raw / "multi30k", sizes)
    assert "ready:" in small.step("prepare", "--raw", raw)
    small.train("single.40", "routed.40", "routed_long.40")
    assert (small.runs / "routed.40.1" / "usage.png").is_file()
    lines = small.report()
    for metric in ("BLEU", "TER", "perplexity"):
        values = values_of(lines, metric, task="en-de", versus="", pairs="40")
        assert {name for name, _ in values} == {"single.40", "routed.40", "routed_long.40"}
    assert {line["passes"] for line in lines if line["system"] == "routed_long.40"} == {"30"}
    assert {line["model"] for line in lines} == {"single", "routed"}
    for task, metrics in {
        "en-ner": ("F1", "token accuracy", "exact match", "ill-formed lines", "of another length"),
        "en-tree": ("F1", "token accuracy", "exact match", "ill-formed lines", "of another length"),
        "en-amr": ("token accuracy", "exact match"),
    }.items():
        for metric in metrics:
            assert ("routed.40", "") in values_of(lines, metric, task=task, versus="")
    assert ("routed.40", "single.40") in values_of(lines, "BLEU", task="en-de")
    alone, every = (
        values_of(lines, f"parameters, {kind}", versus="") for kind in ("translation", "all tasks")
    )
    assert alone["single.40", ""] == every["single.40", ""]
    assert alone["routed.40", ""] < every["routed.40", ""]
    small.check_page("routed.md")
