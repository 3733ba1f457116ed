"""The demo's pieces: scores, verdict, progress, resuming; and, slow, the whole of it."""

import io
import itertools
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"


@pytest.fixture(scope="module")
def demo_run(demo_module):
    return demo_module("run")


@pytest.fixture(scope="module")
def scoring(demo_module):
    return demo_module("demo_scoring")


@pytest.fixture(scope="module")
def progress(demo_module):
    return demo_module("demo_progress")


# ---------------------------------------------------------------- scores and verdict


@pytest.mark.parametrize(
    "bleu, line, status",
    [
        ({"en-de": 97.25, "de-en": 96.0}, "demo: OK en-de=97.2 de-en=96.0", 0),
        ({"en-de": 90.0, "de-en": 90.0}, "demo: OK en-de=90.0 de-en=90.0", 0),
        # printed above it with two decimals: 97.20
        ({"en-de": 90.0, "de-en": 97.199}, "demo: OK en-de=90.0 de-en=97.2", 0),
        # 89.99 must neither pass nor look like 90.0
        ({"en-de": 97.25, "de-en": 89.99}, "demo: FAILED en-de=97.2 de-en=89.9", 1),
        ({"en-de": 0.0, "de-en": 100.0}, "demo: FAILED en-de=0.0 de-en=100.0", 1),
    ],
)
def test_verdict(scoring, bleu, line, status):
    text, code = scoring.verdict(bleu, 90.0)
    assert code == status and text.startswith(line)
    assert (text == line) == (status == 0)
    assert status == 0 or "at least 90.0 BLEU" in text


def generated(hypotheses):
    """What fairseq-generate prints for {number: text}."""
    lines = ["2030-01-02 | INFO | fairseq_cli.generate | loading"]
    for number, text in hypotheses.items():
        lines += [f"S-{number}\tsource", f"T-{number}\ttarget", f"H-{number}\t-0.1\t▁{text}"]
        lines += [f"D-{number}\t-0.1\t{text}", f"P-{number}\t-0.1 -0.2"]
    return "\n".join([*lines, "Generate test with beam=1: BLEU4 = 1.00\n"])


def test_hypotheses_come_back_in_the_order_of_the_file(scoring):
    output = generated({2: "c", 0: "a", 1: ""})
    assert scoring.read_hypotheses(output, 3) == ["a", "", "c"]


@pytest.mark.parametrize("printed, count", [({0: "a"}, 2), ({0: "a", 2: "c"}, 2), ({}, 1)])
def test_missing_hypotheses_are_an_error(scoring, printed, count):
    with pytest.raises(ValueError, match=f"each of the {count} sentences"):
        scoring.read_hypotheses(generated(printed), count)


def test_a_hypothesis_that_comes_twice_is_an_error(scoring):
    with pytest.raises(ValueError, match="2 hypotheses for 1 sentences"):
        scoring.read_hypotheses(generated({0: "a"}) * 2, 1)


def test_score_is_sacrebleu_on_raw_text(scoring):
    texts = ["The old dog sleeps today.", "Who sees the light room?"]
    perfect = scoring.score(texts, texts)
    assert (round(perfect.bleu), round(perfect.chrf)) == (100, 100)
    assert "tok:13a" in perfect.bleu_signature and "version:" in perfect.chrf_signature
    assert scoring.score(texts, texts[::-1]).bleu < 10


# ---------------------------------------------------------------- progress


def ticking(step):
    """A clock that advances by `step` seconds at every look."""
    counter = itertools.count()
    return lambda: next(counter) * step


