"""fairseq-eval-lm --context-window."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from common.words import dictionary_with
from fairseq.data import MonolingualDataset, TokenBlockDataset
from fairseq.sequence_scorer import SequenceScorer
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


class Successor:
    """A model to which a word is nearly certain that has the next index."""

    def eval(self):
        pass

    def __call__(self, src_tokens, src_lengths):
        return (20.0 * torch.nn.functional.one_hot(src_tokens + 1, 64),)

    def get_normalized_probs(self, output, log_probs, sample):
        return output[0].log_softmax(dim=-1)


@pytest.mark.parametrize("window", [1, 3, 4, 7])
def test_every_word_is_scored_at_its_place(window, batches):
    """Blocks have the context before them, and padding behind them as long as it is short."""
    scorer = SequenceScorer(dictionary_with(*map(str, range(60))))
    scored = [
        hypothesis
        for batch in batches(context_window=window)
        for (hypothesis,) in scorer.generate([Successor()], batch)
    ]
    assert torch.equal(torch.cat([hypothesis["tokens"] for hypothesis in scored]), WORDS)
    scores = torch.cat([hypothesis["positional_scores"] for hypothesis in scored])
    assert scores[0] < -19  # after eos
    assert scores[1:].min() > -1e-6


def test_shards_lack_the_block_before(batches):
    with pytest.raises(OptionError, match="--num-shards 2 is not allowed with --context-window"):
        batches(context_window=4, num_shards=2, shard_id=0)
    assert len(batches(num_shards=2, shard_id=0)) == 4  # without a window they are as before
