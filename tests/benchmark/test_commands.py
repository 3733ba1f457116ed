"""The commands: options and their errors, stored ratios, and whole runs of tiny sizes."""

import functools
import json
from pathlib import Path

import pytest
import torch
from benchmark.inline import Inline
from speed import cli, startup
from speed.harness import measure_family

from benchmarks import growth, unit
from benchmarks import run as speed_run
from benchmarks import smoke as smoke_script
from fairseq_ext.tools import UsageError

pytestmark = pytest.mark.slow  # other tests cover what is measured

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

SMALL = "--updates 1 --repeats 1 --max-tokens 100 --vocab 50 --train-sentences 60 --length 6 "
SMALL += "--embed-dim 16 --hidden 24 --context 20 --layers 1 --ffn-embed-dim 16 --heads 2 "


@pytest.mark.slow
def test_a_whole_run(monkeypatch, tmp_path, capsys):
    """With the systems in this process; test_harness.py has one in its own."""
    monkeypatch.setattr(
        speed_run, "measure_family", functools.partial(measure_family, start=Inline)
    )
    words = SMALL + "--system multiway --search 2:4 --threads 1 --no-startup --device cpu"
    speed_run.main([*words.split(), "--output", str(tmp_path / "speed")])
    assert "training, turn 1/1: multiway" in capsys.readouterr().out
    record = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    (setting,) = record["families"]["multiway"]
    assert list(setting["results"]) == ["stock lstm", "stock lstm, equal FLOP", "multiway"]
    for measured in setting["results"].values():
        for part in (measured["training"], measured["beam 2, batch 4"]):
            assert part["rate"] > 0 and 0 < part["share of the limit"] and len(part["turns"]) == 1
        assert measured["first update"] > 0 and measured["parameters"] > 0 and "peak" in measured
    assert setting["results"]["stock lstm"]["training"]["ratio at equal FLOP"] == 1
    assert record["machine"][0]["operations"] > 0 and record["torch"] and record["date"]
    table = (tmp_path / "speed.md").read_text(encoding="utf-8")
    assert "| fp32, 1 | multiway |" in table and "](speed.png)" in table


@pytest.mark.parametrize("name", ["run", "growth", "smoke"])
def test_errors_have_no_traceback(name, run):
    wrong = ["--tolerance", 2] if name == "smoke" else ["--heads", 3]
    said = run("python", BENCHMARKS / f"{name}.py", *wrong, fails=True)
    assert said.startswith(f"{name}.py: {wrong[0]} ") and "Traceback" not in said


@pytest.mark.parametrize(
    "words, message",
    [("--heads 3", "--heads 3: --embed-dim 256 must be a multiple"),
     ("--hidden 7", "--hidden 7: must be even"),
     ("--max-tokens 50", "--max-tokens 50: must be at least four times --length 16"),
     ("--vocab 5", "--vocab 5: must be at least 10"),
     ("--device cpu --precision tf32",
      "--precision tf32: with --device cpu it must be one of fp32")],
)  # fmt: skip
def test_wrong_options_are_named(words, message):
    with pytest.raises(UsageError, match=message):
        speed_run.parse(words.split())


@pytest.mark.parametrize(
    "words, message",
    [("--updates 0", "--updates: 0: must be at least 1"),
     ("--threads 100000", "--threads: 100000: must be between 1 and"),
     ("--search 5", "--search: 5: must be BEAM:SENTENCES"),
     ("--search 0:4", "--search: 0:4: must be BEAM:SENTENCES"),
     ("--train-sentences 0", "--train-sentences: 0: must be at least 1"),
     (f"--output {__file__}/speed", "test_commands.py is not a folder")],
)  # fmt: skip
def test_values_that_are_none_are_named(words, message, capsys):
    with pytest.raises(SystemExit):
        speed_run.parse(words.split())
    assert message in capsys.readouterr().err


