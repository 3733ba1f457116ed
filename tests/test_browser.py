"""The built manual in a browser: `make browser`.

Chromium reads every page from a server on this machine, at the widths of a phone and of a screen.
It comes from the system's packages (Debian: `apt-get install chromium`), what drives it from the
extra "browser".
"""

import functools
import http.server
import shutil
import threading
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# without a sandbox, which root cannot have; without anything that would reach another machine
ARGUMENTS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
--disable-background-networking --disable-component-update --disable-sync""".split()
WIDTHS = (390, 1280)
PATIENCE = 120_000  # ms; the pages of the modules take longer than the default on a busy machine
SIZE_OF_THE_PAGE = "[document.documentElement.scrollWidth, window.innerWidth]"
BROKEN_PICTURES = "[...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
LAZY_PICTURES = "document.querySelectorAll('img').forEach(i => { i.loading = 'eager' })"
LINKS = "[...document.querySelectorAll('a[href]')].map(a => a.href)"
ANCHORS = "[...document.querySelectorAll('[id]')].map(e => e.id)"

pytestmark = pytest.mark.slow


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line for each of them."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(run, tmp_path_factory):
    """The folder of the built manual."""
    folder = tmp_path_factory.mktemp("manual") / "site"
    config = REPOSITORY / "docs" / "site" / "mkdocs.yml"
    run("python", "-m", "mkdocs", "build", "--strict", "-q", "-f", config, "-d", folder)
    return folder


@pytest.fixture(scope="module")
def address(site):
    """Where the manual is served."""
    handler = functools.partial(QuietHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser with a profile of its own; the test is skipped where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(PROGRAMS)} is in PATH")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install '.[browser]'"
    )
    profile = tmp_path_factory.mktemp("profile")
    with playwright.sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            str(profile), executable_path=program, headless=True, args=ARGUMENTS
        )
        yield context
        context.close()


@pytest.fixture
def page(browser, address):
    """An empty tab; the test fails if a script does, or if anything else than the site is read."""
    tab, problems = browser.new_page(), []
    tab.set_default_timeout(PATIENCE)
    tab.on("pageerror", lambda error: problems.append(f"{tab.url}: {error}"))
    tab.on("console", lambda line: line.type == "error" and problems.append(line.text))
    local = (address, "data:", "blob:")
    tab.on("request", lambda r: r.url.startswith(local) or problems.append(f"fetched: {r.url}"))
    tab.on("response", lambda r: r.status < 400 or problems.append(f"{r.status}: {r.url}"))
    yield tab
    tab.close()
    assert not problems, "\n".join(problems)


def html_files(site):
    """The pages of the site, relative to it."""
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_the_window_and_all_pictures_load(page, site, address, width):
    page.set_viewport_size({"width": width, "height": 900})
    failures = []
    for name in html_files(site):
        page.goto(address + name)
        page.evaluate(LAZY_PICTURES)
        page.wait_for_load_state("networkidle")
        content, window = page.evaluate(SIZE_OF_THE_PAGE)
        failures += [f"{name}: {content} px wide"] if content > window else []
        failures += [f"{name}: {picture}" for picture in page.evaluate(BROKEN_PICTURES)]
    assert not failures, "\n".join(failures)


def test_links_lead_to_pages_and_headings(page, site, address):
    anchors, links = {}, {}
    for name in html_files(site):
        page.goto(address + name, wait_until="domcontentloaded")
        anchors[name] = set(page.evaluate(ANCHORS))
        links[name] = {link for link in page.evaluate(LINKS) if link.startswith(address)}
    broken = []
    for name, targets in links.items():
        for target in targets:
            path, anchor = urldefrag(target[len(address) :])
            path = unquote(path) or "index.html"
            has_heading = not anchor or unquote(anchor) in anchors.get(path, ())
            if not (site / path).is_file() or not has_heading:
                broken.append(f"{name}: {target}")
    assert len(anchors) > 30 and sum(map(len, links.values())) > 1000
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "query, name",
    [
        ("--dual-alpha", "dual.html"),
        ("--router-top", "routed.html"),
        ("--pair-patience", "schedules.html"),
        ("--join-at", "monolingual.html"),
        ("--share-all-embeddings", "own-data.html"),
        ("weights only load failed", "fairseq-today.html"),
    ],
)
def test_search_finds_the_page_that_explains(page, address, width, query, name):
    """Among the first five."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(address + "index.html")
    if width < 1000:
        page.click("label.md-header__button[for=__search]")
    page.type("input.md-search__input", query)
    # one link to each page, without the places on it
    results = ".md-search-result__item > .md-search-result__link:first-child"
    page.wait_for_selector(results)
    links = [link.get_attribute("href") for link in page.query_selector_all(results)[:5]]
    assert any(f"/{name}" in link for link in links), links


def test_equations_are_mathematics_and_code_can_be_copied(page, address):
    page.goto(address + "routed.html")
    page.wait_for_selector("button.md-clipboard, .md-code__button")
    assert page.locator("table.equations math").count() >= 4
    assert page.locator(".highlight span[class]").count() > 10


def test_the_colours_can_be_changed(page, address):
    page.goto(address + "index.html")
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    assert page.evaluate(scheme) == "default"
    page.click("label[title='Dark colours']")
    assert page.evaluate(scheme) == "slate"
    page.reload()
    assert page.evaluate(scheme) == "slate"


def test_a_failing_script_would_be_noticed(page, address):
    """The browser reports it; in another tab, as the fixture's would fail."""
    errors, tab = [], page.context.new_page()
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(address + "index.html")
    tab.evaluate("setTimeout(() => { throw new Error('on purpose') })")
    tab.wait_for_timeout(200)
    tab.close()
    assert errors == ["on purpose"]


def test_a_wide_page_would_be_noticed(page, address):
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(address + "index.html")
    page.evaluate("document.querySelector('h1').style.width = '2000px'")
    content, window = page.evaluate(SIZE_OF_THE_PAGE)
    assert content > window == 390
