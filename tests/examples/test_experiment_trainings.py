"""Systems that share trainings count once in how far seeds lie apart."""

import dataclasses

from experiments.definition import System
from experiments.trainings import trainings_of, without_shared_trainings


def systems_of(**needs):
    """{name: system}; one with the needs None is trained, others translate with what they need."""
    return {
        name.replace("_", "."): System(
            name.replace("_", "."),
            name.replace("_", " "),
            ("fairseq-train",) if needed is None else (),
            ("fairseq-generate",),
            needed or (),
            {},
        )
        for name, needed in needs.items()
    }


def test_a_search_has_the_trainings_of_what_it_needs():
    systems = systems_of(de=None, en=None, both=("de", "en"), best=("both",), stored=())
    assert trainings_of(systems, "de") == {"de"}
    assert trainings_of(systems, "best") == {"de", "en"}
    assert trainings_of(systems, "stored") == {"stored"}


def test_each_training_counts_once():
    systems = systems_of(
        dual_inference=("dual",), dual=None, tagged=None, dual_ensemble=("dual.inference",)
    )
    labels = [system.label for system in systems.values()]
    assert without_shared_trainings(systems, labels) == ["dual", "tagged"]
    # of a place where the model itself was not scored, one of its searches counts
    assert without_shared_trainings(systems, ["dual ensemble", "dual inference"]) == [
        "dual ensemble"
    ]
    assert without_shared_trainings(systems, []) == []


def test_a_training_that_goes_on_is_one_of_its_own():
    systems = systems_of(first=None, second=("first",))
    systems["second"] = dataclasses.replace(systems["second"], train=("fairseq-train",))
    assert without_shared_trainings(systems, ["first", "second"]) == ["first", "second"]
