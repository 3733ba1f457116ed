"""The `fairseq-ext` command and its tools user-dir, list, doctor and average."""

import importlib
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch

import fairseq_ext
from fairseq_ext import __main__ as command
from fairseq_ext.tools import UsageError, atomic_path, average, doctor, hardware, listing

REPOSITORY = Path(__file__).resolve().parent.parent


def cli(run, *words, **options):
    """Run `fairseq-ext WORDS` the way the console script does."""
    return run("python", "-m", "_fairseq_ext_cli", *words, cwd=REPOSITORY, **options)


# ---------------------------------------------------------------- the command itself


@pytest.mark.parametrize("name", command.COMMANDS)
def test_every_command_has_a_module_and_help(name, capsys):
    module = importlib.import_module(f"fairseq_ext.tools.{command.COMMANDS[name][0]}")
    assert callable(module.run)
    with pytest.raises(SystemExit) as end:
        command.main([name, "--help"])
    assert end.value.code == 0
    assert f"fairseq-ext {name}" in capsys.readouterr().out


def test_unknown_command_names_what_is_allowed(capsys):
    with pytest.raises(SystemExit) as end:
        command.main(["lst"])
    assert end.value.code == 2
    message = capsys.readouterr().err
    assert "'lst'" in message and "did you mean list?" in message
    assert all(name in message for name in command.COMMANDS)


def test_without_a_command_it_prints_the_table(capsys):
    assert command.main([]) == 2
    printed = capsys.readouterr().err
    assert all(name in printed for name in command.COMMANDS)


def test_python_m_is_the_same_command(run, user_dir):
    assert run("python", "-m", "fairseq_ext", "user-dir", cwd=REPOSITORY).splitlines()[-1] == str(
        user_dir
    )


# ---------------------------------------------------------------- user-dir, list


def test_user_dir_imports_neither_torch_nor_fairseq(run, user_dir):
    code = (
        "import sys, _fairseq_ext_cli; sys.argv = ['fairseq-ext', 'user-dir'];"
        "status = _fairseq_ext_cli.main();"
        "sys.exit(status or sorted({'torch', 'fairseq', 'numpy'} & set(sys.modules)) or 0)"
    )
    assert run("python", "-c", code, cwd=REPOSITORY) == f"{user_dir}\n"


