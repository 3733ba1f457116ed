"""What the package registers, and the rules of its sources."""

import ast
import dataclasses
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY, CRITERION_REGISTRY
from fairseq.models import (
    ARCH_MODEL_INV_REGISTRY,
    ARCH_MODEL_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
    MODEL_REGISTRY,
)
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY

import fairseq_ext

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = REPOSITORY / "fairseq_ext"
SOURCES = sorted(PACKAGE.rglob("*.py"))
ALL_SOURCES = SOURCES + sorted(
    path
    for folder in ("tests", "examples", "benchmarks")
    for path in (REPOSITORY / folder).rglob("*.py")
)
# what a folder may import from; every other folder of the package is a system
LAYERS = {
    "compat": set(),
    "common": {"compat"},
    "streams": {"compat", "common"},
}
SYSTEM_MAY_IMPORT = {"compat", "common", "streams"}
SYSTEMS = {path.parent.name for path in PACKAGE.glob("*/README.md")}
# what uses trained models of all systems, and the commands for all, which may use it
LAYERS["inference"] = SYSTEM_MAY_IMPORT | SYSTEMS
LAYERS["tools"] = SYSTEM_MAY_IMPORT | {"inference"}
# the card and the server say the version
LAYERS["inference"] |= {"__version__"}
LAYERS["tools"] |= {"__version__"}
MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_ARGUMENTS, MAX_COLUMNS = 399, 59, 11, 100


def ours(registry):
    """The names under which this package's classes are registered."""
    return sorted(
        name for name, entry in registry.items() if entry.__module__.startswith("fairseq_ext.")
    )


def our_architectures():
    return sorted(
        arch for model in ours(MODEL_REGISTRY) for arch in ARCH_MODEL_INV_REGISTRY.get(model, [])
    )


def our_configs():
    """{label: dataclass} of every option group that the package registers."""
    configs = {}
    for name in ours(TASK_REGISTRY):
        configs[f"task {name}"] = TASK_DATACLASS_REGISTRY[name]
    for name in ours(CRITERION_REGISTRY):
        configs[f"criterion {name}"] = CRITERION_DATACLASS_REGISTRY[name]
    for name in ours(MODEL_REGISTRY):
        # twin_lstm and such have the options of a stock model, which are no dataclass
        if MODEL_REGISTRY[name].add_args.__module__.startswith("fairseq.models.fairseq_model"):
            configs[f"model {name}"] = MODEL_DATACLASS_REGISTRY[name]
    return configs


def relative(path):
    return str(path.relative_to(REPOSITORY))


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_modules(path):
    """Names of the modules of the package that the file at ``path`` imports, as tuples."""
    package = path.relative_to(PACKAGE).parent.parts
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            names = node.module.split(".") if node.module else []
            yield from ((*base, *names, name.name) for name in node.names)


def imported_parts(path):
    """Top-level folders or modules of the package that the file at ``path`` imports."""
    return {parts[0] for parts in imported_modules(path)}


def test_names_of_the_manual_are_registered():
    assert {"dual_translation"} <= set(ours(TASK_REGISTRY))
    assert {"chunked_label_smoothed_cross_entropy"} <= set(ours(CRITERION_REGISTRY))
    sizes = ["_tiny", "_iwslt_de_en", "_wmt_en_de", "_wmt_en_de_big", "_nist_zh_en"]
    assert {"dual_transformer", *(f"dual_transformer{size}" for size in sizes)} <= set(
        our_architectures()
    )


def test_every_name_is_unique():
    """One name means one thing, over all systems and whatever fairseq has under that name."""
    registries = (TASK_REGISTRY, CRITERION_REGISTRY, MODEL_REGISTRY)
    names = [name for registry in registries for name in ours(registry)]
    assert len(names) == len(set(names))
    stock = {name for registry in registries for name in registry} - set(names)
    assert not stock & set(our_architectures())
    for name in our_architectures():  # fairseq calls an architecture like its model
        assert MODEL_REGISTRY.get(name, ARCH_MODEL_REGISTRY[name]) is ARCH_MODEL_REGISTRY[name]
    assert not set(our_architectures()) & {*ours(TASK_REGISTRY), *ours(CRITERION_REGISTRY)}
    assert all(re.fullmatch("[a-z0-9_]+", name) for name in (*names, *our_architectures()))


def test_registering_a_name_of_fairseq_again_would_be_noticed():
    from fairseq.tasks import register_task

    with pytest.raises(ValueError, match="duplicate"):
        register_task(ours(TASK_REGISTRY)[0])(type("Other", (), {}))


@pytest.mark.parametrize("label", sorted(our_configs()))
def test_every_option_has_a_help_text(label):
    config = our_configs()[label]
    assert config is not None, f"{label} has no dataclass"
    inherited = {
        field.name
        for base in config.__mro__[1:]
        if dataclasses.is_dataclass(base)
        for field in dataclasses.fields(base)
        if not base.__module__.startswith("fairseq_ext.")
    }
    config()
    for field in dataclasses.fields(config):
        if field.name.startswith("_") or field.name in inherited:
            continue
        text = field.metadata.get("help")
        interpolated = isinstance(field.default, str) and field.default.startswith("${")
        assert text or interpolated, f"{label}: option {field.name} has no help text"


