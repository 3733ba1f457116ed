"""What follows the reading of a checkpoint learns how it was read."""

import pytest

from fairseq_ext.compat.training.after_loading import CheckpointLoading, after_loading


@pytest.fixture
def trainer_class():
    """A class of its own whose checkpoints hold the position in the data alone."""

    class Trainer:
        def load_checkpoint(
            self,
            filename,
            reset_optimizer=False,
            reset_lr_scheduler=False,
            optimizer_overrides=None,
            reset_meters=False,
        ):
            return None if filename == "missing.pt" else {"train_iterator": {"epoch": 3}}

    return Trainer


def test_the_call_and_what_was_read_are_told(trainer_class):
    told = []
    after_loading(trainer_class, lambda trainer, loading: told.append((trainer, loading)))
    trainer = trainer_class()
    state = trainer.load_checkpoint("a.pt", True, optimizer_overrides={"lr": 1}, reset_meters=True)
    assert state == {"train_iterator": {"epoch": 3}}
    loading = CheckpointLoading("a.pt", state, True, False, {"lr": 1}, True)
    assert told == [(trainer, loading)]


def test_a_missing_checkpoint_has_no_state_and_no_overrides(trainer_class):
    told = []
    after_loading(trainer_class, lambda trainer, loading: told.append(loading))
    assert trainer_class().load_checkpoint("missing.pt") is None
    assert told == [CheckpointLoading("missing.pt", None)]
    assert told[0].optimizer_overrides == {}


def test_several_follow_in_their_order(trainer_class):
    told = []
    for name in "ab":
        after_loading(trainer_class, lambda trainer, loading, name=name: told.append(name))
    trainer_class().load_checkpoint("a.pt")
    assert told == ["a", "b"]
