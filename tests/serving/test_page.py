"""The page of the server: its files, and in a browser, typed into as a user does."""

import re
from pathlib import Path

import pytest
from serving.support import running
from test_browser import SIZE_OF_THE_PAGE, browser  # noqa: F401

from fairseq_ext.tools.serving.limits import Limits
from fairseq_ext.tools.serving.served import ServedModel

PAGE = Path(__file__).parents[2] / "fairseq_ext" / "tools" / "serving" / "page"
# {name on the page: system, more options of its training}
MODELS = {
    "dual": ("dual_transformer",),
    "routed": ("routed_gru",),
    "twin": ("twin_lstm",),
    "labels": ("duo_classifier",),
    "language": ("gru_lm",),
    "twins": ("twin_lstm_lm",),
    "sources": ("multiway_gru", "--lang-pairs", "xx-yy,zz-yy"),
}
MAP = "table[role=grid]"
CELL = "td[role=gridcell]"
slow = pytest.mark.slow


def test_nothing_is_fetched_from_elsewhere():
    for path in PAGE.iterdir():
        text = path.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert not re.search(r"https?:|//[a-z]+\.", text), path.name
        # what the headers of the server forbid
        assert "style=" not in text and not re.search(r"<script>|javascript:", text), path.name


def test_files_name_files_that_are_there():
    names = {path.name for path in PAGE.iterdir()}
    html = (PAGE / "index.html").read_text(encoding="utf-8")
    assert set(re.findall(r'(?:src|href)="([\w.]+\.(?:js|css|svg))"', html)) <= names
    for path in PAGE.glob("*.js"):
        imported = re.findall(r"from '\./([\w.]+)'", path.read_text(encoding="utf-8"))
        assert set(imported) <= names, path.name


@pytest.fixture(scope="module")
def address(loaded):
    limits = Limits()
    models = {name: ServedModel(name, loaded(*words), limits) for name, words in MODELS.items()}
    with running(models, limits) as client:
        yield f"http://127.0.0.1:{client.port}/"


@pytest.fixture
def problems():
    """What the browser has reported."""
    return []


@pytest.fixture(params=[1280, 320], ids=str)
def page(request, browser, address, problems):  # noqa: F811
    """The page, at the widths of a screen and of a small phone; no error may be reported."""
    tab = browser.new_page()
    tab.set_viewport_size({"width": request.param, "height": 900})
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda line: line.type == "error" and problems.append(line.text))
    tab.on("request", lambda r: r.url.startswith(address) or problems.append(f"fetched: {r.url}"))
    tab.goto(address)
    tab.wait_for_selector("body[data-ready]")
    yield tab
    content, window = tab.evaluate(SIZE_OF_THE_PAGE)
    tab.close()
    assert content <= window == request.param
    assert not problems, "\n".join(problems)


def shown(page, model, text, direction=None):
    """Choose, type, and wait for what is shown; the parts of the page by their titles."""
    page.select_option("#model", label=model)
    if direction:
        page.select_option("#direction", direction)
    page.fill("textarea", text)
    return submitted(page)


def submitted(page):
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#results .card")
    page.wait_for_selector("#results:not([aria-busy])")
    return page.locator("#results h2").all_text_contents()


@slow
def test_translate_both_ways_and_read_the_map(page):
    parts = shown(page, "dual", "an1 av2 an3 at1")
    assert parts == ["Translations", "Attention", "There and back", "Surprise by word"]
    rows = page.locator(".hypothesis")
    assert rows.count() == 3 and "dual" in rows.first.text_content()
    assert page.locator(f"{MAP} thead th").all_text_contents() == [
        *"an1 av2 an3 at1".split(), "end"
    ]  # fmt: skip
    cell = page.locator(CELL).nth(1)
    cell.hover()
    assert re.fullmatch(r"“\S+” looks at “av2”: \d\.\d\d", page.text_content("figcaption"))
    best = page.get_attribute("input[name=hypothesis]:checked", "data-text")
    page.click("#swap")
    assert page.input_value("textarea") == best and page.input_value("#direction") == "yy-xx"
    assert submitted(page)[0] == "Translations"