# the task of an architecture, by the beginning of its name; those with one dictionary first
TASKS = {
    "gru_lm": "language_modeling",
    "twin_lstm_lm": "language_modeling",
    "twin_caption": "image_captioning",
    "multiway": "multiway_translation",
    "duo": "translation",
    "twin": "translation",
    "": "dual_translation",
}
ONE_DICTIONARY = ("language_modeling", "image_captioning")
# these start from checkpoints and from a config.yaml: tests/multiway/test_deep_fusion.py and
# tests/twin/test_speech_task.py build them
BUILT_ELSEWHERE = ("deep_fusion_gru", "twin_speech_lstm")


@pytest.mark.parametrize(
    "arch", [name for name in our_architectures() if not name.startswith(BUILT_ELSEWHERE)]
)
def test_architecture_builds_with_its_defaults(arch, toy_corpus, tmp_path):
    """On the meta device: the big ones take no memory."""
    from common.inprocess import configuration
    from fairseq import options, tasks

    task = next(task for beginning, task in TASKS.items() if arch.startswith(beginning))
    words = [toy_corpus.two, "--task", task, "-s", "xx", "-t", "yy"]
    if "lstm_classifier" in arch:
        shutil.copy(toy_corpus.two / "dict.xx.txt", tmp_path)
        (tmp_path / "dict.label.txt").write_text("good 1\nbad 1\n")
        words = [tmp_path, "--task", task, "-s", "xx", "-t", "label"]
    if task in ONE_DICTIONARY:
        shutil.copy(toy_corpus.two / "dict.xx.txt", tmp_path / "dict.txt")
        words = [tmp_path, "--task", task]
    cfg = configuration(options.get_training_parser(), [*words, "--arch", arch])
    task = tasks.setup_task(cfg.task)
    with torch.device("meta"):
        model = task.build_model(cfg.model)
    assert sum(parameter.numel() for parameter in model.parameters()) > 0


def test_version_is_that_of_the_distribution():
    words = [sys.executable, "setup.py", "--version"]
    printed = subprocess.run(
        words, cwd=REPOSITORY, stdout=subprocess.PIPE, encoding="utf-8", check=True
    )
    assert printed.stdout.split()[-1] == fairseq_ext.__version__


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_no_absolute_import_of_the_package(path):
    """--user-dir imports the folder under its own name: an absolute import registers twice."""
    for node in ast.walk(tree(path)):
        names = []
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        assert not any(name.split(".")[0] == "fairseq_ext" for name in names), node.lineno


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_dependencies_run_one_way(path):
    """compat <- common <- streams <- systems <- their commands; a system never imports another.

    tools is what commands of all systems use: it imports no system, and of a system only the
    commands import it. inference uses trained models of all systems.
    """
    folder, *rest = path.relative_to(PACKAGE).parts
    if folder.endswith(".py"):
        return
    allowed = LAYERS.get(folder, SYSTEM_MAY_IMPORT) | {folder}
    if rest[0] == "commands":
        allowed |= {"tools"}
    assert set(imported_parts(path)) <= allowed
    imported = {".".join(parts[:2]) for parts in imported_modules(path)}
    assert rest[0] == "commands" or f"{folder}.commands" not in imported or folder == "tools"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("modules.py")), ids=relative)
def test_modules_are_plain_torch(path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            assert not any(name.name.startswith("fairseq") for name in node.names)
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("fairseq")


def function_lines(node):
    return node.end_lineno - node.lineno + 1


@pytest.mark.parametrize("path", ALL_SOURCES, ids=relative)
def test_size_limits(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MAX_FILE_LINES, f"{len(lines)} lines"
    for number, line in enumerate(lines, start=1):
        assert len(line) <= MAX_COLUMNS, f"line {number} has {len(line)} columns"
    for node in ast.walk(tree(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            size = function_lines(node)
            assert size <= MAX_FUNCTION_LINES, f"{node.name} has {size} lines"
            if node.name == "__init__":
                spec = node.args
                count = len(spec.posonlyargs + spec.args + spec.kwonlyargs) - 1
                assert count <= MAX_ARGUMENTS, f"line {node.lineno}: {count} arguments"


def defined_tests():
    names = set()
    for path in (REPOSITORY / "tests").rglob("test_*.py"):
        nodes = ast.walk(tree(path))
        names.update(node.name for node in nodes if isinstance(node, ast.FunctionDef))
    return names


@pytest.mark.parametrize("card", sorted(PACKAGE.glob("*/README.md")), ids=relative)
def test_card_leads_to_code_and_tests_that_exist(card):
    """Every test that the card names is there, and every `file.py: Class` of the package."""
    text = card.read_text(encoding="utf-8")
    named = set(re.findall(r"\btest_[a-z0-9_]+\b(?!\.py)", text))
    assert named and named <= defined_tests()
    symbols = re.findall(r"`(\w+/)?(\w+\.py): ([A-Z]\w+)", text)
    assert symbols
    for folder, file, symbol in symbols:
        inside = card.parent / folder / file
        path = inside if inside.is_file() else PACKAGE / folder / file
        assert f"class {symbol}" in path.read_text(encoding="utf-8"), symbol
    for file in re.findall(r"\btests/[\w/]+\.py", text):
        assert (REPOSITORY / file).is_file(), file


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_no_error_is_swallowed(path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ExceptHandler):
            broad = node.type is None or getattr(node.type, "id", "") in (
                "Exception",
                "BaseException",
            )
            silent = len(node.body) == 1 and isinstance(node.body[0], ast.Pass)
            assert not (broad and silent), f"line {node.lineno}"
