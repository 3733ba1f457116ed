"""What is logged is computed from tensors that may be on a GPU.

numpy takes no such tensor. Here tensors of the CPU refuse it as well, in everything that becomes of
what the models log.
"""

import math

import pytest
import torch
from common import inprocess
from fairseq import utils
from fairseq.trainer import Trainer
from options.systems import SYSTEMS

BLEU = ["--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_b": 4}']
# what some tasks and criterions measure besides
MORE = {
    "dual_transformer": BLEU,
    "multiway_gru": BLEU,
    "routed_gru": BLEU,
    "transformer": BLEU,
    "twin_caption_lstm": ["--eval-bleu", "--eval-cider"],
}


class OnGpu(torch.Tensor):
    """A tensor that only its method ``cpu``, or a number made of it, brings to the host."""

    def cpu(self):
        return self.as_subclass(torch.Tensor).clone()

    def numpy(self, **more):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def __array__(self, *more, **named):
        return self.numpy()


@pytest.fixture
def values_on_gpu(monkeypatch):
    """What is logged is of OnGpu."""
    reduce = Trainer._reduce_and_log_stats

    def moved(self, logging_outputs, *more):
        outputs = utils.apply_to_sample(lambda value: value.as_subclass(OnGpu), logging_outputs)
        return reduce(self, outputs, *more)

    monkeypatch.setattr(Trainer, "_reduce_and_log_stats", moved)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name not in MORE)) for name in SYSTEMS],
)
def test_epochs_end_with_values_on_a_gpu(data, values_on_gpu, tmp_path, name):
    system = SYSTEMS[name]
    words = system.words(data[system.data], "--batch-size", 20, "--max-epoch", 1, "--no-save")
    words += ["--save-dir", tmp_path, "--log-interval", 1, *MORE.get(name, [])]
    logged = inprocess.train(*words)
    losses = [record["valid_loss"] for record in logged if "valid_loss" in record]
    assert losses and all(math.isfinite(loss) for loss in losses)


def test_it_is_noticed():
    with pytest.raises(TypeError, match="cuda"):
        torch.ones(2).as_subclass(OnGpu).mul(2).__array__()
