"""The picture of the page of `fairseq-ext serve` in the manual: docs/serving.png.

    python docs/site/serving_page.py build/demo/model --text "My old woman calls lions."

FOLDER: what `make demo` has packed. Needs the extra "browser" and an installed Chromium.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

OUTPUT = Path(__file__).resolve().parents[1] / "serving.png"
TEXT = "My old woman calls lions although our task was solved by boys."
# as in tests/test_browser.py
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def draw(address: str, text: str, output: Path) -> None:
    """Write the picture: the page after a translation, with a cell of the map chosen."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        sys.exit(f"serving_page.py: none of {', '.join(PROGRAMS)} is in PATH; install Chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1100, "height": 900}, color_scheme="light")
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        page.fill("textarea", text)
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("#results:not([aria-busy]) td[role=gridcell]")
        page.locator("td[role=gridcell]").first.focus()
        page.screenshot(path=str(output), full_page=True)
        browser.close()


def main() -> None:
    """Serve the model and draw its page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--text", default=TEXT, help="what is typed")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    words = [sys.executable, "-m", "fairseq_ext", "serve", f"demo={args.folder}", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, encoding="utf-8") as server:
        try:
            printed = ""
            while "serving at" not in printed:
                line = server.stdout.readline()  # type: ignore[union-attr]
                if not line:
                    sys.exit(f"serving_page.py: the server has ended: {printed}")
                printed += line
            address = re.search(r"http://\S+?/", printed)
            assert address is not None
            draw(address.group(), args.text, args.output)
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
