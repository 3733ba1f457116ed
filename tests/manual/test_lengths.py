"""How much of a page a reader sees before unfolding anything."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS = sorted(path.name for path in (DOCS / "results").glob("*.md"))
# page: how many words of text outside tables, code and what is folded away
LIMITS = {
    **{f"results/{name}": 1200 for name in RESULTS},
    "results.md": 1200,
    "benchmarks/README.md": 1000,
    "reliability.md": 1000,
}


def visible_words(text):
    """The number of words that are neither in tables, code and comments nor folded away."""
    text = re.sub(r"<details.*?</details>", "", text, flags=re.DOTALL)
    assert "<details" not in text and "</details" not in text  # none is nested or left open
    text = re.sub(r"(?ms)^```.*?^```$|<!--.*?-->", "", text)
    lines = [line for line in text.splitlines() if not line.startswith("|")]
    return len(re.findall(r"\w[\w'.,%-]*", "\n".join(lines)))


def test_what_is_counted():
    text = "# One two\n\n| three | four |\n<!-- five -->\n\nSix's 7.5 eight.\n"
    folded = "<details>\n<summary>nine</summary>\nten\n</details>\n```bash\neleven\n```\n"
    assert visible_words(text + folded) == 5


@pytest.mark.parametrize("page", LIMITS)
def test_pages_are_short(page):
    assert visible_words((DOCS / page).read_text(encoding="utf-8")) <= LIMITS[page]


@pytest.mark.parametrize("name", RESULTS)
def test_a_page_of_results_has_its_parts(name):
    text = (DOCS / "results" / name).read_text(encoding="utf-8")
    before = text.split("<details")[0]
    for part in ("**The paper's claim.**", "**Verdict.**", "\n| ", "\n![", "## What limits this"):
        assert part in before, part
    # the verdict, a table and a picture come before the first heading
    first = text.split("\n## ")[0]
    assert "**Verdict.**" in first and "\n| " in first and "\n![" in first


def test_goals_and_history_are_elsewhere():
    for page in [DOCS.parent / "README.md", *DOCS.rglob("*.md")]:
        headings = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
        assert not [text for text in headings if re.search(r"(?i)\bgoals?\b|history", text)], page
