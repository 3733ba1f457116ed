"""The manual: its commands run or parse, its options exist, its links lead somewhere."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pages
import pytest

REPOSITORY = pages.REPOSITORY
DOCS = REPOSITORY / "docs"
BASH = shutil.which("bash")
# what makes a page's training short: later options win over those of the page
SHORTER = "--max-epoch 3 --embed-dim 16 --ffn-embed-dim 16 --attention-heads 2 --layers 1"
# and its text, where a command generates it: {words of the page: fewer lines}
FEWER = {"--train 8000 --valid 200 --test 200": "--train 800 --valid 20 --test 20"}
# sessions of long trainings; the options of all are checked all the same
SLOW = ("many", "few", "own-data", "cli")


def sessions(kind):
    """Test parameters for the scripts of a kind."""
    return pytest.mark.parametrize(
        "page, name",
        [
            pytest.param(
                page,
                name,
                id=f"{pages.label(page)}:{name}",
                marks=[pytest.mark.slow] if name in SLOW else [],
            )
            for page, name in pages.sessions(kind)
        ],
    )


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def bash(script, folder, **variables):
    """Run a script in a folder; every failing command ends it. Returns its output."""
    finished = subprocess.run(
        [BASH, "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    tail = "\n".join(finished.stdout.splitlines()[-40:])
    assert finished.returncode == 0, f"status {finished.returncode}:\n{tail}"
    return finished.stdout


@pytest.fixture
def clone(tmp_path):
    """A folder that looks like the root of a clone with an environment, but short trainings."""
    # not a link: experiments run in the folder that they lie in
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    (tmp_path / "fairseq_ext").symlink_to(REPOSITORY / "fairseq_ext")
    scripts = Path(sys.executable).parent
    short = tmp_path / ".venv" / "short"
    executable(short / "fairseq-train", f'#!/bin/sh\nexec {scripts}/fairseq-train "$@" {SHORTER}\n')
    (tmp_path / ".venv" / "bin").mkdir()
    activate = tmp_path / ".venv" / "bin" / "activate"
    activate.write_text(f"PATH={short}:{scripts}:$PATH\n", encoding="utf-8")
    return tmp_path


@sessions("run")
def test_commands_run(page, name, clone):
    for block in pages.blocks(page):
        if block.kind == "file":
            path = clone / block.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
    script = pages.script(page, "run", name)
    for words, fewer in FEWER.items():
        script = script.replace(words, fewer)
    bash(script, clone)


def test_the_text_of_a_page_is_shortened():
    texts = [pages.script(page, "run", name) for page, name in pages.sessions("run")]
    assert all(any(words in text for text in texts) for words in FEWER)


# ---------------------------------------------------------------- parsing only

RECORDER = """#!{python}
import json, os, sys
if sys.argv[1:] == ["user-dir"]:
    sys.exit(print(os.environ["USER_DIR"]))
with open(os.environ["RECORD"], "a") as record:
    record.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
"""


def recorded(script, folder):
    """The fairseq commands that a script calls, each as a list; nothing of them is run.

    Every other program is missing from PATH: a script that needs one is no dry-run block.
    """
    commands = ["fairseq-ext", *pages.fairseq_parsers()]
    for command in commands:
        executable(folder / "bin" / command, RECORDER.format(python=sys.executable))
    record = folder / "record"
    record.touch()
    user_dir = str(REPOSITORY / "fairseq_ext")
    bash(script, folder, PATH=str(folder / "bin"), RECORD=str(record), USER_DIR=user_dir)
    return [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]


def check_parses(name, *words):
    """Parse a command line as its program would; SystemExit when that refuses it."""
    from common.composition import converted
    from fairseq import options

    from fairseq_ext import __main__ as command

    if name == "fairseq-ext":
        parser = command.argparse.ArgumentParser()
        module_name = command.COMMANDS[words[0]].module
        command.importlib.import_module(f"fairseq_ext.{module_name}").add_arguments(parser)
        parser.parse_args(words[1:])
        return
    parser = pages.fairseq_parsers()[name]()
    if name in ("fairseq-preprocess", "fairseq-score"):
        parser.parse_args(list(words))
    else:
        with pages.files_may_be_missing():
            args = options.parse_args_and_arch(parser, list(words))
            converted(args)
        has_batches = name in ("fairseq-generate", "fairseq-interactive", "fairseq-eval-lm")
        if not (has_batches or args.max_tokens or args.batch_size):
            parser.error("no --max-tokens and no --batch-size, without which the command ends")


@sessions("dry-run")
def test_commands_parse(page, name, tmp_path):
    commands = recorded(pages.script(page, "dry-run", name), tmp_path)
    assert commands
    for words in commands:
        check_parses(*words)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ("--dropout 0.1", "no --max-tokens and no --batch-size"),
        ("--dropuot 0.1", "unrecognized arguments: --dropuot"),
        ("--arch dual_transformer_none", "invalid choice: 'dual_transformer_none'"),
    ],
)
def test_a_wrong_option_would_be_found(wrong, message, tmp_path, capsys):
    script = "fairseq-train d --user-dir $USER_DIR --task dual_translation --arch dual_transformer "
    (words,) = recorded(script + wrong, tmp_path)
    with pytest.raises(SystemExit):
        check_parses(*words)
    assert message in capsys.readouterr().err


# ---------------------------------------------------------------- pages as text


@pytest.mark.parametrize("page", pages.pages(), ids=pages.label)
def test_bash_blocks_are_bash(page):
    for block in pages.blocks(page):
        if block.language == "bash":
            checked = subprocess.run([BASH, "-n"], input=block.text, encoding="utf-8")
            assert checked.returncode == 0, f"{page.name}, line {block.line}"


@pytest.mark.parametrize("page", pages.pages(), ids=pages.label)
def test_marks_stand_before_blocks(page):
    text = page.read_text(encoding="utf-8")
    marked = [block for block in pages.blocks(page) if block.kind]
    assert len(pages.MARK.findall(text)) == len(marked)
    assert all(block.language == "bash" for block in marked if block.kind != "file")


@pytest.mark.parametrize("page", pages.pages(), ids=pages.label)
def test_files_of_a_page_are_named(page):
    """The text, without marks and tables, names a file before it shows it."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for block in pages.blocks(page):
        if block.kind == "file":
            before = "\n".join(line for line in lines[: block.line] if line[:1] not in ("|", "<"))
            names = (block.name, Path(block.name).name)
            assert any(f"`{name}`" in before for name in names), f"line {block.line}"