@slow
def test_the_keyboard_reaches_everything(page):
    page.select_option("#model", label="dual")
    page.focus("textarea")
    page.keyboard.type("an1 av2 an3")
    focused = "document.activeElement.id || document.activeElement.name"
    reached = []
    for _ in range(3):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(focused))
    assert reached == ["beam", "nbest", "go"]
    page.keyboard.press("Enter")
    page.wait_for_selector(CELL)
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "alpha"
    page.keyboard.press("End")
    assert page.text_content("output") == "1.00"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "hypothesis"
    before = page.get_attribute("input[name=hypothesis]:checked", "data-text")
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("input[name=hypothesis]:checked", "data-text") != before
    page.keyboard.press("Tab")  # the map is one stop, and arrows walk in it
    if page.evaluate("document.activeElement.type") == "checkbox":
        page.keyboard.press("Tab")
    place = "[...document.querySelectorAll('td[role=gridcell]')].indexOf(document.activeElement)"
    columns = page.locator(f"{MAP} thead th").count()
    places = []
    for key in ("ArrowRight", "ArrowDown", "End", "ArrowRight", "Home", "ArrowUp"):
        page.keyboard.press(key)
        places.append(page.evaluate(place))
    last = 2 * columns - 1
    assert places == [1, columns + 1, last, last, columns, 0]
    assert page.text_content("figcaption").startswith("“")


@slow
@pytest.mark.parametrize(
    "model, text, direction, parts",
    [
        ("routed", "an1 av2", "xx-zz", ["Translations", "Attention", "Blocks by word", "Surprise"]),
        ("twin", "an1 av2", None, ["Translations", "Attention", "Distance of the twins", "Surpr"]),
        ("labels", "good film was it", None, ["Labels", "Attention over both embeddings"]),
        ("language", "un1 uv2", None, ["Text", "Surprise by word"]),
        ("twins", "un1 uv2", None, ["Text", "Distance of the twins", "Surprise by word"]),
    ],
)
def test_every_system_shows_what_it_has(page, model, text, direction, parts):
    titles = shown(page, model, text, direction)
    assert len(titles) == len(parts)
    assert all(title.startswith(part) for title, part in zip(titles, parts))
    for table in page.locator(MAP).all():
        assert table.get_attribute("aria-label") and table.locator(CELL).count()


@slow
def test_several_sources_have_a_field_each(page):
    page.select_option("#model", label="sources")
    page.select_option("#direction", "xx+zz-yy")
    assert page.locator("textarea").count() == 2
    for area, text in zip(page.locator("textarea").all(), ("an1 av2", "iv2 in1")):
        area.fill(text)
    assert submitted(page)[:2] == ["Translations", "Attention"]
    columns = page.locator(f"{MAP} thead th").all_text_contents()
    assert columns == ["an1", "av2", "end", "iv2", "in1", "end"]


@slow
def test_errors_are_said(page, problems):
    page.select_option("#model", label="dual")
    page.focus("textarea")
    page.keyboard.press("Control+Enter")
    assert page.text_content("#status") == "Type a sentence first."
    page.route("**/translate", lambda route: route.fulfill(
        status=503, json={"error": "9 sentences wait already"}
    ))  # fmt: skip
    page.keyboard.type("an1")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#status.error")
    assert page.text_content("#status") == "9 sentences wait already"
    assert len(problems) == 1 and "503" in problems.pop()


@slow
def test_translations_are_shown_without_the_way_back(page, problems):
    """The server's limits are of a request: n-best texts may be too many, or too long."""
    page.route("**/score", lambda route: route.fulfill(
        status=422, json={"error": "3 sentences; allowed: 2"}
    ))  # fmt: skip
    assert shown(page, "dual", "an1 av2") == ["Translations", "Attention", "Surprise by word"]
    assert "Without the way back: 3 sentences; allowed: 2" in page.text_content("#results")
    assert problems and all("422" in line for line in problems)
    problems.clear()


@slow
def test_long_words_and_sentences_stay_inside(page):
    shown(page, "dual", "w" * 300 + " an1" * 60)
    assert page.locator(CELL).count() > 60


@slow
def test_dark_colours_follow_the_system(page):
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(colour) != light
