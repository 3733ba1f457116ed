"""Pages of the site that are made from files outside docs/."""

import re

import generate
import pytest


@pytest.mark.parametrize(
    "text, page",
    [
        ("[examples/README.md](examples/README.md)", "`examples/README.md`"),
        ("see [them](examples/README.md).", "see them (`examples/README.md`)."),
        ("[a page](docs/cli.md)", "[a page](docs/cli.md)"),
        ("[card](fairseq_ext/dual/README.md)", "[card](fairseq_ext/dual/README.md)"),
        ("[how](CONTRIBUTING.md)", "[how](CONTRIBUTING.md)"),
        ("[nowhere](no/such.file)", "[nowhere](no/such.file)"),  # mkdocs says so
    ],
)
def test_files_without_a_page_are_named(text, page):
    assert generate.without_outer_links(text) == page


@pytest.mark.parametrize("source", generate.COPIES)
def test_copies_link_to_pages_only(source):
    pages = generate.generated_pages()
    text = re.sub(r"`[^`]*`", "", pages[generate.COPIES[source]])
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        exists = (generate.REPOSITORY / "docs" / target).is_file() or target in pages
        assert exists or target.startswith("http"), target


def test_boosts_of_the_search_are_for_pages_that_exist():
    pages = [*generate.generated_pages()]
    docs = generate.REPOSITORY / "docs"
    pages += [str(path.relative_to(docs)) for path in docs.rglob("*.md")]
    for pattern in generate.SEARCH_BOOSTS:
        assert any(re.fullmatch(pattern, page) for page in pages), pattern
