"""Two workers end where one worker with the same global batch ends.

Of dual_translation; of routed_mtl in routed/, of the twin in twin/.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch
from common.workers import Runs, after_update, largest_difference, parameters

from fairseq_ext.streams.plan import ValidationPlan
from fairseq_ext.streams.task import StreamsTask

JOINT = ["-s", "xx", "-t", "yy", "--share-all-embeddings"]
CYCLE = ["--lang-pairs", "xx-yy,yy-zz", "--schedule", "cycle"]
# the pairs of CYCLE's updates; both directions of each
CYCLE_PAIRS = [("xx", "yy"), ("yy", "xx"), ("yy", "zz"), ("zz", "yy")]
DUAL = ["--task", "dual_translation", "--arch", "dual_transformer_tiny", "--embed-dim", 16]
DUAL += ["--ffn-embed-dim", 24, "--attention-heads", 2, "--layers", 1]
DUAL += ["--criterion", "label_smoothed_cross_entropy"]


@pytest.fixture(scope="module")
def runs(run, user_dir, toy_corpus, tmp_path_factory):
    return Runs(run, user_dir, tmp_path_factory.mktemp("distributed"), toy_corpus.three, *DUAL)


@pytest.mark.parametrize(
    "pairs",
    [pytest.param(JOINT, id="joint", marks=pytest.mark.slow), pytest.param(CYCLE, id="cycle")],
)
def test_two_workers_are_one_worker_with_twice_the_batches(runs, pairs):
    single, double = runs(1, pairs), runs(2, pairs)
    assert largest_difference(parameters(single), parameters(double)) < 1e-5
    assert largest_difference(parameters(single), after_update(single, 4)) > 1e-3


@pytest.mark.parametrize(
    "pairs, backend",
    [
        pytest.param(JOINT, "pytorch_ddp", id="joint-pytorch_ddp"),  # fairseq's default on GPUs
        pytest.param(CYCLE, "pytorch_ddp", id="cycle-pytorch_ddp", marks=pytest.mark.slow),
        pytest.param(JOINT, "no_c10d", id="joint-no_c10d", marks=pytest.mark.slow),
        pytest.param(CYCLE, "no_c10d", id="cycle-no_c10d", marks=pytest.mark.slow),
    ],
)
def test_other_backends(runs, pairs, backend):
    single, double = runs(1, pairs), runs(2, pairs, backend)
    assert largest_difference(parameters(single), parameters(double)) < 1e-5


@pytest.mark.parametrize("workers", [1, 2])
def test_what_no_pair_touched_does_not_move(runs, workers):
    """Also where data-parallel training fills the missing gradients with zeros."""
    folder = runs(workers, CYCLE)
    for update in range(5, 9):
        before, after = after_update(folder, update - 1), after_update(folder, update)
        moved = {
            name.split(".")[1] for name in before if not torch.equal(before[name], after[name])
        }
        assert moved == set(CYCLE_PAIRS[(update - 1) % 4])


@pytest.mark.slow
def test_validation_on_two_workers_logs_what_one_worker_logs(runs, tmp_path):
    """5 batches of each pair: one worker of the two has none left at the end of each pair."""
    flags = [*JOINT, "--eval-bleu", "--eval-bleu-args", '{"beam": 2, "max_len_b": 8}']
    flags += ["--batch-size-valid", 5]
    last_records = []
    for workers in (1, 2):
        records = runs.train(tmp_path / str(workers), workers, flags)
        last_records.append([record for record in records if "valid_loss" in record][-1])
    single, double = last_records
    names = [
        f"valid_{pair}_{name}" for pair in ("xx-yy", "yy-xx") for name in ("loss", "ppl", "bleu")
    ]
    for name in ["valid_loss", "valid_bleu", "valid_worst_bleu", *names]:
        assert double[name] == pytest.approx(single[name], abs=0.011), name


@pytest.mark.slow
def test_pairs_leave_on_two_workers_as_on_one(runs, tmp_path):
    """Without learning no validation is better than the first: both runs end by themselves."""
    flags = [*CYCLE, "--batch-size", 64, "--lr", 0, "--max-update", 90, "--pair-patience", 1]
    flags += ["--save-interval-updates", 0]  # each mid-epoch checkpoint would be a validation
    ends = []
    for workers in (1, 2):
        runs.train(tmp_path / str(workers), workers, flags)
        end = torch.load(tmp_path / str(workers) / "checkpoint_last.pt", weights_only=True)
        ends.append(end["extra_state"]["train_iterator"]["streams"])
    assert ends[0]["left"] == ends[1]["left"] == dict.fromkeys(ends[0]["best"], 3)
    assert ends[0]["begins"] == ends[1]["begins"] and len(ends[0]["best"]) == 4
    assert ends[0]["best"] == pytest.approx(ends[1]["best"], rel=1e-5)


# ------------------------------------------------------------------ --pair-parallel

PARALLEL = [*CYCLE, "--pair-parallel"]
# the pairs of each worker, and what follows for languages: components of one worker only
WORKERS = [["xx-yy", "yy-xx"], ["yy-zz", "zz-yy"]]
OWN = [{"xx"}, {"zz"}]


def merged_plan(task, dataset, batches, seed, num_shards):
    """One worker's updates: a batch of each of the two workers' pairs."""
    if dataset is not task.datasets.get(task.cfg.train_subset):
        return ValidationPlan(dataset, batches, num_shards)
    plan = original_plan(task, dataset, batches, seed, 2)
    assert task.pair_parallel.assignment == WORKERS
    task.pair_parallel.assignment = None

    def merged(epoch):
        planned = plan(epoch)
        return [first + second for first, second in zip(planned[::2], planned[1::2])]

    return merged


original_plan = StreamsTask._plan


def states(folder):
    """{"number.name": tensor or number} of the optimiser's states in the last checkpoint."""
    stored = torch.load(folder / "checkpoint_last.pt", weights_only=True)["last_optimizer_state"]
    return {
        f"{number}.{name}": torch.as_tensor(value, dtype=torch.float32)
        for number, state in stored["state"].items()
        for name, value in state.items()
    }


