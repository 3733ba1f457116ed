"""fairseq-eval-lm --context-window."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from common.words import dictionary_with
from fairseq.data import MonolingualDataset, TokenBlockDataset
from fairseq.tasks.language_modeling import LanguageModelingTask

from fairseq_ext.compat.user_errors import OptionError

WORDS = torch.arange(10, 52)


@pytest.fixture
def batches():
    """Function (options of the loader): the batches of 14 blocks of three tokens."""
    dictionary = dictionary_with(*map(str, range(60)))
    blocks = TokenBlockDataset(
        [WORDS], [len(WORDS)], 3, dictionary.pad(), dictionary.eos(), include_targets=True
    )
    dataset = MonolingualDataset(blocks, blocks.sizes, dictionary, targets=["future"])
    task = LanguageModelingTask(SimpleNamespace(tokens_per_sample=3, seed=1), dictionary)

    def batches(**flags):
        return list(task.eval_lm_dataloader(dataset=dataset, batch_size=2, **flags))

    return batches


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_blocks_follow_each_other(workers, batches):
    """The context of each block are the four tokens before it, as far as there are any."""
    rows = []
    for batch in batches(context_window=4, num_workers=workers):
        lengths = batch["net_input"]["src_lengths"].tolist()
        tokens = batch["net_input"]["src_tokens"].tolist()
        rows += [row[:length] for row, length in zip(tokens, lengths)]
    assert len(rows) == 14
    whole = np.concatenate([[2], WORDS[:-1]])  # what the model reads: eos, then the words
    for number, row in enumerate(rows):
        assert row == whole[max(0, 3 * number - 4) : 3 * number + 3].tolist()


def test_shards_lack_the_block_before(batches):
    with pytest.raises(OptionError, match="--num-shards 2 is not allowed with --context-window"):
        batches(context_window=4, num_shards=2, shard_id=0)
    assert len(batches(num_shards=2, shard_id=0)) == 4  # without a window they are as before
