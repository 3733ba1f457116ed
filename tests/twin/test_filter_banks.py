"""`fairseq-ext filter-banks`: features against loops, the data it writes read by fairseq."""

import argparse
import os
import signal
import wave

import numpy as np
import pytest
import yaml

from fairseq_ext import __main__ as command
from fairseq_ext.twin.commands import filter_banks


def write_wav(path, samples, rate=8000, channels=1, width=2):
    with wave.open(str(path), "wb") as stream:
        stream.setnchannels(channels)
        stream.setsampwidth(width)
        stream.setframerate(rate)
        stream.writeframes(np.asarray(samples, dtype="<i2").tobytes())


def noise(length, seed=0, scale=3000):
    return np.random.default_rng(seed).normal(scale=scale, size=length).round()


@pytest.fixture
def corpus(tmp_path):
    """Tables of three and of two recordings, with one column more than needed."""
    (tmp_path / "wavs").mkdir()
    texts = {"train": ["one two", "ten", "two"], "valid": ["one", "six"]}
    for number, (split, lines) in enumerate(texts.items()):
        rows = ["id\taudio\ttgt_text\tspeaker"]
        for place, text in enumerate(lines):
            name = f"{split}{place}"
            write_wav(tmp_path / "wavs" / f"{name}.wav", noise(700 + 90 * place, number))
            rows.append(f"{name}\twavs/{name}.wav\t{text}\tann")
        (tmp_path / f"{split}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def call(*words):
    return command.main(["filter-banks", *map(str, words)])


def prepare(corpus, *words):
    tables = [corpus / "train.tsv", corpus / "valid.tsv"]
    return call(*tables, "--output", corpus / "data", "--sample-rate", 8000, *words)


def test_fairseq_reads_what_is_written(corpus, capsys):
    from argparse import Namespace

    from fairseq.tasks.speech_to_text import SpeechToTextTask

    assert prepare(corpus, "--mel-bins", 10) == 0
    assert "train: 3 recordings, 24 frames of 33 features" in capsys.readouterr().out
    args = Namespace(data=str(corpus / "data"), config_yaml="config.yaml", seed=1)
    task = SpeechToTextTask.setup_task(args)
    assert task.tgt_dict.symbols[4:7] == ["o", "t", "e"] and "\u2581" in task.tgt_dict.indices
    for split, texts in {"train": ["one two", "ten", "two"], "valid": ["one", "six"]}.items():
        task.load_dataset(split)
        dataset = task.datasets[split]
        batch = dataset.collater([dataset[number] for number in range(len(texts))])
        frames, lengths = batch["net_input"]["src_tokens"], batch["net_input"]["src_lengths"]
        assert frames.shape == (len(texts), lengths.max(), 33)
        # a recording of N samples has 1 + (N - 200) // 80 whole frames
        assert sorted(lengths.tolist()) == [1 + (500 + 90 * n) // 80 for n in range(len(texts))]
        if split == "train":
            real = np.concatenate([row[:n].numpy() for row, n in zip(frames, lengths)])
            assert abs(real.mean(axis=0)).max() < 1e-4 and abs(real.std(axis=0) - 1).max() < 1e-3
            bpe = task.build_bpe(None)
            lines = [line[line.ne(task.tgt_dict.pad())] for line in batch["target"]]
            assert {bpe.decode(task.tgt_dict.string(line)) for line in lines} == set(texts)
            assert dataset.speakers == ["ann"] * 3


def test_more_recordings_with_the_settings_of_the_training(corpus, capsys):
    prepare(corpus, "--mel-bins", 10, "--root", "/srv/speech")
    config = yaml.safe_load((corpus / "data" / "config.yaml").read_text())
    assert config["audio_root"] == "/srv/speech/features"
    assert config["global_cmvn"]["stats_npz_path"] == "/srv/speech/gcmvn.npz"
    before = {path: path.read_bytes() for path in (corpus / "data").iterdir() if path.is_file()}
    (corpus / "valid.tsv").rename(corpus / "test.tsv")
    assert call(corpus / "test.tsv", corpus / "wavs", "--output", corpus / "data") == 0
    features = np.load(corpus / "data" / "features" / "wavs" / "train0.npy")
    assert features.shape[1] == 33
    again = np.load(corpus / "data" / "features" / "train" / "train0.npy")
    np.testing.assert_array_equal(features, again)
    assert {path: path.read_bytes() for path in before} == before
    assert (corpus / "data" / "test.tsv").is_file()
    assert not (corpus / "data" / "wavs.tsv").exists()
    words = ("--output", corpus / "data", "--mel-bins", 40)
    assert call(corpus / "test.tsv", *words) == 2
    assert "--mel-bins 40: " in capsys.readouterr().err
    assert call(corpus / "test.tsv", "--output", corpus / "none") == 2
    assert "no INPUT is named train*.tsv and there is no" in capsys.readouterr().err


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("tgt_text", "text", r"train.tsv, line 1: no column tgt_text; there are"),
        ("\tten\t", "\t\t", "train.tsv, line 3: tgt_text is empty; allowed: a value in each"),
        ("\tten\tann", "\tten", "train.tsv, line 3: speaker is empty; allowed: a value in each"),
        ("\tten\tann", "\tten\tann\tx", "is in no column; allowed: a value"),
        ("train1\t", "train0\t", "train.tsv, line 3: id 'train0'; allowed: a file name that no"),
        ("train1\t", "../x\t", "train.tsv, line 3: id '../x'"),
        ("wavs/train1", "wavs/other", "train.tsv, line 3: there is no .*wavs/other.wav"),
    ],
)
def test_faults_of_a_table_are_named(corpus, capsys, old, new, message):
    import re

    table = corpus / "train.tsv"
    table.write_text(table.read_text().replace(old, new, 1))
    assert prepare(corpus) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (corpus / "data").exists()


