"""Which score judges a task, and what a task loses that has stalled; runs: test_training.py."""

from types import SimpleNamespace

import pytest
from fairseq import metrics

from fairseq_ext.routed.task_patience import TaskPatience
from fairseq_ext.streams.state import RunState

KINDS = {"en-vi": "text", "en-ner": "tags"}


def patience(task_patience=0, pair_patience=0, eval_bleu=True):
    cfg = SimpleNamespace(
        task_patience=task_patience, pair_patience=pair_patience, eval_bleu=eval_bleu
    )
    state = RunState()
    gamma = {"en-vi": 1.0, "en-ner": 0.5}

    def weights():
        return {pair: gamma[pair] * state.more["weight"].get(pair, 1.0) for pair in gamma}

    return TaskPatience(cfg, list(KINDS), {}, state, KINDS, weights)


@pytest.mark.parametrize(
    "options, by_bleu",
    [
        ({"pair_patience": 2}, [True, False]),
        ({"task_patience": 2}, [False, False]),
        ({"pair_patience": 2, "eval_bleu": False}, [False, False]),
    ],
)
def test_texts_are_judged_by_bleu_unless_weights_are_halved(options, by_bleu):
    judge = patience(**options)
    assert judge.patience == 2 and [judge.judged_by_bleu(pair) for pair in KINDS] == by_bleu


def test_a_text_without_references_is_not_judged():
    """It has a loss, of the end symbols, and no BLEU."""
    judge = patience(pair_patience=1)
    with metrics.aggregate(new_root=True) as meters:
        for pair in KINDS:
            metrics.log_scalar(f"{pair}_loss", 1.0)
    judge.judge(1, {"num_updates": 5}, meters)
    assert judge.state.best == {"en-ner": 1.0}


def test_each_stall_halves_the_weight(caplog):
    judge = patience(task_patience=1)
    with caplog.at_level("INFO"):
        judge.pair_stalled("en-ner", 3), judge.pair_stalled("en-ner", 4)
    assert judge.state.more == {"weight": {"en-ner": 0.25}} and not judge.state.left
    assert caplog.messages[-1].endswith("(--task-patience): its weight is now 0.125")


def test_without_the_option_the_pair_leaves():
    judge = patience(pair_patience=1)
    judge.pair_stalled("en-ner", 3)
    assert judge.state.left == {"en-ner": 4} and not judge.state.more
