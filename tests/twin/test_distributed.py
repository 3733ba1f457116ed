"""Two workers end where one worker with the same global batch ends, twin included.

Gloo on CPU, started by torchrun with the real fairseq-train.
"""

import os
import sys
from pathlib import Path

import pytest
import torch
from common import inprocess
from common.workers import largest_difference
from twin.support import SIZES

LSTM = ["--arch", "twin_lstm", *(word for entry in SIZES["lstm"].items() for word in entry)]
MULTIWAY = ["--task", "multiway_translation", "--lang-pairs", "xx-yy,yy-xx"]
MULTIWAY += ["--arch", "multiway_gru_tiny", "--embed-dim", 8, "--hidden-size", 8]
# the last number: the batches of a worker in an update. With 2, the fourth update is the last of an
# epoch of 15 batches: the second worker has one and the first has two
CASES = [
    pytest.param([*LSTM, "--dropout", 0], "legacy_ddp", 1, id="lstm-legacy_ddp"),
    pytest.param([*LSTM, "--dropout", 0], "pytorch_ddp", 1, id="lstm-pytorch_ddp"),
    pytest.param([*LSTM, "--dropout", 0], "legacy_ddp", 2, id="lstm-legacy_ddp-missing"),
    pytest.param([*LSTM, "--dropout", 0], "pytorch_ddp", 2, id="lstm-pytorch_ddp-missing"),
    pytest.param(MULTIWAY, "legacy_ddp", 1, id="multiway-legacy_ddp"),
    pytest.param(MULTIWAY, "pytorch_ddp", 1, id="multiway-pytorch_ddp"),
    pytest.param(MULTIWAY, "pytorch_ddp", 2, id="multiway-pytorch_ddp-two"),
]


def parameters(folder, name="checkpoint_last.pt"):
    """{name: tensor} of the model and of the criterion."""
    state = torch.load(folder / name, map_location="cpu", weights_only=True)
    return {f"{part} {k}": v for part in ("model", "criterion") for k, v in state[part].items()}


@pytest.mark.slow
@pytest.mark.parametrize("options, backend, batches", CASES)
def test_two_workers_are_one_worker_with_twice_the_batches(
    run, user_dir, toy_corpus, tmp_path, options, backend, batches
):
    common = [toy_corpus.two, *options, "--criterion", "twin", "--optimizer", "adam", "--lr", 0.005]
    common += ["--adam-eps", 1e-6, "--batch-size", 16, "--clip-norm", 1, "--max-update", 6]
    common += ["--seed", 7, "--disable-validation", "--user-dir", user_dir]
    once = ["--update-freq", 2 * batches, "--save-interval-updates", 1]
    inprocess.train(*common, "--save-dir", tmp_path / "one", *once)
    script = os.path.join(os.path.dirname(sys.executable), "fairseq-train")
    workers = ["--distributed-world-size", 2, "--distributed-no-spawn", "--cpu"]
    workers += ["--distributed-backend", "gloo", "--ddp-backend", backend, "--num-workers", 0]
    launcher = ["python", "-m", "torch.distributed.run", "--nproc_per_node", 2]
    launcher += ["--standalone", script]
    workers += ["--save-dir", tmp_path / "two", "--update-freq", batches]
    run(*launcher, *common, *workers, cwd=Path(tmp_path))
    single, double = parameters(tmp_path / "one"), parameters(tmp_path / "two")
    assert largest_difference(single, double) < 1e-5
    first = parameters(tmp_path / "one", "checkpoint_1_1.pt")
    for part in ("model", "criterion"):  # both are trained
        names = [name for name in first if name.startswith(f"{part} ")]
        assert max((first[name] - single[name]).abs().max() for name in names) > 1e-3
