"""Tasks for fairseq 0.9 and 0.10 build their search of all options of the command."""

import pickle
from argparse import Namespace

import pytest
from fairseq.dataclass.configs import GenerationConfig
from fairseq.tasks import TASK_CLASS_NAMES, TASK_REGISTRY, FairseqTask, register_task
from omegaconf import OmegaConf


@pytest.fixture
def register():
    """Function (class of a task) -> it, registered until the end of the test."""
    registered = []

    def register(task):
        registered.append(task)
        return register_task(task.__name__)(task)

    yield register
    for task in registered:
        del TASK_REGISTRY[task.__name__]
        TASK_CLASS_NAMES.remove(task.__name__)


class Pruning(FairseqTask):
    """A task for fairseq 0.10 whose search has an option of its own."""

    def build_generator(self, models, args):
        return getattr(args, "prune", "nothing"), args.beam, args


class PruningMore(Pruning):
    """A task that derives from it."""

    def build_generator(self, models, args):
        prune, *others = super().build_generator(models, args)
        return (f"{prune} and {args.more}", *others)


def searched(kind, generation, task_options):
    return kind(task_options).build_generator([], generation)


def group():
    """The options of a search as a command gives them."""
    generation = OmegaConf.create(OmegaConf.to_container(OmegaConf.structured(GenerationConfig)))
    generation.beam = 3
    OmegaConf.set_struct(generation, True)
    return generation


OPTIONS = Namespace(prune="leaves", more="twigs", beam=7)


def test_a_search_has_the_options_of_the_task(register):
    for kind, pruned in ((Pruning, "leaves"), (PruningMore, "leaves and twigs")):
        prune, beam, args = searched(register(kind), group(), OPTIONS)
        # of an option that both have, that of the search counts
        assert (prune, beam) == (pruned, 3)
        assert not hasattr(args, "root")
        with pytest.raises(AttributeError):
            args.root  # noqa: B018


def test_the_group_of_the_command_stays_what_it_was(register):
    options = group()
    _, _, args = searched(register(Pruning), options, OPTIONS)
    assert options == group()
    assert args == {**group(), "prune": "leaves", "more": "twigs"}
    assert pickle.loads(pickle.dumps(args)) == args


def test_other_options_are_as_before(register):
    kind = register(Pruning)
    assert searched(kind, Namespace(beam=2), OPTIONS)[:2] == ("nothing", 2)
    # a task of today has them in its configuration
    assert searched(kind, group(), OmegaConf.create({"prune": "leaves"}))[:2] == ("nothing", 3)
