"""Trainings of a few updates, by what they log."""

import pytest
from common import inprocess

TIMES = ("wps", "ups", "wall", "update")


@pytest.fixture
def train(tiny_training):
    """Function (save_dir, options...) -> records of the log, without times."""

    def train(folder, *flags):
        records = inprocess.train(*tiny_training, "--save-dir", folder, *flags)
        return [
            {name: value for name, value in record.items() if not name.endswith(TIMES)}
            for record in records
        ]

    return train
