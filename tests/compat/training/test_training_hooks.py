"""The training loop asks the objects of a run what they offer, and others nothing."""

from types import SimpleNamespace

import pytest
from fairseq.distributed import ModuleProxyWrapper
from torch import nn

from fairseq_ext.compat.training import training_hooks


class Loop(SimpleNamespace):
    """In the place of fairseq_cli.train: an epoch that is noted, and its result."""

    def __init__(self, should_stop=False):
        super().__init__(trained=[])

        def train(cfg, trainer, task, epoch_itr):
            self.trained.append(epoch_itr.next_epoch_idx)
            epoch_itr.next_epoch_idx += 1
            return [0.5], should_stop

        self.train = train
        training_hooks.iterators_may_end_the_run(self)


class Iterator:
    """An iterator with batches in the epochs before ``end``."""

    def __init__(self, epoch, end):
        self.next_epoch_idx, self.end = epoch, end

    def is_run_over(self, epoch):
        return epoch >= self.end


def test_the_run_ends_with_the_last_epoch_that_has_batches():
    loop, iterator = Loop(), Iterator(1, end=3)
    assert loop.train(None, None, None, iterator) == ([0.5], False)
    assert loop.train(None, None, None, iterator) == ([0.5], True)
    assert loop.trained == [1, 2]


def test_a_finished_run_that_is_resumed_trains_nothing():
    loop = Loop()
    assert loop.train(None, None, None, Iterator(3, end=3)) == ([None], True)
    assert not loop.trained


@pytest.mark.parametrize("should_stop", [False, True])
def test_other_iterators_are_not_asked(should_stop):
    loop = Loop(should_stop)
    assert loop.train(None, None, None, SimpleNamespace(next_epoch_idx=9)) == ([0.5], should_stop)
    assert loop.trained == [9]


def test_what_the_loop_has_decided_stays():
    assert Loop(should_stop=True).train(None, None, None, Iterator(1, end=9)) == ([0.5], True)


# ------------------------------------------------------------------ checkpoints


@pytest.mark.parametrize("extra_state", [None, {"train_iterator": {}}])
def test_a_task_that_remembers_hears_of_a_checkpoint(extra_state):
    class Reader:
        def __init__(self, task):
            self.task = task
            options = SimpleNamespace(reset_dataloader=True, finetune_from_model=None)
            self.cfg = SimpleNamespace(checkpoint=options)

        def get_num_updates(self):
            return 7

        def load_checkpoint(self, *arguments):
            return extra_state

    class Remembers(SimpleNamespace):
        def go_on_from(self, *arguments):
            self.heard = arguments

    training_hooks.tasks_go_on_from_checkpoints(SimpleNamespace(Trainer=Reader))
    task = Remembers(heard=())
    assert Reader(task).load_checkpoint("last.pt", reset_meters=True) is extra_state
    assert Reader(SimpleNamespace()).load_checkpoint("last.pt") is extra_state
    if extra_state is None:
        assert task.heard == ()
    else:
        loading, *position = task.heard
        assert (loading.filename, loading.reset_meters, *position) == ("last.pt", True, 7, True)


@pytest.mark.parametrize(
    "named, resets, begins_anew",
    [("last.pt", True, True), ("last.pt", False, False), (None, True, False)],
)
def test_the_data_of_another_training_begin_anew(named, resets, begins_anew):
    """fairseq resets all with --finetune-from-model, unless the run itself is at that file."""

    class Reader:
        def load_checkpoint(self, *arguments):
            return {"train_iterator": {}}

        get_num_updates = staticmethod(lambda: 0)
        cfg = SimpleNamespace(
            checkpoint=SimpleNamespace(reset_dataloader=False, finetune_from_model=named)
        )

    heard = []
    training_hooks.tasks_go_on_from_checkpoints(SimpleNamespace(Trainer=Reader))
    Reader.task = SimpleNamespace(go_on_from=lambda *arguments: heard.append(arguments))
    Reader().load_checkpoint("last.pt", reset_optimizer=resets)
    assert [arguments[-1] for arguments in heard] == [begins_anew]


