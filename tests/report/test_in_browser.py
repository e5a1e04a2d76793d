"""The HTML report in a real browser: no error, no request, no sideways scroll, usable by keyboard, both themes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from cliffwatch.records.reader import RunReader
from cliffwatch.report import html, words
from cliffwatch.report.summary import build
from cliffwatch.slo.spec import load_slo
from cliffwatch.units import format_seconds
from tests.records.synthetic import make_run

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.beside,
    pytest.mark.e2e,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    run = make_run(folder / "run", 3000, rate=20, gaps=False).dir
    path = folder / "report.html"
    path.write_text(html.render(RunReader(run), build(run, load_slo("longtail"))), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_draws_offline_without_errors_or_sideways_scroll(
    browser: Browser, page_file: Path, width: int, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file.as_uri())
    assert page.locator("canvas").count() == 8  # two of them knees
    assert page.locator("svg.nines").count() == 5
    assert page.locator("table.heatmap td[data-heat]").count() > 10
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert said == []
    assert asked == [page_file.as_uri()]
    page.close()


def test_is_usable_by_keyboard(browser: Browser, page_file: Path) -> None:
    page = browser.new_page()
    page.goto(page_file.as_uri())
    chart = page.locator("[data-plot=distribution-ttft]")
    chart.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "ms" in chart.locator(".u-value").first.inner_text()
    before = page.locator("#heatmap").inner_text()
    page.locator("#heatmap-choice").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#heatmap").inner_text() != before
    page.locator("#theme").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 18, 23)"
    page.close()


def test_a_cell_shows_its_slowest_requests_by_keyboard(browser: Browser, page_file: Path) -> None:
    page = browser.new_page()
    page.goto(page_file.as_uri())
    page.locator("#heatmap tbody td[tabindex]").first.focus()
    page.keyboard.press("Enter")
    rows = page.locator("#heatmap-requests tbody tr")
    assert rows.count() == 5
    assert "The slowest 5 of" in page.locator("#heatmap-requests caption").inner_text()
    page.close()


def test_the_page_writes_figures_as_the_tables_do(browser: Browser, page_file: Path) -> None:
    page = browser.new_page()
    page.goto(page_file.as_uri())
    times = [None, 0, 4.2e-7, 0.0009996, 0.0123456, 0.9996, 1, 3.14159, 119.96, 1234.5, 7199, 90000.0]
    assert page.evaluate("times => times.map(cliffwatch.format.seconds)", times) == [*map(format_seconds, times)]
    shares = [None, 0, 0.0017, 0.25, 0.9, 0.9496, 0.95, 0.98991, 0.9949, 0.9995, 0.99999, 1]
    for name, ours in (("share", words.share), ("attained", words.attained)):
        assert page.evaluate(f"all => all.map((one) => cliffwatch.format.{name}(one))", shares) == [*map(ours, shares)]
    intervals = [(None, None), (0, 0.4345), (0.5, 0.9), (0.89991, 0.95001), (0.98511, 0.99826), (0.9962, 1)]
    assert page.evaluate("all => all.map((one) => cliffwatch.format.interval(...one))", intervals) == [
        words.interval(*one) for one in intervals
    ]
    page.close()


def test_has_its_numbers_without_javascript(browser: Browser, page_file: Path) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(page_file.as_uri())
    assert page.get_by_text("of 5 objectives missed").count() == 1
    assert page.locator("noscript table").count() == 4
    page.close()
