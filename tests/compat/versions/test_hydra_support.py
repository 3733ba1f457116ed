"""fairseq-hydra-train --config-name; hydra's scan for plugins and typing.io on later Pythons."""

import argparse
import pathlib
import sys
import types

import pytest

from fairseq_ext.compat.user_errors import OptionError
from fairseq_ext.compat.versions import hydra_support
from fairseq_ext.compat.versions.hydra_support import check_config_name
from fairseq_ext.compat.versions.option_types import optional_types_are_recognised


def test_a_configuration_with_a_file_is_read(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "small.yaml").write_text("common:\n  seed: 3\n", encoding="utf-8")
    check_config_name("config", None, None)
    check_config_name("deep/small", str(tmp_path), None)
    check_config_name("small.yaml", None, str(tmp_path / "deep"))
    check_config_name("anything", None, "pkg://package.configurations")


@pytest.mark.parametrize(
    "options, message",
    [
        ((None, None), "--config-name smal: add --config-dir, the folder of smal.yaml"),
        (("DIR", None), "--config-name smal: there is no smal.yaml in DIR"),
        ((None, "/nowhere"), "--config-name smal: there is no smal.yaml in /nowhere"),
    ],
)
def test_a_configuration_without_a_file_is_refused(options, message):
    """fairseq alone trains with its defaults."""
    with pytest.raises(OptionError, match=message):
        check_config_name("smal", *options)


def test_the_command_checks_the_name(monkeypatch):
    from fairseq_cli import hydra_train

    monkeypatch.setattr(sys, "argv", ["fairseq-hydra-train", "--config-name", "smal"])
    with pytest.raises(OptionError, match="--config-name smal"):
        hydra_train.hydra_init("smal")


@pytest.mark.parametrize("asked", ["1.1", "1.3", None])
def test_options_are_composed_in_programs_with_a_version_base(asked, monkeypatch):
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from hydra import version

    monkeypatch.setattr(version.VersionBase.instance(), "version_base", None)
    version.setbase(asked)
    base = version.getbase()
    cfg = convert_namespace_to_omegaconf(argparse.Namespace(seed=7))
    assert cfg.common.seed == 7
    assert version.getbase() == base


def test_hydra_support_without_the_patch_fails_there(monkeypatch, plain):
    """What the patch is for: hydra-core refuses fairseq's import of 2020."""
    from hydra import version

    monkeypatch.setattr(version.VersionBase.instance(), "version_base", None)
    version.setbase("1.3")
    stock = plain("fairseq.dataclass.utils")
    optional_types_are_recognised(stock)  # or Python 3.14 fails before
    with pytest.raises(ImportError, match="no longer experimental"):
        stock.convert_namespace_to_omegaconf(argparse.Namespace(seed=7))


def test_hydra_1_0_finds_its_plugins():
    """It asks importers for `find_module`, which those of Python 3.12 have not."""
    import json.decoder
    import pkgutil

    plugins = types.SimpleNamespace(pkgutil=pkgutil)
    hydra_support.hydra_plugin_scan(plugins)
    scan = plugins.pkgutil.walk_packages(json.__path__, "json.")
    modules = {name: importer.find_module(name).load_module(name) for importer, name, _ in scan}
    assert modules["json.decoder"] is json.decoder


def test_typing_io_has_its_three_names(monkeypatch):
    monkeypatch.delitem(sys.modules, "typing.io", raising=False)
    hydra_support.typing_io("antlr4")
    assert set(vars(sys.modules["typing.io"])) >= {"IO", "TextIO", "BinaryIO"}
    monkeypatch.delitem(sys.modules, "typing.io")


class Lazy:
    """Help that is rendered when it is shown."""

    def __repr__(self):
        return "rendered"


def test_help_may_be_any_object():
    """Python 3.14 refuses it in argparse's own parser."""
    parser = hydra_support.LazyHelpParser()
    action = parser.add_argument("--lazy", action="store_true", help=Lazy())
    assert repr(action.help) == "rendered"
    assert parser.parse_args(["--lazy"]).lazy
    assert parser.add_argument("--plain", help="a text").help == "a text"
    assert parser.add_argument("--hidden", help=argparse.SUPPRESS).help == argparse.SUPPRESS


def test_hydra_s_own_parser_is_built():
    from fairseq_cli import hydra_train  # noqa: F401
    from hydra._internal.utils import get_args_parser

    assert get_args_parser().parse_args(["--config-name", "small"]).config_name == "small"


def test_a_configuration_path_may_be_a_path():
    calls = []
    module = types.SimpleNamespace(main=lambda *values, **names: calls.append((values, names)))
    hydra_support.config_paths_are_text(module)
    module.main(config_path=pathlib.Path("conf"), config_name="infer")
    module.main()
    assert calls == [(("conf",), {"config_name": "infer"}), ((), {})]


@pytest.fixture
def registries():
    """Two of a plugin's own: --manner has the entry `plain`, --shape `sized` with a dataclass."""
    from dataclasses import dataclass

    from fairseq.dataclass import FairseqDataclass
    from fairseq.registry import REGISTRIES, setup_registry
    from hydra.core.config_store import ConfigStore

    @dataclass
    class Sizes(FairseqDataclass):
        width: int = 3

    setup_registry("--manner")[1]("plain")(type("Plain", (), {}))
    setup_registry("--shape")[1]("sized", dataclass=Sizes)(type("Sized", (), {}))
    yield
    del REGISTRIES["manner"], REGISTRIES["shape"], ConfigStore.instance().repo["shape"]


@pytest.mark.parametrize(
    ("options", "manner", "shape"),
    [
        ({}, None, None),
        ({"manner": "plain", "shape": None}, "plain", None),
        ({"manner": None, "shape": "sized", "width": 5}, None, {"_name": "sized", "width": 5}),
    ],
)
def test_the_choice_of_a_plugin_s_registry_is_composed(options, manner, shape, registries):
    """As hydra 1.0 does; later ones end in "Could not override 'manner'"."""
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    cfg = convert_namespace_to_omegaconf(argparse.Namespace(seed=7, **options))
    assert (cfg.common.seed, cfg.manner, cfg.shape) == (7, manner, shape)