# ------------------------------------------------------------------ updates


def test_a_task_sees_the_batches_of_an_update_before_they_are_trained():
    class Trainer:
        device = "cpu"

        def __init__(self, task):
            self.task = task

        def train_step(self, samples, raise_oom=False):
            return [*samples, raise_oom]

    training_hooks.tasks_see_whole_updates(SimpleNamespace(Trainer=Trainer))
    sees = SimpleNamespace(begin_update=lambda samples, device: samples.append(device))
    assert Trainer(sees).train_step([1, 2], raise_oom=True) == [1, 2, "cpu", True]
    assert Trainer(SimpleNamespace()).train_step([1, 2]) == [1, 2, False]


# ------------------------------------------------------------------ gradients


class Wrapper(nn.Module):
    """As LegacyDistributedDataParallel, in the wrapper that fairseq puts around it."""

    def __init__(self, module):
        super().__init__()
        self.module, self.averaged = module, 0

    def forward(self, x):
        return self.module(x)

    def all_reduce_grads(self):
        self.averaged += 1


class Trainer:
    """The members of fairseq's that the hook replaces."""

    use_distributed_wrapper = True

    def __init__(self, task):
        self.task, self.optimizer = task, object()
        self._wrapped_model, self.calls = None, []

    @property
    def model(self):
        if self._wrapped_model is None:
            self._wrapped_model = ModuleProxyWrapper(Wrapper(nn.Linear(2, 1)))
        return self._wrapped_model

    def clip_grad_norm(self, clip_norm):
        self.calls.append(("clip", clip_norm))
        return 1.0

    def consolidate_optimizer(self):
        self.calls.append(("consolidate",))


class Task:
    """A task whose reducer notes its calls."""

    def __init__(self, reduces_gradients):
        self.reduces_gradients, self.optimizer, self.calls = reduces_gradients, None, []

    def reducer_of(self, optimizer):
        return self if optimizer is self.optimizer else None

    def reduce_gradients(self):
        self.calls.append(("reduce",))

    def clip_grad_norm(self, max_norm):
        self.calls.append(("clip", max_norm))
        return 2.0

    def complete(self):
        self.calls.append(("complete",))


@pytest.fixture
def trainer_of():
    """Function: task -> a trainer with the hook, after what an update and a checkpoint call."""

    class Hooked(Trainer):
        pass

    training_hooks.tasks_may_reduce_gradients(SimpleNamespace(Trainer=Hooked))

    def build(task):
        trainer = Hooked(task)
        task.optimizer = trainer.optimizer
        trainer.model.all_reduce_grads()
        trainer.norm = trainer.clip_grad_norm(0.5)
        trainer.consolidate_optimizer()
        return trainer

    return build


def test_the_trainer_calls_the_reducer_of_its_task(trainer_of):
    task = Task(reduces_gradients=True)
    trainer = trainer_of(task)
    assert task.calls == [("reduce",), ("clip", 0.5), ("complete",)] and trainer.norm == 2.0
    assert trainer.calls == [("consolidate",)] and trainer.model.averaged == 0
    assert trainer.model is trainer.model


@pytest.mark.parametrize("task", [Task(reduces_gradients=False), SimpleNamespace()])
def test_without_a_reducer_all_is_as_in_fairseq(trainer_of, task):
    trainer = trainer_of(task)
    assert trainer.calls == [("clip", 0.5), ("consolidate",)] and trainer.norm == 1.0
    assert trainer.model.averaged == 1 and not getattr(task, "calls", None)


def test_before_the_first_update_there_is_nothing_to_exchange(trainer_of):
    task = Task(reduces_gradients=True)
    trainer = trainer_of(task)
    task.optimizer = None
    task.calls.clear(), trainer.calls.clear()
    trainer.consolidate_optimizer()
    assert not task.calls and trainer.calls == [("consolidate",)]