@pytest.fixture(scope="module")
def merged(runs, tmp_path_factory):
    """Folder of the run of one worker whose updates take both workers' batches."""
    folder = tmp_path_factory.mktemp("merged")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StreamsTask, "_plan", merged_plan)
        runs.train(folder, 1, [*PARALLEL, "--update-freq", 1])
    return folder


@pytest.fixture(scope="module")
def parallel(runs, tmp_path_factory):
    """(folder, [what worker 0, worker 1 held after each update]) of two workers."""
    folder = tmp_path_factory.mktemp("parallel")
    probe = folder / "probe"
    runs.train(folder, 2, PARALLEL, probe=probe)
    lines = [Path(f"{probe}.{rank}").read_text(encoding="utf-8") for rank in range(2)]
    return folder, [[json.loads(line) for line in text.splitlines()] for text in lines]


@pytest.mark.slow
def test_pairs_of_their_own_are_one_worker_with_both_workers_pairs(parallel, merged):
    folder, _ = parallel
    assert largest_difference(parameters(folder), parameters(merged)) < 1e-5
    assert largest_difference(states(folder), states(merged)) < 1e-5
    assert largest_difference(parameters(merged), after_update(merged, 4)) > 1e-3
    for update in (1, 5):  # mid-epoch checkpoints are complete as well
        assert largest_difference(after_update(folder, update), after_update(merged, update)) < 1e-5


@pytest.mark.slow
def test_a_worker_has_only_what_its_pairs_use(parallel):
    _, (first, second) = parallel
    assert len(first) == len(second) == 8
    for number, workers in enumerate(zip(first, second)):
        slots = [pairs[number % 2] for pairs in WORKERS]
        for worker, seen in enumerate(workers):
            components = [
                {name.split(".")[1] for name in seen[kind]} for kind in ("gradients", "states")
            ]
            touched = {"yy", *slots[worker].split("-")}
            assert components[0] == touched and components[1] <= {"yy"} | OWN[worker]
        assert workers[0]["gnorm"] == workers[1]["gnorm"] > 0
        shared = [{n for n in seen["gradients"] if ".yy." in n} for seen in workers]
        assert shared[0] == shared[1]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["legacy_ddp", "pytorch_ddp"])
def test_pairs_of_their_own_resume(runs, parallel, tmp_path, backend):
    """Stopped after 5 updates, also with the other backend: the same end."""
    folder, _ = parallel
    shutil.copy(next(folder.glob("checkpoint_*_5.pt")), tmp_path / "checkpoint_last.pt")
    runs.train(tmp_path, 2, PARALLEL, backend)
    assert largest_difference(parameters(folder), parameters(tmp_path)) < 1e-6
    assert largest_difference(states(folder), states(tmp_path)) < 1e-6


@pytest.mark.slow
def test_pairs_of_their_own_with_an_idle_worker(runs, tmp_path):
    """A worker whose pairs are still to join waits: the other's updates are its alone."""
    flags = [*PARALLEL, "--join-at", "yy-zz=4,zz-yy=4", "--max-update", 6]
    runs.train(tmp_path / "two", 2, [*flags, "--save-interval-updates", 4])
    alone = ["--lang-pairs", "xx-yy,yy-zz", "--schedule", "cycle", "--max-update", 6]
    runs.train(tmp_path / "one", 1, [*alone, "--update-freq", 1, "--join-at", "yy-zz=4,zz-yy=4"])
    single, double = after_update(tmp_path / "one", 4), after_update(tmp_path / "two", 4)
    assert largest_difference(single, double) < 1e-5
    end = parameters(tmp_path / "two")
    assert any((end[name] - double[name]).abs().max() > 1e-3 for name in end if ".zz." in name)