def test_training_status_reads_the_log(progress):
    status = progress.TrainingStatus(100, ["en-de", "de-en"], clock=ticking(10.0))
    prefix = "2030-01-02 03:04:05 | INFO | train_inner | "
    first = {"epoch": 1, "update": 0.1, "loss": "5.5", "num_updates": "10"}
    assert status(prefix + json.dumps(first)) == "update 10/100, loss 5.5"
    scores = {"valid_en-de_bleu": "61.5", "valid_de-en_bleu": "62.5", "valid_num_updates": "10"}
    text = status(prefix + json.dumps({"epoch": 1, **scores}))
    assert text == "update 10/100, loss 5.5, en-de 61.5 BLEU, de-en 62.5 BLEU"
    later = status(json.dumps({**first, "loss": "4.5", "num_updates": "40"}))
    # the clock has been looked at three times since: 30 updates in 30 seconds, 60 to go
    assert later.startswith("update 40/100, loss 4.5") and later.endswith("about 1:00 to go")
    assert status("2030-01-02 | INFO | begin validation") is None


def test_off_a_terminal_a_line_is_repeated_every_five_seconds(progress):
    stream = io.StringIO()
    line = progress.Progress("train", stream, clock=ticking(1.0))
    for number in range(20):
        line.show(f"update {number}")
    printed = stream.getvalue().splitlines()
    assert len(printed) == 4 and all("train 0:" in text for text in printed)


def test_a_terminal_shows_one_line_without_remains_of_longer_ones(progress):
    stream = io.StringIO()
    stream.isatty = lambda: True
    line = progress.Progress("train", stream, clock=ticking(1.0))
    line.show("a long text", force=True)
    line.close("short")
    shown = stream.getvalue().split("\r")[1:]
    assert len(shown) == 2 and len(shown[1].rstrip("\n")) == len(shown[0])


def test_a_failing_command_shows_the_end_of_its_output(progress, tmp_path, capsys):
    code = "print('first'); print('reason'); raise SystemExit(3)"
    with pytest.raises(progress.StepFailed, match="train ended with status 3.*out.log"):
        progress.run_command("train", [sys.executable, "-c", code], tmp_path / "out.log", {})
    assert "reason" in capsys.readouterr().out
    assert (tmp_path / "out.log").read_text(encoding="utf-8") == "first\nreason\n"


@pytest.mark.slow
def test_a_command_that_says_nothing_still_shows_that_it_runs(progress, tmp_path, capsys):
    code = "import time; time.sleep(6)"
    progress.run_command("wait", [sys.executable, "-c", code], tmp_path / "out.log", {})
    printed = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"  wait 0:0[567]  running", printed[1])


# ---------------------------------------------------------------- steps


class FakeDemo:
    """Two steps that only note that they ran; the second may be interrupted."""

    def __init__(self, work, updates=10, fails=False):
        self.work, self.updates, self.fails = work, updates, fails
        self.ran, self.discarded = [], 0

    def steps(self):
        return [
            ("corpus", lambda: self.ran.append("corpus"), {"train": 5}),
            ("train", self.train, {"updates": self.updates}),
        ]

    def train(self):
        if self.fails:
            raise KeyboardInterrupt
        self.ran.append("train")

    def discard_training(self):
        self.discarded += 1


def test_finished_steps_are_not_repeated_and_other_options_repeat_them(demo_run, tmp_path):
    demo_run.open_work_folder(tmp_path)

    def run(**options):
        demo = FakeDemo(tmp_path, **options)
        try:
            demo_run.run_steps(demo)
        except KeyboardInterrupt:
            demo.ran.append("interrupted")
        return demo.ran, demo.discarded

    assert run(fails=True) == (["corpus", "interrupted"], 1)
    # the checkpoints of the interrupted training are kept
    assert run() == (["train"], 0)
    assert run() == ([], 0)
    # another option of the training: its checkpoints are of no use
    assert run(updates=20) == (["train"], 1)


