"""Training runs on the toy corpus inside the test process."""

import pytest
from common import inprocess
from streams.support import SCHEDULES, streams

MODEL = ["--arch", "dual_transformer_tiny", "--embed-dim", 16, "--ffn-embed-dim", 24]
MODEL += ["--attention-heads", 2, "--layers", 1]
TRAINING = ["--task", "dual_translation", "--optimizer", "adam", "--lr", 0.01]
TRAINING += ["--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1]
TRAINING += ["--seed", 3, "--num-workers", 0, "--no-progress-bar", "--log-interval", 1]


@pytest.fixture
def dataset():
    return streams({"y-x": "x-y"}, x_y=25, y_x=25, z_y=11)


@pytest.fixture(params=SCHEDULES)
def schedule(request):
    return request.param


@pytest.fixture(scope="session")
def train_small():
    """Function (data, save_dir, updates, options...) -> records of the log.

    A very small dual model, without validation unless `--validate-interval 1` is given.
    """

    def train(data, save_dir, updates, *flags):
        stop = ["--max-update", updates, "--save-dir", save_dir]
        if "--validate-interval" not in flags:
            stop.append("--disable-validation")
        return inprocess.train(data, *TRAINING, *MODEL, *stop, *flags)

    return train