def test_defaults(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(cli, "usable_cpus", lambda: 4)
    args = speed_run.parse([])
    assert args.searches == [(1, 1), (1, 64), (5, 1), (5, 64)] and args.threads == (1, 4)
    assert args.device == "cpu" and args.precision == ("fp32",) and args.output.name == "cpu"
    args = speed_run.parse(["--into", str(tmp_path / "README.md")])
    assert args.output == tmp_path / "cpu"
    with pytest.raises(SystemExit):
        speed_run.parse(["--device", "cuda"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    args = speed_run.parse([])
    assert args.precision == ("fp32", "tf32", "bf16", "fp16") and args.threads == (4,)
    assert args.output.name == "cuda"


# ---------------------------------------------------------------- stored ratios


@pytest.fixture
def smoke(monkeypatch):
    """smoke.py, whose systems are 1.2 times as fast as stock, or what `speeds` says."""
    module = smoke_script
    monkeypatch.setattr(module, "speeds", {}, raising=False)
    monkeypatch.setattr(module, "write_corpus", lambda *sizes: None)
    monkeypatch.setattr(module, "prepare", lambda *settings: None)

    def ratios_of(family, data, folder, settings, say):
        speed = module.speeds.get(family, 1.2)
        training = speed.pop(0) if isinstance(speed, list) else speed
        return {f"{family}, training": training, f"{family}, translation": 1.1}

    monkeypatch.setattr(module, "ratios_of", ratios_of)
    return module


def test_ratios_are_stored_and_compared(smoke, tmp_path, capsys):
    path = tmp_path / "expected.json"
    smoke.main(["--expected", str(path), "--write", "--tolerance", "0.1"])
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored["ratios"]["dual, training"] == 1.2 and stored["tolerance"] == 0.1
    assert stored["device"] and stored["torch"] and stored["sizes"] == smoke.SIZES
    smoke.main(["--expected", str(path)])
    assert "all 14 ratios" in capsys.readouterr().out
    smoke.speeds["dual"] = 1.2 * 0.91
    smoke.main(["--expected", str(path)])
    smoke.speeds["dual"] = 1.2 * 0.89
    with pytest.raises(SystemExit) as ended:
        smoke.main(["--expected", str(path)])
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert "slower: dual, training is 1.068 times stock; expected 1.200, at least 1.080" in said
    assert said.count("slower:") == 1 and "note:" not in said
    # one low measurement is not enough, and what is not asked for is not compared
    smoke.speeds["dual"] = [0.5, 1.19]
    smoke.main(["--expected", str(path)])
    smoke.speeds["dual"] = 0.5
    smoke.main(["--expected", str(path), "--system", "duo"])


def test_another_processor_is_mentioned(smoke, tmp_path, capsys):
    path = tmp_path / "expected.json"
    smoke.main(["--expected", str(path), "--write"])
    stored = {**json.loads(path.read_text(encoding="utf-8")), "device": "abacus"}
    path.write_text(json.dumps(stored), encoding="utf-8")
    smoke.speeds["routed"] = 0.1
    with pytest.raises(SystemExit):
        smoke.main(["--expected", str(path)])
    assert "note: the expected ratios are of abacus" in capsys.readouterr().out


def test_the_file_in_the_repository_fits():
    module = smoke_script
    stored = module.read_expected(module.EXPECTED)
    names = {
        f"{family}, {what}" for family in module.FAMILIES for what in ("training", "translation")
    }
    assert set(stored["ratios"]) == names and 0 < stored["tolerance"] < 1
    assert all(ratio > 0 for ratio in stored["ratios"].values())


@pytest.mark.parametrize("content", [None, "{", "[]", '{"sizes": {}}'])
def test_a_wrong_file_is_named(content, smoke, tmp_path):
    path = tmp_path / "expected.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match="--expected .*expected.json: .*--write"):
        smoke.main(["--expected", str(path)])


def test_a_ratio_without_an_expected_one():
    stored = {"ratios": {"dual, training": 1.0}, "tolerance": 0.1}
    with pytest.raises(UsageError, match="duo, training: no expected ratio"):
        smoke_script.too_low({"duo, training": 1.0}, stored)


@pytest.mark.parametrize(
    "words, message",
    [("--tolerance 0.1", "--tolerance 0.1: is stored in the file and needs --write"),
     ("--write --tolerance 1", "--tolerance 1.0: must be between 0 and 1"),
     ("--write --system dual", "--system dual: --write needs all systems")],
)  # fmt: skip
def test_wrong_options_of_the_guard(words, message):
    with pytest.raises(UsageError, match=message):
        smoke_script.parse(words.split())


# ---------------------------------------------------------------- growth


@pytest.mark.parametrize(
    "words, message",
    [("--values 1 2", "--values: needs one --axis"),
     ("--axis length --values 8", "--values 8: must be at least two ascending"),
     ("--axis length --values 8 4", "--values 8 4: must be at least two ascending"),
     ("--axis vocab --values 5 50", "--values 5 50: .* none below 10"),
     ("--axis pairs --values 2 30", "--values 30: there are names for 26 languages"),
     ("--axis length --values 2 2000", "--values 2000: the models take 1024 positions"),
     ("--axis pairs --system duo", "--system duo: --axis pairs needs one of dual, multiway"),
     ("--beam -1", "--beam -1: must be at least 0")],
)  # fmt: skip
def test_wrong_options_of_growth(words, message):
    with pytest.raises(UsageError, match=message):
        growth.parse(words.split())


TINY = "--layers 1 --embed-dim 16 --ffn-embed-dim 16 --heads 2 --hidden 16 --context 12 "


@pytest.mark.parametrize(
    "words, kinds, slope",
    [
        ("--axis batch --values 2 4 --system lstm --beam 2", ["training", "translation"], 1),
        ("--axis pairs --values 1 2 --system dual", ["training"], 1),
    ],
)
def test_growth(words, kinds, slope, tmp_path, capsys):
    """The slopes of the operations are known; those of the times are not looked at."""
    words = [*words.split(), *TINY.split(), "--repeats", "1"]
    growth.main([*words, "--output", str(tmp_path / "growth")])
    record = json.loads((tmp_path / "growth.json").read_text(encoding="utf-8"))
    ((axis, systems),) = record["axes"].items()
    ((system, curves),) = systems.items()
    assert list(curves) == kinds
    for curve in curves.values():
        assert all(seconds > 0 for seconds in curve["seconds"])
        predicted = curve["slopes"]["predicted"]
        assert predicted == pytest.approx(slope, abs=0.1)
    assert f"| {axis} | {system} | training |" in capsys.readouterr().out
    assert (tmp_path / "growth.png").exists() and (tmp_path / "growth.md").exists()


# ---------------------------------------------------------------- other commands


def test_start_up(monkeypatch):
    asked = []

    def run(words):
        asked.append(words)
        if "-S" in words and "fairseq_cli" in words[-1]:
            return 0.1, None  # fails
        return float(len(asked)), "0.0005"

    monkeypatch.setattr(startup, "run", run)
    times = startup.startup(2, say=lambda text: None)
    assert times["fairseq-train --help"] == {
        "stock": None, "compatibility layer": 8.0, "--user-dir": 9.0
    }  # fmt: skip
    assert times["any process"] == {"compatibility layer": 0.0005}
    assert len(asked) == 3 * 4


def test_start_up_file_is_timed():
    seconds, output = startup.run(["-S", "-c", startup.HOOK])
    assert seconds > float(output) > 0
    assert startup.run(["-c", "raise SystemExit(1)"])[1] is None


def test_benchmark_of_the_unit(tmp_path):
    words = "--sentences 3 --steps 4 --size 8 --repeats 1"
    unit.main([*words.split(), "--output", str(tmp_path / "unit")])
    record = json.loads((tmp_path / "unit.json").read_text(encoding="utf-8"))
    literal, routed, gru = record["results"].values()
    assert routed["GFLOP"] == pytest.approx(literal["GFLOP"], rel=0.1)
    assert routed["GFLOP"] == pytest.approx(gru["GFLOP"], rel=0.2)
    assert "| routed unit |" in (tmp_path / "unit.md").read_text(encoding="utf-8")
    with pytest.raises(SystemExit):
        unit.main(["--repeats", "0"])
