"""The experiments of examples/twin: systems differ in the criterion, and go from data to tables."""

import re
import shlex
import zipfile

import pytest
from common.inprocess import configuration
from examples.test_corpora_captions import write_mnist
from experiments.definition import names, read_experiment
from experiments.execution import Run
from fairseq import options, tasks
from small_experiment import SmallExperiment, values_of

EXPERIMENTS = [name.split("/")[1] for name in names() if name.startswith("twin/")]
TASKS = {
    "digits": "speech_to_text",
    "digits_single": "speech_to_text",
    "digits_speakers": "speech_to_text",
    "multi30k": "translation",
    "ptb": "language_modeling",
    "pixels": "language_modeling",
    "pixels_full": "language_modeling",
    "captions": "image_captioning",
    "captions_plain": "image_captioning",
}
WITH_BACKWARD = {"both", "identity", "learnt"}
ONE_WAY = {"baseline", "noise", "norm", "zeros"}
LENGTH = """
LENGTH = '''--max-update 6 --total-num-update 6 --warmup-updates 1
    --validate-interval-updates 3 --save-interval-updates 3'''
"""
# the texts of [variables]; the metrics that the report must have
SMALL = {
    "captions": (
        """
STRIPS = "--strips 60 10 10"
FEATURES = "--features grid --components 0"
MODEL = '''--arch twin_caption_attention --feature-size 125 --embed-dim 8 --hidden-size 16
    --attention-size 8'''
""",
        ("right, %", "BLEU"),
    ),
    "digits": (
        """
HELD_OUT = "--test 0-0 --valid 1-1"
STRINGS = "--digits 1 2 --strings 30 4 4"
MODEL = '''--arch twin_speech_lstm --encoder-hidden-size 8 --time-reduction 1,2,2 --embed-dim 8
    --hidden-size 16 --attention-size 8 --readout-size 8 --conv-width 3'''
""",
        ("CER", "WER", "right, %"),
    ),
    "multi30k": (
        """
LINES = "--train-lines 60"
VOCABULARY = "--vocabulary 45"
MODEL = '''--arch twin_lstm --encoder-embed-dim 8 --encoder-hidden-size 8 --decoder-embed-dim 8
    --decoder-hidden-size 8 --decoder-out-embed-dim 8'''
""",
        ("BLEU", "chrF", "perplexity"),
    ),
    "ptb": (
        """
LINES = 12
MODEL = '''--arch twin_lstm_lm --decoder-embed-dim 8 --decoder-hidden-size 8 --decoder-layers 1
    --decoder-out-embed-dim 8'''
""",
        ("perplexity",),
    ),
    "pixels": (
        """
VALID = 3
TEST = 3
MODEL = '''--arch twin_lstm_lm --decoder-embed-dim 8 --decoder-hidden-size 8 --decoder-layers 1
    --decoder-out-embed-dim 8'''
""",
        ("nats per image",),
    ),
}


