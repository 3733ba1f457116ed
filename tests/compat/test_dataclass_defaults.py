"""Dataclass instances are defaults in fairseq and hydra, and nowhere else."""

import dataclasses
import sys

import pytest

from fairseq_ext.compat import dataclass_defaults

NEW_RULE = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python before 3.11 accepts dataclass instances as defaults"
)


class TestDataclasses:
    def test_module_is_as_it_was(self):
        import fairseq  # noqa: F401

        assert dataclasses._get_field.__module__ == "dataclasses"
        assert dataclasses._get_field.__qualname__ == "_get_field"

    def test_classes_of_fairseq_keep_their_hash(self):
        from fairseq.dataclass.configs import CommonConfig

        assert CommonConfig.__hash__ is None

    @NEW_RULE
    def test_others_are_checked_by_the_present_rule(self):
        """Also while a module of fairseq runs its code, which is when the rule is relaxed."""

        @dataclasses.dataclass
        class Inner:
            value: int = 0

        def outer(module):
            body = {"__annotations__": {"inner": Inner}, "inner": Inner(), "__module__": module}
            return dataclasses.dataclass(type("Outer", (), body))

        with pytest.raises(ValueError, match="mutable default"):
            outer("fairseq.somewhere")
        with dataclass_defaults.PYTHON_310_RULE:
            assert outer("fairseq.somewhere")().inner == Inner()
            assert outer("hydra.somewhere")().inner == Inner()
            with pytest.raises(ValueError, match="mutable default"):
                outer("fairseq_like.somewhere")
        assert Inner.__hash__ is None
        with pytest.raises(ValueError, match="mutable default"):
            outer("fairseq.somewhere")

    @NEW_RULE
    def test_lists_stay_refused(self):
        body = {"__annotations__": {"x": list}, "x": [], "__module__": "fairseq.somewhere"}
        with dataclass_defaults.PYTHON_310_RULE, pytest.raises(ValueError, match="mutable default"):
            dataclasses.dataclass(type("Outer", (), body))

    @NEW_RULE
    def test_nested_use_and_errors_restore_the_rule(self):
        present = dataclasses._get_field
        with pytest.raises(KeyError), dataclass_defaults.PYTHON_310_RULE:
            with dataclass_defaults.PYTHON_310_RULE:
                pass
            assert dataclasses._get_field is not present
            raise KeyError
        assert dataclasses._get_field is present