def test_a_folder_with_other_files_is_refused(demo_run, tmp_path, capsys):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "mine.txt").write_text("mine", encoding="utf-8")
    assert demo_run.main(["--work", str(tmp_path)]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert (
        last == f"demo: FAILED --work {tmp_path} holds other files; give an empty or a new folder"
    )
    assert (tmp_path / "text" / "mine.txt").exists()


@pytest.mark.parametrize("name", ["a:b", "a,b"])
def test_a_folder_that_is_several_to_fairseq_is_refused(demo_run, name, tmp_path, capsys):
    assert demo_run.main(["--work", str(tmp_path / name)]) == 1
    assert f"{name}: fairseq takes a path with '{name[1]}' for several" in capsys.readouterr().out
    assert not (tmp_path / name).exists()


def test_samples_show_ambiguous_words_first(demo_run):
    english = ["He sleeps.", "She works.", "We reach the bank.", "They read a letter.", "I run."]
    german = ["Er schläft.", "Sie arbeitet.", "Wir erreichen das Ufer.", "Sie lesen einen Brief."]
    german.append("Ich laufe.")
    assert demo_run.choose_samples(english, german, count=3)[:2] == [2, 3]
    assert sorted(demo_run.choose_samples(english, german, count=9)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("words", [["--train", "0"], ["--threads", "x"]])
def test_bad_options(demo_run, capsys, words):
    with pytest.raises(SystemExit) as end:
        demo_run.main(words)
    assert end.value.code == 2 and words[0] in capsys.readouterr().err


@pytest.mark.slow
def test_a_short_training_ends_non_zero_and_resumes(run, demo_run, tmp_path, capsys):
    """All steps on a small corpus: 10 updates fall short of 90 BLEU, and the status says so."""
    words = ["--work", tmp_path / "my work", "--train", 300, "--valid", 10, "--test", 10]
    words += ["--vocabulary", 500, "--updates", 10]
    output = run("python", DEMO / "run.py", *words, fails=True, timeout=850)
    last = output.splitlines()[-1]
    assert re.match(r"demo: FAILED en-de=\d+\.\d de-en=\d+\.\d, at least 90", last)
    assert (tmp_path / "my work" / "curves.png").read_bytes()[:4] == b"\x89PNG"
    packed = tmp_path / "my work" / "model"
    assert (packed / "manifest.json").is_file() and (packed / "sentencepiece.model").is_file()
    assert f"  fairseq-ext serve '{packed}'" in output.splitlines()
    # nothing is done again; with a threshold that it reaches it ends well
    assert demo_run.main([str(word) for word in (*words, "--required", 0)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert sum(line.endswith(": done before") for line in printed) == 6
    assert re.fullmatch(r"demo: OK en-de=\d+\.\d de-en=\d+\.\d", printed[-1])


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_training_goes_on_from_its_checkpoint(run, tmp_path, number):
    """Stopped once there is a checkpoint; the same command starts at its update."""
    work = tmp_path / "my work"
    words = [DEMO / "run.py", "--work", work, "--train", 300, "--valid", 10, "--test", 10]
    words += ["--vocabulary", 500, "--updates", 30, "--required", 0]
    process = subprocess.Popen(
        [sys.executable, *map(str, words)], stdout=subprocess.PIPE, encoding="utf-8"
    )
    for _line in process.stdout:
        # written after every epoch: eight updates with so few sentences
        if (work / "checkpoints" / "checkpoint_last.pt").exists():
            process.send_signal(number)
            break
    rest = process.stdout.read()
    assert process.wait() == 130 and "interrupted; the same command goes on" in rest
    output = run("python", *words, timeout=850)
    assert output.count(": done before") == 2
    assert output.splitlines()[-1].startswith("demo: OK")
    log = (work / "logs" / "train.log").read_text(encoding="utf-8")
    loaded = re.search(r"Loaded checkpoint .*checkpoint_last.pt .*@ (\d+) updates", log)
    assert loaded and 0 < int(loaded[1]) <= 30


@pytest.mark.slow
def test_the_whole_demo(run, tmp_path):
    """What `make demo` runs, at its full size."""
    output = run("python", DEMO / "run.py", "--work", tmp_path / "my work", timeout=900)
    last = output.splitlines()[-1]
    match = re.fullmatch(r"demo: OK en-de=(\d+\.\d) de-en=(\d+\.\d)", last)
    assert match, last
    assert min(map(float, match.groups())) >= 90
