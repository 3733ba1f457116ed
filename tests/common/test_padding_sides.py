"""Models of fairseq's task ``translation``: padding on either side, or a refusal by name."""

from types import SimpleNamespace

import pytest
import torch
from common.inprocess import configuration
from fairseq import options, tasks
from streams.directions import randomise, write_dictionaries

from fairseq_ext.common.padding_sides import check_right_padding
from properties import collate, random_sentences, shift

PAD, END, WORDS = 1, 2, 11
REFUSED = "duo_transformer", "twin_lstm"
TINY = ["duo_transformer_tiny", "twin_lstm_tiny", "twin_transformer_tiny"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_dictionaries(tmp_path_factory.mktemp("dictionaries"))


def built(data, arch, task="translation", left=(True, False)):
    """The model for ``--left-pad-source`` and ``--left-pad-target``, of random weights."""
    # fairseq's --left-pad-source is a switch that turns the default off
    sides = ["--left-pad-source"] * (not left[0]) + ["--left-pad-target"] * left[1]
    words = [data, "--task", task, "-s", "xx", "-t", "yy", "--arch", arch, *sides]
    cfg = configuration(options.get_training_parser(), words)
    torch.manual_seed(0)
    return randomise(tasks.setup_task(cfg.task).build_model(cfg.model)).eval()


@pytest.mark.parametrize("left", [(True, False), (False, False), (True, True), (False, True)])
@pytest.mark.parametrize("arch", TINY)
@torch.no_grad()
def test_mates_in_the_batch_change_nothing(data, arch, left):
    if left[1] and arch.startswith(REFUSED):
        with pytest.raises(ValueError, match="--left-pad-target: .*padded on the right"):
            built(data, arch, left=left)
        with pytest.raises(ValueError, match="--left-pad-target: .*padded on the right"):
            built(data, arch, "fast_translation", left)
        return
    if left[1] and not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        pytest.skip("torch before 2.0: a row that sees padding alone is NaN, in stock fairseq too")
    model = built(data, arch, left=left)
    sources, targets = (random_sentences([5, 3, 2], WORDS, END, seed=seed) for seed in (1, 2))
    inputs, lengths = shift(targets), torch.tensor([5, 3, 2])
    source, previous = (
        collate(rows, PAD, left=side) for rows, side in zip((sources, inputs), left)
    )
    together = model(source, lengths, previous)[0]
    for row, (sentence, prev) in enumerate(zip(sources, inputs)):
        alone = model(sentence[None], lengths[row : row + 1], prev[None])[0][0]
        in_batch = together[row, -len(prev) :] if left[1] else together[row, : len(prev)]
        torch.testing.assert_close(in_batch, alone, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_targets_padded_on_the_left_would_be_read(data):
    """What is refused: the state of a sentence depends on what stands before it."""
    model = built(data, "duo_transformer_tiny")
    source = torch.tensor([[5, 6, END]])
    alone = model(source, None, torch.tensor([[END, 7, 8]]))[0][0]
    padded = model(source, None, torch.tensor([[PAD, PAD, END, 7, 8]]))[0][0, 2:]
    assert (padded - alone).abs().max() > 0.01


def test_tasks_without_the_option_pad_on_the_right():
    for task in (object(), SimpleNamespace(cfg=None), SimpleNamespace(cfg=SimpleNamespace())):
        check_right_padding(task)