@pytest.fixture(scope="module")
def options():
    return pages.existing_options()


@pytest.mark.parametrize("page", pages.pages(), ids=pages.label)
def test_options_exist(page, options):
    unknown = sorted(set(pages.OPTION.findall(pages.code(page))) - options)
    assert not unknown, f"{pages.label(page)} names options that do not exist: {unknown}"


def test_make_targets_exist():
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?m)^([a-z-]+):", makefile))
    named = set(re.findall(r"\bmake ([a-z-]+)", "\n".join(map(pages.code, pages.pages()))))
    assert {"demo", "test"} <= named <= targets
    help_text = bash("make help", REPOSITORY)
    assert all(f"  {target} " in help_text for target in targets)


def documents():
    """All Markdown files of the repository."""
    folders = ("docs", "examples", "fairseq_ext")
    nested = [path for folder in folders for path in (REPOSITORY / folder).rglob("*.md")]
    return sorted([*REPOSITORY.glob("*.md"), *nested])


@pytest.mark.parametrize("page", documents(), ids=pages.label)
def test_links_lead_somewhere(page):
    for target in pages.links(page):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{pages.label(page)}: {target}"
        # the built manual has no other files
        root = DOCS if DOCS in page.parents else REPOSITORY
        assert root in path.parents, f"{pages.label(page)}: {target} is outside"
        if anchor:
            assert anchor in pages.anchors(path), f"{pages.label(page)}: {target}"


def named_experiments(page):
    """[(experiment, system or None)] of the commands of a page that run an experiment."""
    command = r"examples/run\.py (\w+/\w+)\b(?!\.toml)(?: '?([\w.*@-]+))?"
    words = re.findall(command, pages.code(page))
    return [(name, None if system in ("prepare", "report", "SYSTEM") else system or None)
            for name, system in words]  # fmt: skip


def test_experiments_of_the_pages_exist(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples"))
    from experiments.definition import read_experiment

    commands = [words for page in documents() for words in named_experiments(page)]
    for name, system in dict.fromkeys(commands):
        experiment = read_experiment(name)
        assert not system or experiment.matching(system)
    assert ("dual/monolingual", "stock.twice.*") in commands


def test_everything_registered_is_in_the_manual():
    from fairseq_ext.tools.installation import listing

    manual = "\n".join(page.read_text(encoding="utf-8") for page in pages.pages())
    kinds = [kinds for kinds in listing.catalogue().values()]
    names = [entry["name"] for kind in kinds for entries in kind.values() for entry in entries]
    missing = [name for name in names if not re.search(rf"\b{re.escape(name)}\b", manual)]
    assert names and not missing


def test_terms_lead_to_code_that_exists():
    """The vocabulary of docs/notation.md names files of the package and what they define."""
    text = (REPOSITORY / "docs" / "notation.md").read_text(encoding="utf-8")
    named = re.findall(r"\| `([a-z]\w*/[\w/]+\.py)(?:: (\w+))?` \|", text)
    assert len(named) > 10
    for file, symbol in named:
        source = (REPOSITORY / "fairseq_ext" / file).read_text(encoding="utf-8")
        assert not symbol or re.search(rf"(?m)^(class|def) {symbol}\b", source), (file, symbol)


def test_every_page_is_in_the_navigation():
    """Those that the build generates put themselves there: docs/site/generate.py."""
    docs = REPOSITORY / "docs"
    navigation = (docs / "site" / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = re.findall(r": ([\w/-]+\.md)$", navigation, re.MULTILINE)
    written = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}
    assert len(named) == len(set(named))
    assert set(named) == written | {"contributing.md", "changelog.md"}


def test_the_search_knows_no_words_with_digits():
    """lunr's word tree is wrong with them, and then a query for "dual" fails."""
    config = (REPOSITORY / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    separator = re.search(r"(?m)^ +separator: '(.*)'$", config).group(1)
    text = "".join(page.read_text(encoding="utf-8") for page in REPOSITORY.glob("docs/**/*.md"))
    words = set(re.split(separator, text))
    assert {"dual", "alpha", "fairseq_ext", "dual_transformer"} <= words
    assert not [word for word in words if re.search("[0-9]", word)]


@pytest.mark.slow
def test_the_manual_builds(run, tmp_path):
    config = REPOSITORY / "docs" / "site" / "mkdocs.yml"
    words = ("--strict", "-f", config, "-d", tmp_path / "site")
    run("python", "-m", "mkdocs", "build", *words)
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert tmp_path / "site" / "code" / "routed" / "api.html" in pages
    for page in pages:
        # nothing is fetched from elsewhere
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|link)[^>]* (?:src|href)="(?:https?:)?//', text), page
