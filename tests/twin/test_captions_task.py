"""The task ``image_captioning`` and its architectures in fairseq's commands; errors by name."""

import random
import shutil

import numpy as np
import pytest
import torch
from common import inprocess
from common.exchanged import with_two_words_exchanged
from fairseq import options, tasks
from fairseq_cli import preprocess

from fairseq_ext import __main__ as command

ARCHITECTURES = ["twin_caption_lstm", "twin_caption_attention"]
WORDS = ["red", "blue", "big", "small", "cat", "dog"]
WIDTH = len(WORDS) + 1
SIZES = ["--feature-size", WIDTH, "--embed-dim", 8, "--hidden-size", 24, "--dropout", 0]


def image(caption, rng):
    """A position for each word: which word it is and where it stands, with noise."""
    rows = np.zeros((len(caption), WIDTH), dtype=np.float32)
    for place, word in enumerate(caption):
        rows[place, WORDS.index(word)] = 1.0
        rows[place, -1] = place / 3
    return rows + 0.05 * rng.normal(size=rows.shape).astype(np.float32)


def prepared(folder, sizes):
    """DATA with ``sizes`` {split: images}; two captions for every fourth image."""
    choose, rng = random.Random(1), np.random.default_rng(1)
    data = folder / "data"
    (data / "images").mkdir(parents=True)
    words = ["--only-source", "--destdir", data, "--workers", 1]
    for split, size in sizes.items():
        captions, files = [], []
        for number in range(size):
            caption = choose.sample(WORDS, choose.randint(1, 3))
            name = f"images/{split}{number}.npy"
            np.save(data / name, image(caption, rng))
            copies = 2 if number % 4 == 0 else 1
            captions += [" ".join(caption)] * copies
            files += [name] * copies
        (folder / split).write_text("\n".join(captions) + "\n", encoding="utf-8")
        (data / f"{split}.features").write_text("\n".join(files) + "\n", encoding="utf-8")
        words += [f"--{split}pref", folder / split]
    parser = options.get_preprocessing_parser()
    preprocess.main(parser.parse_args([str(word) for word in words]))
    return data


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepared(tmp_path_factory.mktemp("captions"), {"train": 40, "valid": 8})


def sizes_of(arch):
    return [*SIZES, *(["--attention-size", 12] if arch.endswith("attention") else [])]


def train(data, folder, arch, *words):
    return inprocess.train(
        *(data, "--task", "image_captioning", "--arch", arch, *sizes_of(arch)),
        *("--criterion", "twin", "--optimizer", "adam", "--lr", 0.01, "--clip-norm", 1),
        *("--no-epoch-checkpoints", "--max-tokens", 60, "--save-dir", folder, *words),
    )


@pytest.fixture(scope="module")
def runs(data, tmp_path_factory):
    """Function (architecture) -> (folder, records) of a few updates."""
    done = {}

    def run(arch):
        if arch not in done:
            folder = tmp_path_factory.mktemp(arch)
            done[arch] = folder, train(data, folder, arch, "--max-update", 4)
        return done[arch]

    return run


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_trained_resumed_scored_and_searched(data, runs, tmp_path, arch):
    folder, records = runs(arch)
    checkpoint = folder / "checkpoint_last.pt"
    assert any("train_L_t" in record for record in records)
    more = train(data, tmp_path / "more", arch, "--restore-file", checkpoint, "--max-update", 5)
    assert [entry["train_num_updates"] for entry in more if "train_num_updates" in entry] == [5]
    named = ("--task", "image_captioning", "--path", checkpoint, "--max-tokens", 100)
    (valid,) = inprocess.validate(data, *named)
    printed = inprocess.generate(data, *named, "--gen-subset", "valid", "--score-reference")
    lines = [line.split()[1:] for line in printed.splitlines() if line.startswith("P-")]
    scores = [float(word) for line in lines for word in line]
    # base-2 logarithms of the words, and bits for each
    assert valid["valid_nll_loss"] == pytest.approx(-sum(scores) / len(scores), abs=2e-3)
    beams = ("--beam", 3, "--nbest", 2, "--max-len-b", 6)
    hypotheses = inprocess.hypotheses(
        inprocess.generate(data, *named, "--gen-subset", "valid", *beams)
    )
    assert sorted(hypotheses) == list(range(10)) and all(
        len(beam) == 2 for beam in hypotheses.values()
    )
    names = (data / "valid.features").read_text().splitlines()
    # as SPLIT.features names them, and from where one stands
    lines = [name if number % 2 else data / name for number, name in enumerate(names)]
    (tmp_path / "paths").write_text("".join(f"{line}\n" for line in lines))
    printed = inprocess.interactive(data, *named, *beams, "--input", tmp_path / "paths")
    again = inprocess.hypotheses(printed)
    assert [beam[0][1] for _, beam in sorted(again.items())] == [
        beam[0][1] for _, beam in sorted(hypotheses.items())
    ]
    model = inprocess.parameters(checkpoint)
    assert sum(name.endswith("embedding.weight") for name in model) == 1


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_exported_without_the_twin(data, runs, tmp_path, arch):
    checkpoint, exported = runs(arch)[0] / "checkpoint_last.pt", tmp_path / "plain.pt"
    words = ["export", checkpoint, "--to", "fairseq", "--output", exported]
    assert command.main([str(word) for word in words]) == 0
    trained, plain = (
        torch.load(path, map_location="cpu", weights_only=True) for path in (checkpoint, exported)
    )
    assert trained["criterion"] and not plain["criterion"]
    assert set(plain["model"]) == set(trained["model"])
    named = ("--task", "image_captioning", "--gen-subset", "valid", "--max-len-b", 6)
    outputs = [
        inprocess.hypotheses(inprocess.generate(data, *named, "--path", path))
        for path in (checkpoint, exported)
    ]
    assert outputs[0] and outputs[0] == outputs[1]


