"""fairseq-train with one worker, in the test process, and with several.

Gloo on CPU. fairseq-train begins the workers itself; for the probe, torchrun does.
"""

from pathlib import Path

import torch
from common import inprocess
from fairseq import checkpoint_utils

PROBE = Path(__file__).parent / "parallel_probe.py"
# the gradient of the bias of attention keys is zero but for rounding (a softmax does not see it),
# about 1e-10; with Adam's default 1e-8 that rounding would become a step
OPTIMISE = ["--optimizer", "adam", "--adam-eps", 1e-6, "--lr", 0.005, "--clip-norm", 1.0]


class Runs:
    """Trains when first asked for a run and remembers its folder.

    run: ``run_command``. folder: where the runs go. common: words that all runs have, the data
        first. One worker adds up two minibatches an update, so that it sees what two workers see.
    """

    def __init__(self, run, user_dir, folder, *common):
        self.run, self.folder = run, folder
        self.common = [*common, "--user-dir", user_dir]
        self.finished = {}

    def __call__(self, workers, flags, backend="legacy_ddp"):
        key = (workers, tuple(flags), backend)
        if key not in self.finished:
            self.finished[key] = self.folder / f"run{len(self.finished)}"
            self.train(self.finished[key], workers, flags, backend)
        return self.finished[key]

    def train(self, save_dir, workers, flags, backend="legacy_ddp", probe=None):
        """Train and return the records of the log; ``probe`` is for parallel_probe.py."""
        arguments = [*self.common, "--save-dir", save_dir, *OPTIMISE, "--batch-size", 16]
        arguments += ["--dropout", 0, "--seed", 7]  # workers share the seed of dropout
        arguments += ["--cpu", "--num-workers", 0, "--no-progress-bar"]
        arguments += ["--max-update", 8, "--save-interval-updates", 1]
        arguments += ["--update-freq", 2 if workers == 1 else 1, *flags]
        if workers == 1:
            return inprocess.train(*arguments)
        arguments += ["--ddp-backend", backend, "--distributed-world-size", workers]
        arguments += ["--log-format", "json"]
        if probe:
            launcher = ["python", "-m", "torch.distributed.run", "--nproc_per_node", workers]
            arguments += ["--distributed-backend", "gloo", "--distributed-no-spawn"]
            environment = {"PROBE": str(probe)}
            output = self.run(*launcher, "--standalone", PROBE, *arguments, env=environment)
        else:
            output = self.run("fairseq-train", *arguments)
        return inprocess.records(
            line[line.index("{") :] for line in output.splitlines() if '| {"' in line
        )


def parameters(folder, name="checkpoint_last.pt"):
    return checkpoint_utils.torch.load(folder / name, map_location="cpu", weights_only=True)[
        "model"
    ]


def largest_difference(first, second):
    assert first.keys() == second.keys()
    # torch's maximum is NaN where a tensor has one, Python's depends on the order
    return torch.stack([(first[name] - second[name]).abs().max() for name in first]).max().item()


def after_update(folder, number):
    return parameters(folder, next(folder.glob(f"checkpoint_*_{number}.pt")).name)