def test_faults_of_recordings_are_named(corpus, capsys):
    wav = corpus / "wavs" / "train1.wav"
    kinds = {
        "1 channels of 16 bits at 16000 Hz; allowed: 1 channel of 16 bits at 8000": (16000, 1, 2),
        "2 channels of 16 bits at 8000 Hz": (8000, 2, 2),
        "1 channels of 8 bits at 8000 Hz": (8000, 1, 1),
    }
    for message, (rate, channels, width) in kinds.items():
        write_wav(wav, noise(800), rate, channels, width)
        assert prepare(corpus) == 2
        assert f"train1.wav has {message}" in capsys.readouterr().err
    write_wav(wav, noise(800), 8000, 1, 2)
    wav.write_bytes(wav.read_bytes()[:-1])
    assert prepare(corpus) == 2
    assert "train1.wav ends within a sample; allowed: 2 bytes" in capsys.readouterr().err
    write_wav(wav, noise(800), 8000, 1, 2)
    wav.write_bytes(wav.read_bytes()[:-600])
    assert prepare(corpus) == 2
    assert "train1.wav ends after 500 samples, its header announces 800" in capsys.readouterr().err
    write_wav(wav, noise(199))
    assert prepare(corpus) == 2
    assert "train1.wav: 199 samples; allowed: at least a window, 200" in capsys.readouterr().err
    wav.write_bytes(b"RIFX")
    assert prepare(corpus) == 2
    assert "train1.wav is no PCM wav file" in capsys.readouterr().err
    # whatever was extracted before the fault, no table says that the data is complete
    assert not list((corpus / "data").glob("*.*"))


def test_silence_is_named(corpus, capsys):
    write_wav(corpus / "wavs" / "train1.wav", np.full(800, 7))
    assert prepare(corpus) == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: ")
    assert warning.endswith("train1.wav: 800 samples of silence")


def test_faults_of_the_command_are_named(corpus, capsys):
    tables = corpus / "train.tsv", corpus / "valid.tsv"
    (corpus / "train_b.tsv").write_text(tables[0].read_text())
    (corpus / "empty").mkdir()
    (corpus / "void.tsv").write_text("id\taudio\ttgt_text\n")
    data, rate = ("--output", corpus / "data"), ("--sample-rate", 8000)
    for words, message in (
        ((*tables, *data), "--sample-rate is missing; allowed"),
        ((*tables, *data, "--sample-rate", 0), "--sample-rate 0; allowed: more than 0"),
        ((*tables, *data, *rate, "--hop-ms", -1), "--hop-ms -1.0; allowed: more than 0"),
        (
            (*tables, *data, *rate, "--hop-ms", 0.05),
            "--hop-ms 0.05: 0 samples at 8000 Hz; allowed",
        ),
        ((corpus / "none.tsv", *data, *rate), "none.tsv is neither a file nor a folder"),
        ((corpus / "empty", *data, *rate), "empty holds no .wav file"),
        ((corpus / "void.tsv", *data, *rate), "void.tsv has no line below"),
        ((*tables, tables[1], *data, *rate), "allowed: each name once"),
        ((*tables, corpus / "train_b.tsv", *data, *rate), "allowed: one table whose name"),
    ):
        assert call(*words) == 2
        assert message in capsys.readouterr().err


