"""Dataclass instances are defaults in fairseq, hydra and plugins, and nowhere else."""

import argparse
import dataclasses
import subprocess
import sys
import textwrap
from typing import ClassVar

import pytest
from fairseq.dataclass import FairseqDataclass

from fairseq_ext.compat.versions import dataclass_defaults

NEW_RULE = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python before 3.11 accepts dataclass instances as defaults"
)


@dataclasses.dataclass
class Inner:
    """A dataclass without a hash; it is not of fairseq."""

    value: int = 0


def outer(module, default):
    """A dataclass of a module with one field of this default."""
    body = {"__annotations__": {"inner": Inner}, "inner": default, "__module__": module}
    return dataclasses.dataclass(type("Outer", (), body))


class TestOwners:
    @NEW_RULE
    def test_others_are_checked_by_the_present_rule(self):
        for module in ("fairseq_like.somewhere", "somewhere", __name__):
            with pytest.raises(ValueError, match="mutable default"):
                outer(module, Inner())

    def test_fairseq_and_hydra_have_the_old_rule(self):
        for module in ("fairseq.somewhere", "hydra.somewhere", "examples.data2vec.models"):
            assert outer(module, Inner(3))().inner == Inner(3)
        assert Inner.__hash__ is None

    def test_what_derives_from_fairseq_has_it_anywhere(self):
        @dataclasses.dataclass
        class Options(FairseqDataclass):
            inner: Inner = Inner(4)

        assert Options().inner == Options.inner == Inner(4)

    def test_classes_of_fairseq_keep_their_hash(self):
        from fairseq.dataclass.configs import CommonConfig

        assert CommonConfig.__hash__ is None

    def test_lists_stay_refused(self):
        for value in ([], {}, set()):
            with pytest.raises(ValueError, match="mutable default"):
                outer("fairseq.somewhere", value)
            with pytest.raises(ValueError, match="mutable default"):
                outer("fairseq.somewhere", dataclasses.field(default=value))


class TestFields:
    """Each field has the default that was written for it."""

    def test_several_fields_of_a_class(self):
        sixth = Inner(6)

        @dataclasses.dataclass
        class Options(FairseqDataclass):
            first: Inner = Inner(5)
            second: Inner = dataclasses.field(default=sixth, metadata={"help": "the second"})
            number: int = 7
            third: Inner = dataclasses.field(default=Inner(8))
            fourth: Inner = dataclasses.field(default_factory=lambda: Inner(9))
            shared: ClassVar[Inner] = Inner(10)

        options = Options()
        values = (options.first, options.second, options.third, options.fourth)
        assert [inner.value for inner in values] == [5, 6, 8, 9]
        assert options.second is sixth is Options.second
        assert options.number == 7 and Options.shared == Inner(10)
        assert Options(second=Inner(1)).second == Inner(1)
        by_name = {field.name: field for field in dataclasses.fields(Options)}
        assert by_name["first"].default == Inner(5) and by_name["third"].default == Inner(8)
        assert by_name["second"].metadata == {"help": "the second"}
        assert options._get_default("second") is sixth and options._get_default("third").value == 8

    def test_inheritance(self):
        @dataclasses.dataclass
        class Base(FairseqDataclass):
            first: Inner = Inner(1)
            second: Inner = dataclasses.field(default=Inner(2))

        @dataclasses.dataclass
        class Derived(Base):
            second: Inner = Inner(3)
            third: Inner = dataclasses.field(default=Inner(4))

        @dataclasses.dataclass
        class Redeclared(Derived):
            first: Inner  # without a default of its own: that of the base
            third: Inner = Inner(5)

        def values(options):
            return [getattr(options, name).value for name in ("first", "second", "third")]

        assert [Base().first.value, Base().second.value] == [1, 2]
        assert values(Derived()) == [1, 3, 4] and values(Redeclared()) == [1, 3, 5]
        assert "first" in vars(Base) and Redeclared.first is Base.first

    @pytest.mark.skipif(sys.version_info < (3, 10), reason="kw_only is new in Python 3.10")
    def test_an_error_leaves_the_default(self):
        field = dataclasses.field(default=Inner(1), kw_only=True)
        with pytest.raises(TypeError, match="kw_only"):

            @dataclasses.dataclass
            class Options(FairseqDataclass):
                shared: ClassVar[Inner] = field

        assert field.default == Inner(1)


