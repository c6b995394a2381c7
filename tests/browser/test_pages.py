"""The pages in a real browser: silent, offline, readable at both widths in both themes.

The browser is one that the machine has (`make browser` installs Debian's Chromium); where
there is none the tests are skipped, except where TRIAGE_NEED_BROWSER is set, as in CI.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from runbook_data import hostile

from triage.core.handover.runbook import build_runbook
from triage.render.charts import can_draw
from triage.render.html import page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NEEDED = bool(os.environ.get("TRIAGE_NEED_BROWSER"))
LOOKS = [(width, theme) for width in (800, 1600) for theme in ("light", "dark")]
pytestmark = [
    pytest.mark.real,
    # Playwright's driver is a process that is still there when the interpreter counts.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

# For each text on the page the contrast between it and what lies behind it, and its size.
MEASURE = """
() => {
  const parse = text => {
    const m = text.match(/rgba?\\(([\\d.]+), ([\\d.]+), ([\\d.]+)(?:, ([\\d.]+))?\\)/);
    return m ? [+m[1], +m[2], +m[3], m[4] === undefined ? 1 : +m[4]] : null;
  };
  const light = c => {
    const f = c.slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * f[0] + .7152 * f[1] + .0722 * f[2];
  };
  const behind = node => {
    for (let n = node; n; n = n.parentElement) {
      const c = parse(getComputedStyle(n).backgroundColor);
      if (c && c[3] === 1) return c;
    }
    return [255, 255, 255, 1];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    const box = node.getBoundingClientRect();
    if (!text || !box.width || !node.checkVisibility() || node.closest('.skip')) continue;
    const style = getComputedStyle(node), inPicture = node instanceof SVGElement;
    const colour = parse(inPicture ? style.fill : style.color);
    if (!colour) continue;
    const scale = inPicture ? box.height / node.getBBox().height : 1;
    const [a, b] = [light(colour), light(behind(node))].sort((x, y) => y - x);
    found.push({text: text.slice(0, 40), picture: inPicture, contrast: (a + .05) / (b + .05),
                size: parseFloat(style.fontSize) * scale});
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api") if not NEEDED else _needed()
    found = os.environ.get("TRIAGE_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        if NEEDED:
            pytest.fail("no browser is installed: make browser")
        pytest.skip("no browser is installed: make browser")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


def _needed() -> Any:
    import playwright.sync_api

    return playwright.sync_api


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "runbook.html"
    path.write_text(page(build_runbook(hostile()), footer="written by a test"), encoding="utf-8")
    return path


def opened(browser: Any, file: Path, width: int, theme: str) -> tuple[Any, list[str]]:
    """The page in a window of its own, and what it said or asked for beside itself."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, java_script_enabled=True
    )
    shown, said = context.new_page(), []
    shown.on("console", lambda message: said.append(f"console: {message.text}"))
    shown.on("pageerror", lambda error: said.append(f"error: {error}"))
    shown.on("request", lambda request: said.append(f"request: {request.url}"))
    shown.goto(file.as_uri())
    return shown, [line for line in said if line != f"request: {file.as_uri()}"]


@pytest.fixture(scope="module", params=LOOKS, ids=lambda look: f"{look[0]}-{look[1]}")
def look(request: pytest.FixtureRequest, browser: Any, file: Path) -> tuple[Any, list[str], int]:
    """The page as it is looked at: what is shown, what it said, the width of the window."""
    width, theme = request.param
    return (*opened(browser, file, width, theme), width)


Look = tuple[Any, list[str], int]


def test_the_page_is_silent_offline_and_as_wide_as_the_window(look: Look) -> None:
    shown, said, width = look
    assert said == []
    assert shown.evaluate("window.hacked") is None
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.evaluate("document.querySelectorAll('h2').length") > 12


def test_every_text_can_be_read(look: Look) -> None:
    shown, _, _ = look
    measured = shown.evaluate(MEASURE)
    assert len(measured) > 200
    assert [m for m in measured if m["contrast"] < 4.5 and not m["picture"]] == []
    assert [m for m in measured if m["contrast"] < 3 and m["picture"]] == []
    assert [m for m in measured if m["size"] < 11] == []


@pytest.mark.skipif(not can_draw() and not NEEDED, reason="what draws is not installed")
def test_the_pictures_are_there_and_keep_within_the_page(look: Look) -> None:
    shown, _, width = look
    boxes = shown.evaluate(
        "[...document.querySelectorAll('svg.chart')].map(n => n.getBoundingClientRect().toJSON())"
    )
    assert len(boxes) == 3
    for box in boxes:
        assert box["width"] >= 560
        assert box["height"] >= 150
        assert box["left"] >= 0
        assert box["right"] <= width
    painted = shown.evaluate(
        "[...document.querySelectorAll('svg.chart path, svg.chart text')]"
        ".map(n => getComputedStyle(n).fill)"
    )
    assert 'url("#hatch-same")' in painted, "a pattern of the page"
    assert not [fill for fill in painted if "var(" in fill], "each colour has a value"


def test_the_themes_differ_and_print_is_light(browser: Any, file: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, _ = opened(browser, file, 800, "light")
    dark, _ = opened(browser, file, 800, "dark")
    assert light.evaluate(ground) == "rgb(255, 255, 255)"
    assert dark.evaluate(ground) != light.evaluate(ground)
    dark.emulate_media(media="print")
    assert dark.evaluate(ground) == "rgb(255, 255, 255)"
    assert dark.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_it_prints_on_pages_of_paper(browser: Any, file: Path, tmp_path: Path) -> None:
    shown, _ = opened(browser, file, 800, "light")
    out = tmp_path / "runbook.pdf"
    shown.pdf(path=str(out), format="A4")
    pages = out.read_bytes().count(b"/Type /Page\n") or out.read_bytes().count(b"/Type /Page")
    assert 3 <= pages <= 40


def test_the_keyboard_comes_first_to_the_content_and_then_to_what_scrolls(
    browser: Any, file: Path
) -> None:
    shown, _ = opened(browser, file, 800, "light")
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert shown.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    shown.keyboard.press("Enter")
    assert shown.evaluate("location.hash") == "#content"
    shown.keyboard.press("Tab")
    within = "document.activeElement.closest('main') !== null"
    assert shown.evaluate(within)


def test_without_the_library_the_page_still_reads_well(browser: Any, tmp_path: Path) -> None:
    bare = tmp_path / "bare.html"
    bare.write_text(page(build_runbook(hostile()), drawn=lambda _chart: ""), encoding="utf-8")
    shown, said = opened(browser, bare, 800, "light")
    assert said == []
    assert shown.evaluate("document.querySelectorAll('svg.chart').length") == 0
    assert shown.evaluate("document.querySelectorAll('figure table').length") == 3
    assert shown.evaluate("document.documentElement.scrollWidth") <= 800


@pytest.mark.parametrize("width", [800, 1600])
def test_the_handbook_is_browsed_from_its_index_to_a_cause_and_back(
    browser: Any, tmp_path_factory: pytest.TempPathFactory, width: int
) -> None:
    from triage.session.handbook import write_handbook

    folder = tmp_path_factory.mktemp("handbook")
    write_handbook(folder)
    shown, said = opened(browser, folder / "index.html", width, "dark")
    shown.click("nav a:has-text('graph-capture')")
    assert shown.evaluate("location.hash") == "#graph-capture"
    shown.click("a[href='cublas-mla-absorb-bmm.html'] >> nth=0")
    shown.wait_for_selector("h1:has-text('cuBLAS')")
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert [m for m in shown.evaluate(MEASURE) if m["contrast"] < 4.5] == []
    shown.click("text=All runbooks")
    shown.wait_for_selector("h1:has-text('Runbooks')")
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert [line for line in said if "file://" not in line] == []
