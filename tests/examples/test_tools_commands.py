"""Running commands: their log, their errors, and that none is left behind."""

import argparse
import os
import signal
import subprocess
import sys

import pytest
from recipe_tools import RecipeError, training
from recipe_tools.commands import execute, flags

SLEEPER = """
import sys
sys.path.append(sys.argv[1])
from recipe_tools.cli import script
from recipe_tools.commands import execute
code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
script(lambda: execute(["python3", "-c", code], sys.argv[2], show=str.strip))
"""


def test_a_stopped_script_stops_its_command(tmp_path, examples_folder):
    words = [sys.executable, "-c", SLEEPER, str(examples_folder), str(tmp_path / "log")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, encoding="utf-8") as process:
        child = int(process.stdout.readline())
        os.kill(child, 0)
        process.terminate()
        assert process.wait(timeout=30) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_the_end_of_the_log_comes_with_the_error(tmp_path):
    code = "import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)"
    with pytest.raises(
        RecipeError, match=r"(?s)status 3 of the command python3 -c .*two.*log is .*run\.log"
    ):
        execute(["python3", "-c", code], tmp_path / "run.log")
    assert "one" in (tmp_path / "run.log").read_text(encoding="utf-8")
    execute(["python3", "-c", "print('three')"], tmp_path / "run.log", mode="a")
    assert (tmp_path / "run.log").read_text(encoding="utf-8").endswith("three\n")


def test_flags():
    assert flags({"embed_dim": 8, "layers": 2}) == ["--embed-dim", 8, "--layers", 2]


def test_a_run_goes_on_with_its_own_options_alone(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(
        training, "execute", lambda command, *more, **options: begun.append(command)
    )
    (tmp_path / "data").mkdir()

    def train(root, *options):
        args = argparse.Namespace(
            data=root / "data", runs=root / "runs", system="dual", seed=1, dry_run=False
        )
        command = ["fairseq-train", args.data, *options, "--save-dir", args.runs / "dual.1"]
        training.train(args, command, args.data)

    train(tmp_path, "--lr", 0.1, "--fp16")
    train(tmp_path, "--lr", 0.1, "--fp16")
    message = r"started with other options:  --lr -0.1 \+0.2  --fp16; allowed: the same, another"
    with pytest.raises(RecipeError, match=message):
        train(tmp_path, "--lr", 0.2, "--fp16")
    assert len(begun) == 2
    moved = tmp_path.with_name(f"{tmp_path.name} moved")  # where it lies makes no difference
    tmp_path.rename(moved)
    train(moved, "--lr", 0.1, "--fp16")
    assert len(begun) == 3


def test_what_is_scored_was_trained_as_the_recipe_says(tmp_path):
    args = argparse.Namespace(data=tmp_path / "data", runs=tmp_path / "runs")
    run = args.runs / "dual.1"
    run.mkdir(parents=True)

    def command(*options):
        return ["fairseq-train", args.data, "--lr", 0.1, "--save-dir", run, *options]

    with pytest.raises(
        RecipeError, match=r"checkpoint_last\.pt does not exist; run train\.py first"
    ):
        training.check_trained(args, command(), run / "checkpoint_last.pt")
    (run / "checkpoint_last.pt").touch()
    training.check_trained(args, command(), run / "checkpoint_last.pt")  # trained by hand
    training.check_command(args, command("--fp16"), run)  # --fp16 came after --
    training.check_trained(args, command(), run / "checkpoint_last.pt")
    other = ["fairseq-train", args.data, "--lr", 0.2, "--save-dir", run]
    message = r"than the recipe has now:  --lr -0.1 \+0.2  --save-dir; allowed: the settings it"
    with pytest.raises(RecipeError, match=message):
        training.check_trained(args, other, run / "checkpoint_last.pt")


@pytest.mark.parametrize(
    "recipe, system, folder",
    [
        ("duo_translation", "fusion.de-en", ""),
        ("multiway", "single.de-en", ""),
        ("routed", "full.5000", ""),
        ("sentiment", "dual", "second"),
        ("sentiment", "generator", "second"),
        ("twin --recipe digits", "norm", ""),
    ],
)
def test_every_recipe_asks_what_it_scores(script, tmp_path, recipe, system, folder):
    name, *words = recipe.split()
    run = tmp_path / "runs" / f"{system}.1" / folder
    run.mkdir(parents=True)
    for kind in ("best", "last"):
        (run / f"checkpoint_{kind}.pt").touch()
    (run / training.RECORD).write_text('["fairseq-train"]', encoding="utf-8")
    with pytest.raises(RecipeError, match="was trained with other options than the recipe has now"):
        script("evaluate", name).main(
            [str(tmp_path / "data"), str(tmp_path / "runs"), system, "1", *words]
        )