def test_options_that_would_do_nothing_are_refused(corpus, capsys):
    assert prepare(corpus) == 0
    output = ("--output", corpus / "data")
    assert call(corpus / "valid.tsv", *output, "--root", "there") == 2
    assert "--root there: config.yaml is written with a training table" in capsys.readouterr().err
    assert call(corpus / "wavs", *output, "--audio-root", "wavs") == 2
    assert "--audio-root wavs: no INPUT is a table" in capsys.readouterr().err
    assert prepare(corpus, "--hop-ms", "nan") == 2
    assert "--hop-ms nan; allowed: more than 0" in capsys.readouterr().err


def test_the_data_of_before_are_replaced_with_force_alone(corpus, capsys):
    assert prepare(corpus, "--mel-bins", 10) == 0
    table, config = corpus / "data" / "valid.tsv", corpus / "data" / "config.yaml"
    table.write_text("mine")
    assert call(corpus / "valid.tsv", "--output", corpus / "data") == 2
    assert f"--output {table} exists; give another name, or --fo" in capsys.readouterr().err
    (corpus / "train.tsv").rename(corpus / "train2.tsv")
    assert call(corpus / "train2.tsv", "--output", corpus / "data", "--sample-rate", 8000) == 2
    assert f"--output {config} exists; give another name, or --f" in capsys.readouterr().err
    assert table.read_text() == "mine"
    assert call(corpus / "valid.tsv", "--output", corpus / "data", "--force") == 0
    assert table.read_text().startswith("id\t")


def test_the_tables_that_are_read_are_not_replaced(corpus, capsys):
    before = (corpus / "train.tsv").read_bytes()
    assert call(corpus / "train.tsv", "--sample-rate", 8000, "--output", corpus) == 2
    assert "train.tsv is read as well and would be lost" in capsys.readouterr().err
    assert (corpus / "train.tsv").read_bytes() == before


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_data_that_cannot_be_replaced_whole_stay_as_they_are(corpus, capsys):
    """Features of other settings under the table and statistics of before would be trained on."""
    assert prepare(corpus) == 0
    before = contents(corpus / "data")
    write_wav(corpus / "wavs" / "valid1.wav", noise(800), rate=16000)
    assert prepare(corpus, "--window-ms", 50, "--force") == 2
    assert "1 channel of 16 bits at 8000 Hz" in capsys.readouterr().err
    assert contents(corpus / "data") == before


def test_a_signal_waits_until_all_data_are_replaced(corpus, monkeypatch):
    assert prepare(corpus) == 0
    seen = []
    handler = signal.signal(signal.SIGTERM, lambda *_: seen.append(contents(corpus / "data")))
    replace, moved = os.replace, corpus / "data" / "features" / "valid" / "valid0.npy"

    def interrupted(source, target):
        replace(source, target)
        if target == moved:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(os, "replace", interrupted)
    assert filter_banks.make_filter_banks(arguments(corpus, "--window-ms", "50", "--force")) == 0
    signal.signal(signal.SIGTERM, handler)
    assert seen == [contents(corpus / "data")]


def arguments(corpus, *words):
    parser = argparse.ArgumentParser()
    filter_banks.add_arguments(parser)
    named = [corpus / "train.tsv", corpus / "valid.tsv", "--output", corpus / "data"]
    return parser.parse_args(list(map(str, [*named, "--sample-rate", 8000, *words])))


def test_tables_that_stay_must_have_the_settings_of_the_new_ones(corpus, capsys):
    assert prepare(corpus) == 0
    before = contents(corpus / "data")
    train = (corpus / "train.tsv", "--output", corpus / "data", "--sample-rate", 8000, "--force")
    assert call(*train, "--hop-ms", 20) == 2
    valid = corpus / "data" / "valid.tsv"
    assert f"{valid} has features of other settings; allowed:" in capsys.readouterr().err
    assert contents(corpus / "data") == before
    assert call(*train) == 0 and prepare(corpus, "--hop-ms", 20, "--force") == 0


def test_a_folder_does_not_replace_the_features_of_a_table(corpus, capsys):
    assert prepare(corpus) == 0
    before = contents(corpus / "data")
    (corpus / "valid").mkdir()
    write_wav(corpus / "valid" / "valid0.wav", noise(3000))
    for words in ((), ("--force",)):
        assert call(corpus / "valid", "--output", corpus / "data", *words) == 2
        assert "INPUT valid: the features of" in capsys.readouterr().err
    assert contents(corpus / "data") == before
