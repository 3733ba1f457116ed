"""Attributes that are computed while an object has none of its own."""

import copy
import pickle

import pytest

from fairseq_ext.compat.computed_attributes import AttributeUntilSet


def double(owner):
    if owner.number is None:
        raise AttributeError("no number")
    return 2 * owner.number


class Owner:
    doubled = AttributeUntilSet(double)

    def __init__(self, number):
        self.number = number


class WithDefault(Owner):
    def __getattr__(self, name):
        return f"no {name}"


def test_it_is_computed_at_every_access_until_it_is_set():
    owner = Owner(2)
    assert owner.doubled == 4 and "doubled" not in vars(owner)
    owner.number = 3
    assert owner.doubled == 6
    owner.doubled = 1
    assert owner.doubled == 1 and Owner(3).doubled == 6
    for copied in (copy.copy(owner), pickle.loads(pickle.dumps(owner))):
        assert copied.doubled == 1
    del owner.doubled
    assert owner.doubled == 6


def test_a_subclass_may_set_it():
    class Subclass(Owner):
        doubled = 5

    assert Subclass(2).doubled == 5


def test_the_class_has_the_attribute_itself():
    assert isinstance(Owner.doubled, AttributeUntilSet)


def test_objects_for_which_it_cannot_be_computed():
    assert not hasattr(Owner(None), "doubled")
    with pytest.raises(AttributeError, match="no number"):
        Owner(None).doubled  # noqa: B018
    assert WithDefault(None).doubled == "no doubled"