def training(name, system, folder):
    """The words of a system's training; the run's folder is RUN."""
    run = Run(read_experiment(f"twin/{name}").system(system), 1, folder, folder / "runs")
    return shlex.split(run.lines("train")[0].replace(str(run.folder), "RUN"))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_systems_differ_in_the_criterion_alone(name, tmp_path):
    systems = list(read_experiment(f"twin/{name}").systems)
    has_encoder = TASKS[name] in ("speech_to_text", "translation")
    assert set(systems) == ONE_WAY | (WITH_BACKWARD if has_encoder else WITH_BACKWARD - {"both"})
    commands = [training(name, system, tmp_path) for system in systems]
    # the criterion comes last
    places = [words.index("--criterion") for words in commands]
    assert len({tuple(words[:place]) for words, place in zip(commands, places)}) == 1
    assert len({tuple(words[place:]) for words, place in zip(commands, places)}) == len(systems)
    assert "--twin-weight" not in commands[0] and "polynomial_decay" in commands[0]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with the dictionaries of every task, and a config.yaml."""
    folder = tmp_path_factory.mktemp("dictionaries")
    (folder / "bin").mkdir()
    for name in ("dict", "dict.de", "dict.en"):
        (folder / "bin" / f"{name}.txt").write_text("a 3\nb 2\n", encoding="utf-8")
    config = "input_feat_per_channel: 123\ninput_channels: 1\n"
    (folder / "bin" / "config.yaml").write_text(config, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_commands_build(name, data):
    import torch

    counts = set()
    systems = read_experiment(f"twin/{name}").systems
    for system in systems if name == "digits" else ("baseline", "learnt"):
        words = training(name, system, data)
        place = words.index("--user-dir")  # imported already
        cfg = configuration(options.get_training_parser(), words[1:place] + words[place + 2 :])
        task = tasks.setup_task(cfg.task)
        assert words[words.index("--task") + 1] == TASKS[name]
        with torch.device("meta"):
            counts.add(sum(part.numel() for part in task.build_model(cfg.model).parameters()))
            criterion = task.build_criterion(cfg.criterion)
        parameters = sum(part.numel() for part in criterion.parameters())
        assert bool(parameters) == (system in WITH_BACKWARD)
    assert len(counts) == 1


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_distances_are_of_systems_with_a_backward_network(name, tmp_path):
    experiment = read_experiment(f"twin/{name}")
    for system in experiment.systems.values():
        lines = Run(system, 1, tmp_path, tmp_path / "runs").lines("evaluate")
        (*_, last) = lines
        assert ("twin-distance" in last) == (system.name in WITH_BACKWARD)
        assert not any("twin-distance" in line for line in lines[:-1])


def raw_data(folder, name, write, raw_text, recordings):
    """A small RAW of an experiment."""
    if name in ("captions", "pixels"):
        write_mnist(folder / "mnist")
    elif name == "digits":
        (folder / "fsdd").mkdir(parents=True)
        recordings.rename(folder / "fsdd" / "recordings.zip")
    elif name == "multi30k":
        sizes = (("train", 120), ("val", 12), ("test_2016_flickr", 12))
        raw_text(folder / "multi30k", sizes)
    else:
        (folder / "ptb").mkdir(parents=True)
        with zipfile.ZipFile(folder / "ptb" / "ptb.zip", "w") as archive:
            for split, count in (("train", 20), ("valid", 4), ("test", 4)):
                archive.writestr(f"ptb.{split}.txt", " a <unk> b \n b c \n" * (count // 2))
    return folder


@pytest.fixture
def recordings(tmp_path):
    """An archive of noises, one for each digit, speaker and index."""
    import io
    import wave

    import numpy as np

    rng, path = np.random.default_rng(0), tmp_path / "recordings.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(60):
            digit, speaker, index = number % 10, ("ann", "bob")[number % 20 // 10], number // 20
            file = io.BytesIO()
            with wave.open(file, "wb") as stream:
                stream.setparams((1, 2, 8000, 0, "NONE", ""))
                stream.writeframes(rng.integers(-3000, 3000, 1200).astype("<i2").tobytes())
            archive.writestr(f"{digit}_{speaker}_{index}.wav", file.getvalue())
    return path


@pytest.mark.slow
@pytest.mark.timeout(3600)  # many commands, each of which imports fairseq
@pytest.mark.parametrize("name", SMALL)
def test_from_data_to_the_page(run, tmp_path, name, write, raw_text, recordings):
    changes, metrics = SMALL[name]
    small = SmallExperiment(run, tmp_path, f"twin/{name}", changes + LENGTH)
    raw = raw_data(tmp_path / "raw", name, write, raw_text, recordings)
    assert "ready:" in small.step("prepare", "--raw", raw)
    small.train("baseline", "learnt")
    folder = small.runs / "learnt.1"
    assert (folder / "distance.png").is_file() and not (
        small.runs / "baseline.1/distance.png"
    ).exists()
    lines = small.report()
    label = "+ TwinNet, learnt g"
    for metric in metrics:
        for split in ("valid", "test"):
            values = values_of(lines, metric, set=split, versus="")
            assert values.keys() == {("baseline", ""), (label, "")}
            assert (label, "baseline") in values_of(lines, metric, set=split)
    more = values_of(lines, "parameters, only in training", versus="")
    assert more["baseline", ""] == 0 < more[label, ""]
    assert set(values_of(lines, "updates", versus="").values()) == {6.0}
    if name == "ptb":  # fairseq's own figure, which it rounds
        printed = re.search(r"Perplexity: (\S+)", (folder / "test.nll").read_text("utf-8"))[1]
        value = values_of(lines, "perplexity", set="test", versus="")[label, ""]
        assert value == pytest.approx(float(printed), abs=0.006)
    small.check_page("twin.md")