def test_distance_refuses_a_folder_with_two_words_exchanged(data, runs, tmp_path, capsys):
    folder, _ = runs("twin_caption_lstm")
    other = with_two_words_exchanged(data, tmp_path / "data")
    words = ["twin-distance", folder / "checkpoint_last.pt", other, "--subset", "valid"]
    assert command.main([str(word) for word in [*words, "--output", tmp_path / "out"]]) == 2
    assert "trained with another dictionary of target" in capsys.readouterr().err


def test_distance_finds_moved_features_and_names_bad_ones(data, runs, tmp_path, capsys):
    folder, _ = runs("twin_caption_lstm")
    copy, images = tmp_path / "data", tmp_path / "elsewhere"
    shutil.copytree(data, copy)
    images.mkdir()
    (copy / "images").rename(images / "images")
    words = ["twin-distance", folder / "checkpoint_last.pt", copy, "--subset", "valid"]
    words = [str(word) for word in [*words, "--output", tmp_path / "out"]]
    assert command.main(words) == 2
    assert "name their folder with --features" in capsys.readouterr().err
    words += ["--features", str(images)]
    assert command.main(words) == 0
    capsys.readouterr()
    bad = images / "images" / "valid1.npy"
    for content in (b"", b"nothing of numpy", b"PK\x03\x04", bad.read_bytes()[:-5]):
        bad.write_bytes(content)
        assert command.main(words) == 2
        assert str(bad) in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_images_are_described(tmp_path, arch):
    data = prepared(tmp_path, {"train": 300, "valid": 40})
    annealed = ("--lr-scheduler", "polynomial_decay", "--total-num-update", 250)
    words = ("--max-update", 250, "--max-tokens", 200, "--hidden-size", 48, *annealed)
    train(data, tmp_path / "run", arch, *words)
    checkpoint = tmp_path / "run" / "checkpoint_best.pt"
    named = ("--task", "image_captioning", "--path", checkpoint, "--gen-subset", "valid")
    printed = inprocess.generate(data, *named, "--beam", 3, "--max-len-b", 6, "--max-tokens", 200)
    hypotheses, references = inprocess.hypotheses(printed), inprocess.references(printed)
    # Show and Tell sees the mean of the positions alone: which words, not their order
    order = list if arch.endswith("attention") else sorted
    right = sum(
        order(hypotheses[n][0][1].split()) == order(text.split()) for n, text in references.items()
    )
    # by chance about one in forty
    assert right >= (0.9 if order is list else 0.6) * len(references)


def task_of(data, *words):
    arguments = [data, "--task", "image_captioning", "--arch", ARCHITECTURES[0], *words]
    cfg = inprocess.configuration(options.get_training_parser(), arguments)
    return tasks.setup_task(cfg.task)


def test_missing_files_are_named(data, tmp_path):
    (tmp_path / "dict.txt").write_text("cat 1\n", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="no captions .*valid.bin.*--valid-subset"):
        task_of(tmp_path).load_dataset("valid")
    (tmp_path / "valid").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="valid: holds no caption"):
        task_of(tmp_path, "--dataset-impl", "raw").load_dataset("valid")
    (tmp_path / "dict.txt").unlink()
    with pytest.raises(FileNotFoundError, match="there is no .*dict.txt; run fairseq-preprocess"):
        task_of(tmp_path)
    task = task_of(data, "--features", tmp_path)
    with pytest.raises(
        ValueError,
        match=r"valid.features, line 1: there is no .*valid0.npy \(and 9 lines more\); name",
    ):
        task.load_dataset("valid")
