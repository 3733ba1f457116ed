"""Hooks of mkdocs: pages made from the sources, beside those that lie in docs/.

For each folder of the package with a card: the card, the API of its modules, and the tests that the
card names. For `common` and `streams`: the API. CONTRIBUTING.md and CHANGELOG.md as they are.
"""

import re
from pathlib import Path
from typing import Dict, List

import search_words
from cards import Card
from equations import EquationExtension
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "fairseq_ext"
SHARED = ("common", "streams")
# their tables take the place of the table of contents
WIDE_PAGES = ("results.md",)
# how much their words count in the search, where those of other pages count 1
SEARCH_BOOSTS = {
    r"code/\w+/(api|tests)\.md": 0.1,
    r"code/\w+/index\.md": 0.25,
    r"(changelog|contributing|releasing|reliability|patches|other-numbers|fairseq-runs)\.md": 0.5,
    r"(results|benchmarks)/\w+(-\w+)*\.md": 0.5,
}
# {location of a section: options}, filled while the pages are made
EXPLAINED_OPTIONS: Dict[str, List[str]] = {}
COPIES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def systems() -> List[str]:
    """The folders of the package that have a card."""
    return sorted(path.parent.name for path in PACKAGE.glob("*/README.md"))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the generated pages to the navigation, and equations to the Markdown."""
    config.markdown_extensions.append(EquationExtension())
    section = next(item["Code"] for item in config.nav if "Code" in item)
    pages = {"Card": "index.md", "API": "api.md", "Tests": "tests.md"}
    section[:0] = [
        *({name: [{k: f"code/{name}/{v}"} for k, v in pages.items()]} for name in systems()),
        *({f"{folder} (shared)": f"code/{folder}/api.md"} for folder in SHARED),
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for path, text in generated_pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def generated_pages() -> Dict[str, str]:
    """{path in the site: Markdown} of all pages that do not lie in docs/."""
    pages = {}
    for system in systems():
        card = Card(PACKAGE, system)
        # the width is for the tables
        pages[f"code/{system}/index.md"] = "---\nhide:\n  - toc\n---\n\n" + linked(
            card.page(), "../../"
        )
        pages[f"code/{system}/tests.md"] = card.tests_page()
    for folder in (*systems(), *SHARED):
        pages[f"code/{folder}/api.md"] = api_page(folder)
    for source, path in COPIES.items():
        text = without_outer_links((REPOSITORY / source).read_text(encoding="utf-8"))
        pages[path] = linked(text.replace("](docs/", "]("), "")
    return pages


def without_outer_links(text: str) -> str:
    """Return the text with the names of files that the site has not, in place of links to them."""

    cards = [f"fairseq_ext/{system}/README.md" for system in systems()]

    def replacement(match: "re.Match[str]") -> str:
        words, target = match.groups()
        has_page = target.startswith("docs/") or target in (*cards, *COPIES)
        if has_page or not (REPOSITORY / target).exists():
            return match.group()
        return f"`{target}`" if words == target else f"{words} (`{target}`)"

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([\w./-]+)\)", replacement, text)


def api_page(folder: str) -> str:
    """Return the directives from which mkdocstrings makes the API of a folder's modules."""
    text = f"# {folder}: the modules\n\n"
    if folder not in SHARED:
        text += "[The card](index.md) says which equation of the paper each of them implements.\n"
    paths = [path for path in sorted((PACKAGE / folder).rglob("*.py")) if path.stem[0] != "_"]
    # the equations come first
    paths.sort(key=lambda path: (len(path.parts), not path.stem.endswith("modules")))
    for path in paths:
        name = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        text += f"\n::: {name}\n"
    return text


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Set how a page is shown and found; link the names of cards, and of pages in cards."""
    if page.file.src_uri in WIDE_PAGES:
        page.meta["hide"] = ["toc"]
    for pattern, boost in SEARCH_BOOSTS.items():
        if re.fullmatch(pattern, page.file.src_uri):
            page.meta["search"] = {"boost": boost}
    if page.file.generated_by:
        return markdown
    return linked(markdown, "../" * page.file.src_uri.count("/"))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Note which options the page explains; those that list what was changed or measured do not."""
    if "search" not in page.meta:
        for anchor, options in search_words.explained_options(html).items():
            EXPLAINED_OPTIONS[f"{page.url}#{anchor}"] = options
    return html


def on_post_build(config: MkDocsConfig) -> None:
    """Add words to the search index."""
    search_words.add_tags(Path(config.site_dir, "search", "search_index.json"), EXPLAINED_OPTIONS)


def linked(text: str, root: str) -> str:
    """Return the text with links from `fairseq_ext/X/README.md` and `docs/X.md` to their pages."""
    for system in systems():
        name, page = f"fairseq_ext/{system}/README.md", f"{root}code/{system}/index.md"
        text = text.replace(f"]({name})", f"]({page})")
        text = re.sub(rf"(?<!\[)`{name}`", f"[`{name}`]({page})", text)
    existing = r"(?<!\[)`docs/((?:\w|-)+\.md)`"
    return re.sub(existing, lambda m: page_link(m.group(), m.group(1), root), text)


def page_link(span: str, name: str, root: str) -> str:
    """Return a link to a page of docs/, or the span where there is none."""
    exists = (REPOSITORY / "docs" / name).is_file()
    return f"[{span}]({root}{name})" if exists else span
