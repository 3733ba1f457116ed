"""Two workers of routed_mtl end where one worker with twice the batches ends: common/workers.py.

zz stands for a helper's target, scored as graphs are.
"""

import pytest
import torch
from common.workers import Runs, after_update, largest_difference, parameters

ROUTED = ["--task", "routed_mtl", "--arch", "routed_gru_tiny", "--lang-pairs", "xx-yy,xx-zz,yy-zz"]
ROUTED += ["--main-pair", "xx-yy", "--task-gamma", "yy-zz=0.5", "--target-kinds", "zz=graphs"]
ROUTED += ["--embed-dim", 12, "--hidden-size", 10, "--attention-size", 12, "--eval-bleu"]
ROUTED += ["--eval-bleu-args", '{"beam": 1, "max_len_a": 1, "max_len_b": 5}']
TRAIN = ["--batch-size", 8, "--disable-validation"]
# 5 batches of each pair: one worker of the two has none left at the end of each pair
VALIDATE = ["--batch-size-valid", 5]
OF_GRAPHS = ("accuracy", "exact", "f1")
SCORES = {"xx-yy": ("bleu", "ter"), "xx-zz": OF_GRAPHS, "yy-zz": OF_GRAPHS}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(run, user_dir, toy_corpus, tmp_path_factory):
    return Runs(run, user_dir, tmp_path_factory.mktemp("workers"), toy_corpus.three, *ROUTED)


@pytest.mark.parametrize("backend", ["legacy_ddp", "pytorch_ddp"])
def test_two_workers_are_one_worker_with_twice_the_batches(runs, backend):
    single, double = runs(1, TRAIN), runs(2, TRAIN, backend)
    assert largest_difference(parameters(single), parameters(double)) < 1e-5
    assert largest_difference(parameters(single), after_update(single, 4)) > 1e-3


def own_blocks_that_moved(folder):
    """For each update, the tasks whose blocks are not what they were."""
    moved_tasks = []
    for number in range(2, 9):
        before, after = after_update(folder, number - 1), after_update(folder, number)
        moved = [name.split(".") for name in before if not torch.equal(before[name], after[name])]
        moved_tasks.append({parts[parts.index("own") + 1] for parts in moved if "own" in parts})
    return moved_tasks


def test_both_workers_have_the_same_tasks_in_an_update(runs):
    single, double = (own_blocks_that_moved(runs(workers, TRAIN)) for workers in (1, 2))
    assert single == double and all(len(tasks) == 2 and "xx-yy" in tasks for tasks in single)
    assert set.union(*single) == set(SCORES), "both helpers have had their turn"


def test_validation_on_two_workers_logs_what_one_worker_logs(runs, tmp_path):
    last_records = []
    for workers in (1, 2):
        records = runs.train(tmp_path / str(workers), workers, VALIDATE)
        last_records.append([record for record in records if "valid_loss" in record][-1])
    single, double = last_records
    for pair, scores in SCORES.items():
        for score in ("loss", "ppl", *scores):
            name = f"valid_{pair}_{score}"
            # no reference of a graph holds a triple: there is no F1
            if score == "f1" and name not in single:
                assert name not in double
                continue
            assert double[name] == pytest.approx(single[name], abs=0.011), name
    assert single["valid_xx-zz_accuracy"] > 0
