"""What `fairseq-ext doctor` says of processors, devices and bfloat16."""

import types
from pathlib import Path

import pytest
import torch

from fairseq_ext.tools.installation import doctor, hardware


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


def test_a_missing_numpy_is_missing(monkeypatch):
    """It is no numpy 2 beside a torch for numpy 1."""

    class Torch:
        @staticmethod
        def zeros(size):
            raise RuntimeError("Numpy is not available")

    monkeypatch.setattr(hardware.importlib.util, "find_spec", lambda name: None)
    report = doctor.Report()
    hardware.numpy_bridge(report, Torch)
    assert report.problems == [("numpy is missing", 'pip install "numpy"')]


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


def test_threads_of_a_machine_are_named_where_nobody_has_set_them(monkeypatch):
    monkeypatch.setattr(hardware, "usable_cpus", lambda: 8)
    advice = "set OMP_NUM_THREADS=1"
    for setting in (None, "1"):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        if setting:
            monkeypatch.setenv("OMP_NUM_THREADS", setting)
        report = doctor.Report()
        hardware.processor(report, torch)
        text = "\n".join(report.lines)
        assert "8 usable" in text and (advice in text) is (setting is None)
