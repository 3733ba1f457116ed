"""The search of the manual finds the page that a reader wants."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import search_words

REPOSITORY = Path(__file__).resolve().parents[2]
# {what is typed: pages of which one is among the first three}
WANTED = {
    "attention": {"multiway.html", "duo.html"},
    "back-translation": {"monolingual.html", "few-pairs.html"},
    "multilingual": {"multiway.html"},
    "low resource": {"few-pairs.html"},
    "--one-way": {"dual.html"},
    "--dual-alpha": {"dual.html"},
    "--pair-patience": {"schedules.html"},
    "--router-top": {"routed.html"},
    "--max-queue": {"serving.html"},
    "weights only load failed": {"fairseq-today.html"},
    "serve": {"serving.html"},
}


@pytest.mark.slow
def test_the_page_that_explains_is_among_the_first_three(run, tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    config = REPOSITORY / "docs" / "site" / "mkdocs.yml"
    run("python", "-m", "mkdocs", "build", "--strict", "-q", "-f", config, "-d", tmp_path / "site")
    script = Path(__file__).with_name("search_in_node.js")
    words = [node, script, tmp_path / "site", *WANTED]
    answer = subprocess.run(words, check=True, capture_output=True, text=True, timeout=120).stdout
    results = dict(zip(WANTED, json.loads(answer)))
    assert not {q: pages[:3] for q, pages in results.items() if not WANTED[q] & set(pages[:3])}


def test_options_belong_to_the_section_that_explains_them():
    html = """<h2 id="train">Train</h2><p><code>--beam 5</code></p>
    <table><tr>
    <td><code>--one-way</code></td><td><code>--other</code></td></tr>
    <tr><td><code>--lr</code>, <code>--warmup-updates 4</code></td></tr></table>
    <h3 id="who">Who</h3><ul><li><p><code>--join-at a=1</code>: late, by <code>--lr</code></p></li>
    <li><code>metric</code></li></ul>"""
    expected = {"train": ["--one-way", "--lr", "--warmup-updates"], "who": ["--join-at"]}
    assert search_words.explained_options(html) == expected


def test_tags_are_added_to_the_index(tmp_path):
    index = tmp_path / "search_index.json"
    docs = [{"location": "duo.html", "text": "Zwei"}, {"location": "dual.html#train", "text": "x"}]
    index.write_text(json.dumps({"docs": docs}))
    search_words.add_tags(index, {"dual.html#train": ["--one-way"]})
    tags = [entry.get("tags") for entry in json.loads(index.read_text())["docs"]]
    assert tags == [search_words.SUBJECTS["duo.html"], ["--one-way"]]


def test_subjects_are_those_of_pages_that_exist():
    for page in search_words.SUBJECTS:
        assert (REPOSITORY / "docs" / page).with_suffix(".md").is_file(), page