PLUGIN = {
    "__init__.py": "from . import plain, task",
    "plain.py": """
        from dataclasses import dataclass, field

        @dataclass
        class Inner:
            value: int = 1

        @dataclass
        class Outer:
            first: Inner = Inner(5)
            second: Inner = field(default=Inner(6))
    """,
    "task.py": """
        from dataclasses import dataclass, field

        from fairseq.dataclass import FairseqDataclass
        from fairseq.models.transformer import TransformerConfig

        from .nested.plain import Last

        @dataclass
        class TaskConfig(FairseqDataclass):
            model: TransformerConfig = TransformerConfig()
            other: TransformerConfig = field(default=TransformerConfig(dropout=0.25))
    """,
    "nested/__init__.py": "",
    "nested/plain.py": """
        from dataclasses import dataclass

        from ..plain import Inner

        @dataclass
        class Last:
            inner: Inner = Inner(7)
    """,
    "late.py": """
        from dataclasses import dataclass

        from .plain import Inner

        @dataclass
        class Late:
            inner: Inner = Inner(8)
    """,
}
PROGRAM = """
import argparse, importlib, multiprocessing, sys
from fairseq import utils

def report(package, objects):
    late = importlib.import_module(package + ".late")
    plain, task = sys.modules[package + ".plain"], sys.modules[package + ".task"]
    outer, options = plain.Outer(), task.TaskConfig()
    print([outer.first.value, outer.second.value, task.Last().inner.value, late.Late().inner.value,
           options.model.dropout, options.other.dropout, objects[0].first.value])

if __name__ == "__main__":
    utils.import_user_module(argparse.Namespace(user_dir=sys.argv[1]))
    package = sys.argv[2]
    arguments = (package, [sys.modules[package + ".plain"].Outer()])
    report(*arguments)
    process = multiprocessing.get_context("spawn").Process(target=report, args=arguments)
    process.start()
    process.join()
    sys.exit(process.exitcode)
"""


@pytest.fixture
def plugin(tmp_path):
    """The folder of a plugin, whose name no module has."""
    folder = tmp_path / "plugin_of_dataclasses"
    for name, text in PLUGIN.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return folder


@pytest.mark.parametrize("way", ["relative", pytest.param("link", marks=pytest.mark.slow)])
def test_plugins_have_the_old_rule(way, plugin, tmp_path):
    """Also their sub-modules, what they import later, and processes that unpickle them first."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "linked_plugin").symlink_to(plugin)
    user_dir = str(tmp_path / "linked_plugin") if way == "link" else plugin.name
    command = [sys.executable, "program.py", user_dir, user_dir.rpartition("/")[2]]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[5, 6, 7, 8, 0.1, 0.25, 5]"] * 2


def test_folders_of_plugins_are_noted_once(plugin, tmp_path, monkeypatch):
    monkeypatch.setenv(dataclass_defaults.USER_DIRS_VARIABLE, "/elsewhere")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fairseq" / "models").mkdir(parents=True)
    for user_dir in (plugin.name, str(plugin), f"./{plugin.name}/", "models"):
        place = dataclass_defaults.place_of(user_dir, str(tmp_path / "fairseq"))
        dataclass_defaults.note_place(place)
    noted = dataclass_defaults.os.environ[dataclass_defaults.USER_DIRS_VARIABLE].split(":")
    assert noted == ["/elsewhere", str(plugin), str(tmp_path / "fairseq" / "models")]


def test_a_missing_folder_is_still_refused():
    from fairseq import utils

    with pytest.raises(FileNotFoundError):
        utils.import_user_module(argparse.Namespace(user_dir="/nowhere/at/all"))
