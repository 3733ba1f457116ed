"""The start-up hook: cheap, quiet for everybody else, effective wherever fairseq is imported."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fairseq_ext import compat

REPOSITORY = Path(__file__).resolve().parents[2]


def python(code, *arguments, site=True):
    """Output of a fresh interpreter that runs the code; without `site` no .pth file is read."""
    options = [] if site else ["-S"]
    command = [sys.executable, *options, "-c", textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_hook_imports_nothing():
    code = """
        import sys
        sys.path.insert(0, sys.argv[1])
        before = set(sys.modules)
        import _fairseq_ext_hook
        print(sorted(set(sys.modules) - before), len(sys.meta_path))
    """
    assert python(code, REPOSITORY, site=False) == "['_fairseq_ext_hook'] 4\n"


def test_process_without_fairseq_stays_without_us():
    code = """
        import sys, json, logging, email.message
        print([name for name in sys.modules if name.startswith(("fairseq", "torch", "numpy"))])
    """
    assert python(code) == "[]\n"


# how each process comes to its patches: (what it runs first, whether .pth files are read)
WITHOUT_PTH = """
import sys, _sitebuiltins, builtins
builtins.help = _sitebuiltins._Helper()  # `site` makes it; fairseq uses the name by mistake
sys.path[:0] = sys.argv[1:]
"""


def site_packages():
    import fairseq

    return Path(fairseq.__file__).parents[1]


@pytest.mark.slow
def test_checkout_without_pth_files():
    code = WITHOUT_PTH + "import fairseq_ext, fairseq; print(fairseq.__version__)"
    assert python(code, REPOSITORY, site_packages(), site=False).endswith("0.12.2\n")


def test_run_without_pth_files():
    code = (
        WITHOUT_PTH
        + "import runpy; sys.argv = ['x', 'run', 'fairseq-score', '--help']\n"
        + "runpy.run_module('fairseq_ext', run_name='__main__')"
    )
    output = python(code, REPOSITORY, site_packages(), site=False)
    assert "usage: fairseq-score" in output


@pytest.mark.slow
def test_hook_first_then_package():
    """The copy the hook loaded is the one that `import fairseq_ext.compat` gives."""
    code = """
        import sys
        sys.path.insert(0, sys.argv[1])
        import _fairseq_ext_hook
        import fairseq
        loaded = sys.modules["fairseq_ext.compat"]
        assert "fairseq_ext" not in sys.modules
        import fairseq_ext.compat
        assert sys.modules["fairseq_ext.compat"] is loaded
        finders = [f for f in sys.meta_path if getattr(f, "__name__", "") == "PatchingFinder"]
        assert len(finders) == 1, finders
        print([row.reason for row in loaded.status() if "failed" in row.reason])
    """
    assert python(code, REPOSITORY).splitlines()[-1] == "[]"


def test_spawned_process_has_the_patches(tmp_path):
    script = tmp_path / "spawn.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing
            import sys

            def child(queue):
                import fairseq.modules.transformer_layer
                compat = sys.modules["fairseq_ext.compat"]
                queue.put([row.name for row in compat.status() if row.active])

            if __name__ == "__main__":
                sys.path.insert(0, sys.argv[1])
                import _fairseq_ext_hook
                context = multiprocessing.get_context("spawn")
                queue = context.Queue()
                process = context.Process(target=child, args=(queue,))
                process.start()
                print(queue.get(timeout=100))
                process.join()
            """
        )
    )
    command = [sys.executable, script, REPOSITORY]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "encoder_layers_without_copies" in output


def test_activate_twice_adds_one_finder():
    before = list(sys.meta_path)
    assert compat.activate() is compat.activate()
    assert sys.meta_path == before


def test_modules_that_are_reloaded_are_patched_again():
    code = """
        import importlib, inspect, pkgutil, runpy, sys
        sys.path[:0] = sys.argv[1:]
        from fairseq_ext import compat
        compat.activate()
        from fairseq import search, utils
        for module in (utils, search, utils):
            importlib.reload(module)
        del sys.modules["fairseq.search"]
        other = importlib.import_module("fairseq.search")
        assert other is not search
        steps = [module.LengthConstrainedBeamSearch.step for module in (search, other)]
        for patched in (utils.load_align_dict, *steps):
            print(patched.__code__.co_filename.rpartition("/")[2])
        # what other tools ask of a loader
        loader = utils.__spec__.loader
        assert inspect.getsource(utils) == loader.get_source("fairseq.utils")
        assert pkgutil.get_data("fairseq", "config/config.yaml")
        assert not loader.is_package("fairseq.utils") and loader.get_code("fairseq.utils")
    """
    patched = ["unknown_words.py", "surrounded_calls.py", "surrounded_calls.py"]
    assert python(code, REPOSITORY).split()[-3:] == patched


def test_other_packages_are_not_touched():
    finder = compat.activate()
    for name in ("torch", "numpy", "fairseqish", "hydra_colorlog", "yaml"):
        assert finder.find_spec(name) is None


def test_modules_of_other_loaders_are_patched(tmp_path):
    """pytest loads hydra itself, whose plugin it has: its assertions are rewritten."""
    code = """
        import importlib.machinery, sys
        sys.path.insert(0, sys.argv[1])

        class Loader(importlib.machinery.SourceFileLoader):
            pass

        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                spec = importlib.machinery.PathFinder.find_spec(name, path, target)
                is_source = spec is not None and str(spec.origin).endswith(".py")
                if is_source and name.partition(".")[0] == "fairseq":
                    spec.loader = Loader(spec.loader.name, spec.loader.path)
                return spec

        import _fairseq_ext_hook
        sys.meta_path.insert(0, Finder)
        _fairseq_ext_hook.load_compat().activate()
        import fairseq.utils
        import fairseq_ext.compat
        loader = fairseq.utils.__loader__
        print(type(loader).__name__, loader.get_filename("fairseq.utils").endswith("utils.py"))
        print(fairseq.utils.eval.__module__)
    """
    assert python(code, REPOSITORY).splitlines()[-2:] == [
        "OtherLoader True",
        "fairseq_ext.compat.checkpoints.literal_evaluation",
    ]


def test_missing_fairseq_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install --no-deps fairseq==0.12.2"):
        compat.require_fairseq()
