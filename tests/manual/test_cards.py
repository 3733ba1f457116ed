"""Cards as pages: what they name leads to the modules and to the tests."""

import re
import textwrap
from pathlib import Path

import cards
import generate
import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "fairseq_ext"
SYSTEMS = generate.systems()
MODULE = '''class Unit:
    """A unit."""

    def step(self):
        """Return a state."""

    def bare(self):
        pass
'''


def make_repository(root, card):
    """A repository with one system; returns the folder of the package."""
    package = root / "package"
    files = {
        "package/toy/README.md": card,
        "package/toy/modules.py": MODULE,
        "package/common/layers.py": 'def linear():\n    """L."""\n',
        "tests/toy/test_modules.py": "@mark\ndef test_unit():\n    assert True\n",
        "tests/toy/test_other.py": "def test_unit():\n    assert 2\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return package


@pytest.mark.parametrize(
    "reference, target",
    [
        ("modules.py: Unit.step", "api.md#package.toy.modules.Unit.step"),
        ("modules.py: Unit.bare", "api.md#package.toy.modules.Unit"),
        ("modules.py", "api.md#package.toy.modules"),
        ("modules.py: _hidden", "api.md#package.toy.modules"),
        ("common/layers.py: linear", "../common/api.md#package.common.layers.linear"),
        ("test_modules.py: test_unit", "tests.md#test_modules.test_unit"),
        ("test_other.py: test_unit", "tests.md#test_other.test_unit"),
        ("none.py: Unit", None),
        ("test_none", None),
        ("--option", None),
    ],
)
def test_references_become_links(reference, target, tmp_path):
    package = make_repository(tmp_path, f"| x | `{reference}` |\n")
    link = f"[`{reference}`]({target})" if target else f"`{reference}`"
    assert cards.Card(package, "toy").page() == f"| x | {link} |\n"


def test_a_test_without_a_file_is_one_of_the_file_named_before(tmp_path):
    row = "| x | `test_other.py: test_unit`, `test_unit` |\n"
    page = cards.Card(make_repository(tmp_path, row), "toy").page()
    assert page.count("tests.md#test_other.test_unit") == 2


def test_the_page_of_tests_holds_their_sources(tmp_path):
    card = cards.Card(make_repository(tmp_path, "| x | `test_unit` |\n"), "toy")
    card.page()
    assert "```python\n@mark\ndef test_unit():\n    assert True\n```" in card.tests_page()


@pytest.mark.parametrize(
    "cell, shown",
    [
        (" Eq. 4: h = f(x) (Sec. 2) ", r" Eq. 4: <math.*</math> \(Sec. 2\) "),
        (" h = f(x), for the block ", " <math.*</math>, for the block "),
        (" `x = 1` ", " `x = 1` "),
        (" Adam = what fairseq has ", " Adam = what fairseq has "),
    ],
)
def test_cells_that_are_equations(cell, shown):
    assert re.fullmatch(shown, cards.equation_cell(cell))


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_module_and_test_that_a_card_names_has_a_link(system):
    page = cards.Card(PACKAGE, system).page()
    table = page[: page.index("\n## ", page.index("\n## Equation") + 5)]
    left = re.findall(r"(?<!\[)`(?:\w+\.py: )?test_\w+`(?!\])", table)
    assert "api.md#fairseq_ext." in table and "tests.md#" in table
    assert not left, f"no link for {left}"


@pytest.mark.parametrize("system", SYSTEMS)
def test_names_of_a_card_stand_in_their_files(system):
    card = (PACKAGE / system / "README.md").read_text(encoding="utf-8")
    for file, name in re.findall(r"`([\w/]+\.py): (?:\w+\.)*(\w+)[^`]*`", card):
        folders = (PACKAGE / system, PACKAGE)
        candidates = [folder / file for folder in folders if (folder / file).is_file()]
        for path in candidates[:1]:
            text = path.read_text(encoding="utf-8")
            assert re.search(rf"\b{name}\b", text), f"{file}: no {name}"


@pytest.mark.parametrize("system", SYSTEMS)
def test_code_of_a_card_stands_in_the_file_that_it_names(system):
    card = (PACKAGE / system / "README.md").read_text(encoding="utf-8")
    excerpts = re.findall(r"<!-- code: (\S+) -->\n```python\n(.*?)```", card, flags=re.DOTALL)
    assert len(excerpts) == card.count("```python")
    for file, code in excerpts:
        # the same lines in the same order, whatever their common indent
        source = (PACKAGE / system / file).read_text(encoding="utf-8")
        indents = ("", "    ", " " * 8)
        assert any(textwrap.indent(code, indent) in source for indent in indents), file


def test_pages_are_generated_for_every_system_and_shared_folder():
    pages = generate.generated_pages()
    assert {f"code/{system}/index.md" for system in SYSTEMS} <= set(pages)
    assert {"code/common/api.md", "code/streams/api.md", "contributing.md"} <= set(pages)
    assert "::: fairseq_ext.routed.modules\n" in pages["code/routed/api.md"]
    assert pages["code/routed/api.md"].index("routed.modules\n") < pages[
        "code/routed/api.md"
    ].index("routed.config\n")


def test_names_of_cards_and_pages_become_links():
    text = "`fairseq_ext/dual/README.md` and `docs/dual.md`, not `docs/none.md`"
    assert generate.linked(text, "../") == (
        "[`fairseq_ext/dual/README.md`](../code/dual/index.md) and [`docs/dual.md`](../dual.md), "
        "not `docs/none.md`"
    )