def test_list_shows_everything_that_is_registered(run):
    from fairseq.criterions import CRITERION_REGISTRY
    from fairseq.models import ARCH_MODEL_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    registries = (ARCH_MODEL_REGISTRY, TASK_REGISTRY, CRITERION_REGISTRY)
    for kind, registry in zip(listing.KINDS, registries):
        ours = {n for n, c in registry.items() if c.__module__.startswith("fairseq_ext.")}
        listed = [e["name"] for kinds in listing.catalogue().values() for e in kinds[kind]]
        assert sorted(listed) == sorted(ours)
    output = subprocess.run(
        [sys.executable, "-m", "_fairseq_ext_cli", "list", "--json"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    assert json.loads(output) == listing.catalogue()
    text = "\n".join(listing.lines(listing.catalogue()))
    for system, kinds in listing.catalogue().items():
        assert f"\n{system}\n" in f"\n{text}\n"
        assert all(entry["name"] in text for kind in kinds.values() for entry in kind)


def test_list_leaves_out_what_is_not_ours():
    from fairseq.tasks import TASK_REGISTRY

    assert listing.system_of(TASK_REGISTRY["translation"]) is None


def test_list_shows_the_options_of_one(capsys):
    assert command.main(["list", "dual_transformer_tiny"]) == 0
    text = capsys.readouterr().out
    assert "--share-all-embeddings" in text and "preset by dual_transformer_tiny: --embed" in text
    assert command.main(["list", "dual_translation"]) == 0
    text = capsys.readouterr().out
    assert "--lang-pairs" in text and "default: joint" in text


def test_list_refuses_what_is_not_ours(capsys):
    assert command.main(["list", "translation"]) == 2
    message = capsys.readouterr().err
    assert "NAME 'translation' is unknown" in message and "dual_translation" in message


def test_a_closed_pipe_is_no_traceback(run):
    script = "import sys; from fairseq_ext import __main__ as m; m.COMMANDS['list'] = ('loud', '')"
    script += "; import types; loud = types.ModuleType('loud'); loud.add_arguments = lambda p: 0"
    script += "; loud.run = lambda a: [print('x' * 70) for _ in range(10000)]"
    script += "; sys.modules['fairseq_ext.tools.loud'] = loud; sys.exit(m.main(['list']))"
    pipe = f'"{sys.executable}" -c "{script}" | head -n 1; exit ${{PIPESTATUS[0]}}'
    output = run("bash", "-c", pipe, cwd=REPOSITORY, fails=True)
    assert "Traceback" not in output and "BrokenPipe" not in output


def test_run_gives_stock_commands_the_user_dir(run, user_dir, toy_corpus, tmp_path):
    words = ["fairseq-train", toy_corpus.two, "--user-dir", user_dir, "--max-update", 1]
    words += ["--task", "dual_translation", "-s", "xx", "-t", "yy", "--save-dir", tmp_path]
    words += ["--arch", "dual_transformer_tiny", "--optimizer", "adam", "--max-tokens", 200]
    words += ["--criterion", "cross_entropy", "--no-save", "--disable-validation"]
    assert "done training" in cli(run, "run", *words)


# ---------------------------------------------------------------- doctor


def test_doctor_finds_a_healthy_installation(run):
    output = cli(run, "doctor")
    assert output.rstrip().endswith("problems: none")
    assert fairseq_ext.__version__ in output
    for word in ("hydra-core", "omegaconf", "OMP_NUM_THREADS", "bf16 on cpu", "sentencepiece"):
        assert word in output
    assert "  active  " in output


def test_doctor_reports_a_broken_fairseq_with_the_remedy(run, tmp_path):
    broken = tmp_path / "fairseq_cli"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ImportError('broken on purpose')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    output = cli(run, "doctor", env={"PYTHONPATH": path}, fails=True)
    assert "problems: 2" in output
    assert "broken on purpose" in output and "remedy: " in output


def missing(name):
    """A stand-in for `installed_version` that does not find `name`."""
    return lambda distribution: None if distribution == name else "1.0"


def test_doctor_names_what_is_missing(monkeypatch):
    monkeypatch.setattr(doctor, "installed_version", missing("fairseq"))
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    report = doctor.Report()
    doctor.versions(report)
    assert report.problems == [("fairseq is missing", "pip install --no-deps fairseq==0.12.2")]


def test_doctor_names_requirements_that_are_not_met(monkeypatch):
    declared = ["torch>=1.13", "regex", 'matplotlib; extra == "plot"']
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: declared)
    monkeypatch.setattr(doctor.metadata, "version", lambda name: "0.1.0")
    monkeypatch.setattr(doctor, "installed_version", missing("regex"))
    report = doctor.Report()
    doctor.requirements(report)
    assert report.problems == [
        ("torch 1.0 is not >=1.13", 'pip install "torch>=1.13"'),
        ("regex is missing", 'pip install "regex"'),
    ]


def test_doctor_refuses_another_python_and_fairseq(monkeypatch):
    monkeypatch.setattr(doctor, "PYTHONS", ((3, 1), (3, 2)))
    monkeypatch.setattr(doctor, "installed_version", lambda name: "0.12.3")
    report = doctor.Report()
    doctor.versions(report)
    found = " ".join(what for what, _ in report.problems)
    assert "outside 3.1 to 3.2" in found and "fairseq 0.12.3" in found


def test_doctor_reports_a_torch_that_cannot_use_numpy():
    class Tensor:
        def numpy(self):
            raise RuntimeError("Numpy is not available")

    class Torch:
        __version__ = "2.2.2"

        @staticmethod
        def zeros(size):
            return Tensor()

    report = doctor.Report()
    hardware.numpy_bridge(report, Torch)
    ((what, remedy),) = report.problems
    assert "torch 2.2.2" in what and "numpy<2" in remedy


class OneGpu:
    """torch.cuda of a machine with one device that has no bfloat16."""

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def device_count():
        return 1

    @staticmethod
    def get_device_properties(index):
        return types.SimpleNamespace(name="Test GPU", total_memory=16 * 2**30, major=7)


def test_doctor_lists_gpus():
    report = doctor.Report()
    hardware.gpus(report, types.SimpleNamespace(cuda=OneGpu))
    (line,) = report.lines
    assert line.split() == "gpu 0 16 GiB Test GPU, bf16: emulated, slow".split()


@pytest.mark.parametrize("built, problems", [("12.8", 1), (None, 0)])
def test_doctor_finds_a_gpu_that_torch_cannot_use(monkeypatch, built, problems):
    monkeypatch.setattr(hardware.Path, "exists", lambda path: True)
    cuda = types.SimpleNamespace(is_available=lambda: False)
    report = doctor.Report()
    version = types.SimpleNamespace(cuda=built)
    hardware.gpus(report, types.SimpleNamespace(cuda=cuda, version=version))
    assert len(report.problems) == problems
    assert "NVIDIA device" in "".join(report.lines + [what for what, _ in report.problems])


def test_doctor_tells_emulated_from_native_bf16(monkeypatch):
    if not Path("/proc/cpuinfo").is_file():
        pytest.skip("no /proc/cpuinfo on this system")
    monkeypatch.setattr(hardware, "BF16_FLAGS", ("no_such_flag",))
    assert hardware.cpu_bf16(torch)[0] == "emulated"
    monkeypatch.setattr(hardware, "BF16_FLAGS", ("no_such_flag", "processor"))
    assert hardware.cpu_bf16(torch) == ("yes", "in hardware (processor)")


# ---------------------------------------------------------------- atomic writing


def test_atomic_path_leaves_the_old_file_when_writing_fails(tmp_path):
    path = tmp_path / "result.txt"
    path.write_text("old")
    with pytest.raises(ValueError, match="half way"):
        with atomic_path(path) as temporary:
            temporary.write_text("new but incompl")
            raise ValueError("half way")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_atomic_path_does_not_write_over_a_folder(tmp_path):
    with pytest.raises(UsageError, match="it is a folder"):
        with atomic_path(tmp_path):
            raise AssertionError
    assert list(tmp_path.iterdir()) == []


def test_atomic_path_writes_a_file_of_ordinary_mode(tmp_path):
    plain, path = tmp_path / "plain", tmp_path / "result.txt"
    plain.write_text("")
    with atomic_path(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert path.stat().st_mode == plain.stat().st_mode


def test_atomic_path_names_a_missing_folder(tmp_path):
    with pytest.raises(UsageError, match="is not a folder"):
        with atomic_path(tmp_path / "none" / "result.txt"):
            pass


# ---------------------------------------------------------------- average


@pytest.fixture(scope="module")
def trained(toy_corpus, run, tmp_path_factory):
    """A --save-dir with three epochs of a very small stock transformer, tied embeddings."""
    folder = tmp_path_factory.mktemp("trained")
    sizes = "--encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-ffn-embed-dim 16"
    sizes += " --decoder-ffn-embed-dim 16 --encoder-attention-heads 2 --decoder-attention-heads 2"
    sizes += " --encoder-layers 1 --decoder-layers 1 --share-all-embeddings"
    schedule = "--optimizer adam --lr 0.01 --max-tokens 2000 --max-epoch 3 --disable-validation"
    schedule += " --save-interval-updates 2 --no-progress-bar"
    words = f"--arch transformer {sizes} --criterion cross_entropy {schedule}".split()
    run("fairseq-train", toy_corpus.two, *words, "-s", "xx", "-t", "yy", "--save-dir", folder)
    return folder


def load(path):
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu

    return load_checkpoint_to_cpu(str(path))


def test_average_of_the_last_epochs_is_the_mean(trained, tmp_path, capsys):
    output = tmp_path / "mean.pt"
    words = ["average", "--dir", trained, "--last", 2, "--output", output]
    assert command.main([str(word) for word in words]) == 0
    assert "checkpoint2.pt" in capsys.readouterr().out
    first, second, mean = (
        load(p) for p in (trained / "checkpoint2.pt", trained / "checkpoint3.pt", output)
    )
    for name, value in mean["model"].items():
        expected = (first["model"][name].double() + second["model"][name].double()) / 2
        torch.testing.assert_close(value.double(), expected, rtol=0, atol=1e-7)
    assert mean["cfg"]["model"].arch == "transformer"
    assert not mean.get("last_optimizer_state")
    assert mean["extra_state"]["averaged_from"] == ["checkpoint2.pt", "checkpoint3.pt"]
    # the tied embedding is stored once
    tied = ("encoder.embed_tokens.weight", "decoder.output_projection.weight")
    assert len({mean["model"][name].data_ptr() for name in tied}) == 1


def test_generation_reads_the_average(trained, toy_corpus, run, tmp_path):
    output = tmp_path / "mean.pt"
    paths = [trained / f"checkpoint{epoch}.pt" for epoch in (1, 3)]
    cli(run, "average", "--inputs", *paths, "--output", output)
    words = ("--path", output, "-s", "xx", "-t", "yy", "--beam", 2, "--max-len-b", 10)
    text = run("fairseq-generate", toy_corpus.two, *words)
    assert text.count("\nH-") == toy_corpus.sizes["test"]


def test_average_accumulates_half_precision_in_float32(trained, tmp_path):
    state = load(trained / "checkpoint1.pt")
    paths = []
    for index, value in enumerate((2048.0, 1.0, 1.0, 1.0)):
        state["model"] = {"w": torch.tensor([value]).half(), "version": torch.tensor(index)}
        paths.append(tmp_path / f"{index}.pt")
        torch.save(state, paths[-1])
    _, mean = average.mean(paths)
    # in float16, 512 + 0.25 would stay 512
    assert mean["w"].dtype == torch.float32 and mean["w"].item() == 512.75
    assert mean["version"].item() == 3


def test_newest_counts_epochs_and_updates_by_number(tmp_path):
    names = ["checkpoint2.pt", "checkpoint10.pt", "checkpoint9.pt", "checkpoint_last.pt"]
    names += ["checkpoint_1_50.pt", "checkpoint_2_100.pt", "checkpoint_best.pt"]
    for name in names:
        (tmp_path / name).touch()
    by_epoch = [path.name for path in average.newest(tmp_path, 2, "epochs")]
    assert by_epoch == ["checkpoint9.pt", "checkpoint10.pt"]
    by_update = [path.name for path in average.newest(tmp_path, 1, "updates")]
    assert by_update == ["checkpoint_2_100.pt"]


@pytest.mark.parametrize(
    "count, folder, message",
    [
        (3, ".", "--last 3: .* holds 2 checkpoints"),
        (0, ".", "--last 0: .* N >= 1"),
        (None, ".", "--last None: --dir needs --last"),
        (1, "none", "--dir .*none is not a folder"),
    ],
)
def test_newest_says_what_is_wrong(tmp_path, count, folder, message):
    for name in ("checkpoint1.pt", "checkpoint2.pt"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError, match=message):
        average.newest(tmp_path / folder, count, "epochs")


@pytest.mark.parametrize("name, shape", [("other", (1,)), ("w", (2,))])
def test_average_refuses_another_model(trained, tmp_path, name, shape):
    state = load(trained / "checkpoint1.pt")
    for file, key, size in (("a.pt", "w", (1,)), ("b.pt", name, shape)):
        state["model"] = {key: torch.zeros(size)}
        torch.save(state, tmp_path / file)
    with pytest.raises(UsageError, match="b.pt is of another model"):
        average.mean([tmp_path / "a.pt", tmp_path / "b.pt"])


def test_average_names_a_missing_input(capsys):
    assert command.main(["average", "--inputs", "none.pt", "--output", "x.pt"]) == 2
    assert "--inputs none.pt is not a file" in capsys.readouterr().err
