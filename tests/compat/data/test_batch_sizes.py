"""Batches of --max-tokens."""

from types import SimpleNamespace

import numpy as np
import pytest
from fairseq.dataclass.configs import FairseqConfig
from omegaconf import OmegaConf


def test_fixed_shapes_have_sizes_of_their_own():
    from fairseq.data.data_utils import batch_by_size

    indices, lengths = np.arange(3), np.array([3, 9, 4])
    with pytest.raises(ValueError, match="--max-tokens 5 is less than the 9 tokens"):
        batch_by_size(indices, lengths.__getitem__, lengths, 5)
    shapes = np.array([[2, 10]])
    batches = batch_by_size(indices, lengths.__getitem__, lengths, 5, fixed_shapes=shapes)
    assert sorted(int(index) for batch in batches for index in batch) == [0, 1, 2]


def test_the_option_of_validation_is_named():
    """--max-tokens-valid, where it is another limit than that of the training."""
    from fairseq.trainer import Trainer

    lengths = np.array([3, 9, 4])
    dataset = SimpleNamespace(
        ordered_indices=lambda: np.arange(3),
        num_tokens=lengths.__getitem__,
        num_tokens_vec=lengths.__getitem__,
    )

    class Task(SimpleNamespace):
        def dataset(self, subset):
            return dataset

        def get_batch_iterator(self, dataset, max_tokens=None, **_options):
            from fairseq.data.data_utils import batch_by_size

            return batch_by_size(np.arange(3), dataset.num_tokens, lengths, max_tokens)

        def max_positions(self):
            return None

    def trainer(max_tokens):
        sizes = dict(max_tokens_valid=5, max_tokens=max_tokens)
        cfg = OmegaConf.structured(FairseqConfig)
        cfg.dataset.update(sizes)
        model = SimpleNamespace(max_positions=lambda: None)
        parts = dict(data_parallel_world_size=1, data_parallel_rank=0)
        return SimpleNamespace(cfg=cfg, task=Task(), model=model, **parts)

    for max_tokens, option in ((20, "--max-tokens-valid"), (5, "--max-tokens")):
        with pytest.raises(ValueError, match=f"^{option} 5 is less than the 9 tokens"):
            Trainer.get_valid_iterator(trainer(max_tokens), "valid")
