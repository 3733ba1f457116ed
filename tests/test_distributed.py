"""Two workers end where one worker with the same global batch ends.

Gloo on CPU, started by torchrun with the real fairseq-train. Dropout is 0 because each worker
draws its own.
"""

import os
import sys

import pytest
import torch
from common import inprocess

JOINT = ["-s", "xx", "-t", "yy", "--share-all-embeddings"]
CYCLE = ["--lang-pairs", "xx-yy,yy-zz", "--schedule", "cycle"]
# the pairs of CYCLE's updates; both directions of each
CYCLE_PAIRS = [("xx", "yy"), ("yy", "xx"), ("yy", "zz"), ("zz", "yy")]
SIZES = ["--embed-dim", 16, "--ffn-embed-dim", 24, "--attention-heads", 2, "--layers", 1]


class Runs:
    """Trains when first asked for a run and remembers its folder."""

    def __init__(self, run, user_dir, toy_corpus, folder):
        self.run, self.user_dir, self.corpus, self.folder = run, user_dir, toy_corpus, folder
        self.port = 20000 + os.getpid() % 10000
        self.finished = {}

    def __call__(self, workers, pairs, backend="legacy_ddp"):
        key = (workers, tuple(pairs), backend)
        if key not in self.finished:
            self.finished[key] = self.folder / f"run{len(self.finished)}"
            self.train(self.finished[key], workers, pairs, backend)
        return self.finished[key]

    def train(self, save_dir, workers, pairs, backend="legacy_ddp"):
        """Train and return the records of the log."""
        arguments = [self.corpus.three, "--user-dir", self.user_dir, "--save-dir", save_dir]
        arguments += ["--task", "dual_translation", "--arch", "dual_transformer_tiny", *SIZES]
        arguments += [*pairs, "--dropout", 0, "--criterion", "label_smoothed_cross_entropy"]
        arguments += ["--optimizer", "adam", "--lr", 0.005, "--batch-size", 16, "--seed", 7]
        # the gradient of the bias of attention keys is zero but for rounding (a softmax does not
        # see it), about 1e-10; with Adam's default 1e-8 that rounding would become a step
        arguments += ["--adam-eps", 1e-6]
        arguments += ["--clip-norm", 1.0, "--cpu", "--num-workers", 0, "--no-progress-bar"]
        arguments += ["--max-update", 8, "--save-interval-updates", 1]
        if workers == 1:
            return inprocess.train(*arguments, "--update-freq", 2)
        self.port += 1
        launcher = ["python", "-m", "torch.distributed.run", "--nproc_per_node", workers]
        launcher += ["--master_port", self.port, self._script("train")]
        distributed = ["--distributed-backend", "gloo", "--ddp-backend", backend]
        distributed += ["--distributed-no-spawn", "--distributed-world-size", workers]
        distributed += ["--update-freq", 1, "--log-format", "json"]
        output = self.run(*launcher, *arguments, *distributed)
        return inprocess.records(
            line[line.index("{") :] for line in output.splitlines() if '| {"' in line
        )

    @staticmethod
    def _script(command):
        """The installed fairseq-NAME script, which torchrun runs with Python."""
        return os.path.join(os.path.dirname(sys.executable), f"fairseq-{command}")


@pytest.fixture(scope="module")
def runs(run, user_dir, toy_corpus, tmp_path_factory):
    return Runs(run, user_dir, toy_corpus, tmp_path_factory.mktemp("distributed"))


def parameters(folder, name="checkpoint_last.pt"):
    return torch.load(folder / name, map_location="cpu", weights_only=True)["model"]


def largest_difference(one, other):
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


def after_update(folder, number):
    return parameters(folder, next(folder.glob(f"checkpoint_*_{number}.pt")).name)


@pytest.mark.parametrize("pairs", [JOINT, CYCLE], ids=["joint", "cycle"])
def test_two_workers_are_one_worker_with_twice_the_batches(runs, pairs):
    one, two = runs(1, pairs), runs(2, pairs)
    assert largest_difference(parameters(one), parameters(two)) < 1e-5
    assert largest_difference(parameters(one), after_update(one, 4)) > 1e-3


@pytest.mark.parametrize(
    "pairs, backend",
    [
        pytest.param(JOINT, "pytorch_ddp", id="joint-pytorch_ddp"),  # fairseq's default on GPUs
        pytest.param(CYCLE, "pytorch_ddp", id="cycle-pytorch_ddp", marks=pytest.mark.slow),
        pytest.param(JOINT, "no_c10d", id="joint-no_c10d", marks=pytest.mark.slow),
        pytest.param(CYCLE, "no_c10d", id="cycle-no_c10d", marks=pytest.mark.slow),
    ],
)
def test_other_backends(runs, pairs, backend):
    one, two = runs(1, pairs), runs(2, pairs, backend)
    assert largest_difference(parameters(one), parameters(two)) < 1e-5


@pytest.mark.parametrize("workers", [1, 2])
def test_what_no_pair_touched_does_not_move(runs, workers):
    """Also where data-parallel training fills the missing gradients with zeros."""
    folder = runs(workers, CYCLE)
    for update in range(5, 9):
        before, after = after_update(folder, update - 1), after_update(folder, update)
        moved = {
            name.split(".")[1] for name in before if not torch.equal(before[name], after[name])
        }
        assert moved == set(CYCLE_PAIRS[(update - 1) % 4])


@pytest.mark.slow
def test_validation_on_two_workers_logs_what_one_worker_logs(runs, tmp_path):
    """5 batches of each pair: one worker of the two has none left at the end of each pair."""
    flags = [*JOINT, "--eval-bleu", "--eval-bleu-args", '{"beam": 2, "max_len_b": 8}']
    flags += ["--batch-size-valid", 5]
    found = []
    for workers in (1, 2):
        records = runs.train(tmp_path / str(workers), workers, flags)
        found.append([record for record in records if "valid_loss" in record][-1])
    one, two = found
    names = [
        f"valid_{pair}_{name}" for pair in ("xx-yy", "yy-xx") for name in ("loss", "ppl", "bleu")
    ]
    for name in ["valid_loss", "valid_bleu", "valid_worst_bleu", *names]:
        assert two[name] == pytest.approx(one[name], abs=0.011), name
