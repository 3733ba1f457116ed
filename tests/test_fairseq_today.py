"""The errors of docs/fairseq-today.md come without the layer, and not with it."""

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from compat import error_probes

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "fairseq-today.md"
# the beginning of a heading: the probe that meets it
PROBED = {
    "ImportError: hydra.experimental": "version_base",
    "AttributeError: module 'numpy'": "numpy_float",
    "TypeError: percentile()": "percentile",
    "ValueError: offset must be": "large_data",
    "_pickle.UnpicklingError": "weights_only",
    "RuntimeError: Mask Type": "mask_type",
    "AttributeError: 'NoneType' object has no attribute 'xla_device'": "bf16",
    "fairseq-train: error: unrecognized arguments": "local_rank",
    "TypeError: BLEU": "sacrebleu",
    "argparse.ArgumentError": "denoising",
    "AttributeError: 'TranslationFromPretrainedBARTTask'": "mbart",
    "ImportError: cannot import name 'libnat'": "libnat",
}
# the beginning of a heading: the test that cures it
ELSEWHERE = {
    "ERROR: ResolutionImpossible": "tests/test_packaging.py::test_stock_fairseq_is_refused",
    "FileNotFoundError": "tests/test_packaging.py::test_stock_fairseq_is_refused",
    "ValueError: mutable default": "tests/test_fairseq_today.py::test_fairseq_by_itself",
    "omegaconf.errors.ValidationError": "tests/compat/versions/test_dataclass_factories.py::"
    "test_the_options_of_the_fork_are_registered",
    "omegaconf.errors.ConfigKeyError": "tests/compat/checkpoints/test_unknown_options.py::"
    "test_a_checkpoint_is_loaded",
    "omegaconf.errors.ConfigAttributeError": "tests/compat/architectures/test_older_speech.py::"
    "test_an_encoder_with_the_options_of_0_10",
    "AttributeError: 'FileFinder'": "tests/compat/versions/test_hydra_support.py::"
    "test_hydra_1_0_finds_its_plugins",
    "ValueError: invalid literal for int()": "tests/compat/versions/test_encoder_layers.py::"
    "test_versions_of_other_builds_are_not_read",
    "ModuleNotFoundError: No module named 'typing.io'": "tests/compat/versions/"
    "test_hydra_support.py::test_typing_io_has_its_three_names",
}
# which versions bring an error: (package, from which on)
SINCE = {
    "numpy_float": ("numpy", 1, 24),
    "percentile": ("numpy", 2, 4),
    "large_data": ("numpy", 2, 0),
    "weights_only": ("torch", 2, 6),
    "version_base": ("hydra", 1, 2),
    "local_rank": ("torch", 1, 0),
}


def headings():
    """The messages that are headings of the page."""
    section = PAGE.read_text(encoding="utf-8").split("## Errors, and what cures them")[1]
    section = section.split("\n## ")[0]
    return [html.unescape(text) for text in re.findall(r"(?m)^### (.+)$", section)]


def probe(data, folder, off):
    """{name: error or None} of a process that runs the probes without some patches."""
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", error_probes.__file__, data, folder],
        env={**os.environ, "FAIRSEQ_EXT_COMPAT_OFF": ",".join(off), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def with_the_layer(toy_corpus, tmp_path_factory):
    return probe(toy_corpus.two, tmp_path_factory.mktemp("with"), ())


@pytest.fixture(scope="module")
def without(toy_corpus, tmp_path_factory):
    return probe(toy_corpus.two, tmp_path_factory.mktemp("without"), error_probes.PATCHES)


def start_of(heading, table):
    """The key of a table that the heading begins with."""
    return next((start for start in table if heading.startswith(start)), None)


def test_every_error_of_the_page_has_its_test():
    named = [start_of(heading, {**PROBED, **ELSEWHERE}) for heading in headings()]
    assert None not in named, headings()
    assert sorted(named) == sorted([*PROBED, *ELSEWHERE])
    for place in ELSEWHERE.values():
        path, _, name = place.partition("::")
        assert f"\ndef {name}(" in (REPOSITORY / path).read_text(encoding="utf-8"), place


@pytest.mark.parametrize("start", PROBED)
def test_the_layer_cures_it(start, with_the_layer):
    assert with_the_layer[PROBED[start]] is None


@pytest.mark.parametrize("start", PROBED)
def test_it_comes_without_the_layer(start, without):
    from fairseq_ext.compat.patch_registry import since

    name = PROBED[start]
    if name in SINCE and since(*SINCE[name])() is not None:
        pytest.skip("the installed {} is older than {}.{}".format(*SINCE[name]))
    (heading,) = [text for text in headings() if text.startswith(start)]
    for part in heading.split(" ... "):
        assert part in without[name]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="until Python 3.10 fairseq imports")
def test_fairseq_by_itself():
    """Without the start-up file, importing fairseq ends in the first error; with it, it works."""
    import fairseq

    # `site` makes the builtin `help`; fairseq uses the name by mistake
    code = f"import builtins, sys; sys.path.append({str(Path(fairseq.__file__).parents[1])!r})\n"
    code += "builtins.help = print; import fairseq"
    errors = {}
    for name, options in (("plain", ["-S"]), ("layer", [])):
        command = [sys.executable, *options, "-c", code]
        finished = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        errors[name] = finished.stderr if finished.returncode else None
    (heading,) = [text for text in headings() if "mutable default" in text]
    assert heading in errors["plain"]
    assert errors["layer"] is None
