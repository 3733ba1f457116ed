"""The part of `fairseq-ext doctor` about processors: devices, threads, bfloat16."""

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Tuple

if TYPE_CHECKING:
    from .doctor import Report

# x86 flags of processors that multiply bfloat16 in hardware; without one it is emulated
BF16_FLAGS = ("avx512_bf16", "amx_bf16")


def devices(report: "Report") -> None:
    """Add rows about CPU, threads, GPUs and bfloat16; problems of torch itself."""
    report.section("devices")
    try:
        import torch
    except (ImportError, OSError) as error:
        report.row("torch", "fails", str(error))
        report.problem(f"import torch: {error}", "pip install torch")
        return
    processor(report, torch)
    numpy_bridge(report, torch)
    gpus(report, torch)


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))  # fewer than there are, in containers and under taskset
    return os.cpu_count() or 1


def processor(report: "Report", torch: Any) -> None:
    """Report CPU count, arithmetic threads, bfloat16."""
    cpus = usable_cpus()
    backend = getattr(torch.backends, "cpu", None)  # since torch 2.1
    report.row(
        "cpu", f"{cpus} usable", f"kernels: {backend.get_cpu_capability()}" if backend else ""
    )
    setting = os.environ.get("OMP_NUM_THREADS")
    note = f"torch uses {torch.get_num_threads()} threads"
    if setting is None and cpus > 1:
        note += "; set OMP_NUM_THREADS=1 where several processes share the CPUs"
    report.row("OMP_NUM_THREADS", setting or "unset", note)
    report.row("bf16 on cpu", *cpu_bf16(torch))


def cpu_bf16(torch: Any) -> Tuple[str, str]:
    """Return (yes | emulated | unknown | no, note) for bfloat16 products on the CPU."""
    try:
        torch.ones(2, 2, dtype=torch.bfloat16) @ torch.ones(2, 2, dtype=torch.bfloat16)
    except RuntimeError as error:
        return "no", str(error).splitlines()[0]
    processors = Path("/proc/cpuinfo")
    if not processors.is_file():
        return "unknown", "it computes; whether in hardware cannot be read on this system"
    # of all lines: what matters is whether the word is there
    flags = set(processors.read_text(encoding="utf-8", errors="replace").split())
    present = [flag for flag in BF16_FLAGS if flag in flags]
    if present:
        return "yes", f"in hardware ({', '.join(present)})"
    return "emulated", "slower than float32 on this processor"


def numpy_bridge(report: "Report", torch: Any) -> None:
    """Report a torch built for numpy 1, which cannot exchange arrays with numpy 2."""
    try:
        torch.zeros(1).numpy()
    except RuntimeError as error:
        report.row("torch to numpy", "fails", str(error).splitlines()[0])
        if importlib.util.find_spec("numpy") is None:
            report.problem("numpy is missing", 'pip install "numpy"')
            return
        report.problem(
            f"torch {torch.__version__} cannot use the installed numpy: {error}",
            'pip install "numpy<2", or a torch of 2.3 or later',
        )


def gpus(report: "Report", torch: Any) -> None:
    """Report CUDA devices and their bfloat16, or why there are none."""
    present = Path("/dev/nvidiactl").exists()
    if not torch.cuda.is_available():
        built = torch.version.cuda
        build = f"torch is built for CUDA {built}" if built else "torch is a CPU-only build"
        report.row("gpu", "none", build)
        if present and built:
            report.problem(
                f"there is an NVIDIA device but torch, built for CUDA {built}, cannot use it",
                "update the driver, or install the torch build for the driver's CUDA version",
            )
        elif present:
            report.row("", "", "there is an NVIDIA device: a CUDA build of torch could use it")
        return
    for index in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(index)
        # torch.cuda.is_bf16_supported() counts emulation as support; 8 is Ampere
        bf16 = "in hardware" if facts.major >= 8 else "emulated, slow"
        memory = f"{facts.total_memory / 2**30:.0f} GiB"
        report.row(f"gpu {index}", memory, f"{facts.name}, bf16: {bf16}")
