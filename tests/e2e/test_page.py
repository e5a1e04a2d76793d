"""The service's page in a real browser over real run folders: right numbers, live, by keyboard, narrow, both themes."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from cliffwatch.records.manifest import RunState, VerdictState
from cliffwatch.records.reader import RunReader
from cliffwatch.records.writer import ShardWriter
from cliffwatch.report import words
from cliffwatch.slo.judge import judge
from cliffwatch.slo.spec import parse_slo
from tests.records.synthetic import SyntheticRun, make_manifest, make_row, make_run
from tests.servers.processes import Server, free_port, running

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
SLO_TEXT = """\
name: chat
objectives:
  - {sli: ttft, threshold: 60ms, target: 95%}
  - {sli: availability, target: 99.9%}
"""
# key, then row and column of the cell that has the focus
WALK = [
    ("ArrowRight", ["0", "1"]), ("ArrowDown", ["1", "1"]), ("End", ["1", "4"]), ("Home", ["1", "0"]),
    ("ArrowLeft", ["1", "0"]), ("PageDown", ["4", "0"]), ("PageUp", ["0", "0"]), ("ArrowUp", ["0", "0"]),
]  # fmt: skip
pytestmark = [
    pytest.mark.beside,
    pytest.mark.e2e,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@dataclass
class Look:
    """A page that was opened, what its console said and which addresses it asked."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page") / "runs"


@pytest.fixture(scope="module")
def run(root: Path) -> SyntheticRun:
    made = make_run(root / "closed", 4000, failures=0.03, manifest=make_manifest(run_id="closed"))
    (made.dir / "slo.yaml").write_text(SLO_TEXT, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def service(root: Path, run: SyntheticRun) -> Iterator[Server]:
    yield from serve(root)


def serve(folder: Path) -> Iterator[Server]:
    port = free_port()
    command = [sys.executable, "-m", "cliffwatch", "serve", "--runs", folder, "--port", str(port)]
    log = folder.parent / "service.log"
    with running(command, url=f"http://127.0.0.1:{port}", health="/healthz", log=log, ready_within_s=30) as server:
        yield server


def open_page(browser: Browser, address: str, *, width: int = 1280, scheme: str = "light") -> Look:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    look = Look(page)
    page.on("console", lambda message: look.said.append(message.text))
    page.on("pageerror", lambda error: look.said.append(str(error)))
    page.on("request", lambda request: look.asked.append(request.url))
    page.goto(address)
    return look


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_shows_a_run_without_errors_or_sideways_scroll(
    browser: Browser, service: Server, width: int, scheme: str
) -> None:
    look = open_page(browser, service.url, width=width, scheme=scheme)
    expect(look.page.locator("h1")).to_have_text("closed")  # the newest run, since the address named none
    expect(look.page.locator("#heatmap td[data-heat]").first).to_be_visible()
    expect(look.page.locator("#timeline canvas")).to_be_visible()
    assert look.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert look.said == []
    assert {address.split("/")[2] for address in look.asked} == {service.url.split("/")[2]}  # nothing from elsewhere
    look.page.close()


def test_numbers_equal_those_of_the_rows(browser: Browser, service: Server, run: SyntheticRun) -> None:
    ok = np.array([phase == "measured" and end == "ok" for phase, end in zip(
        run.table["phase"].to_pylist(), run.table["outcome"].to_pylist(), strict=True)])  # fmt: skip
    ttft_s = (np.array(run.table["first_token_ns"].to_pylist(), float) - run.table["intended_ns"].to_numpy()) / 1e9
    page = open_page(browser, f"{service.url}/#run=closed&statistic=p50").page
    cells = page.locator("#heatmap td")
    expect(cells.first).to_be_visible()
    counts = page.evaluate("[...document.querySelectorAll('#heatmap td small')].map((one) => one.textContent)")
    assert sum(int(text.removeprefix("n ").rstrip(" †").replace(",", "")) for text in counts) == ok.sum()
    lone = ok & (run.table["batch"].to_numpy() == 1) & (run.table["input_tokens"].to_numpy() >= 16384)
    last = page.locator("#heatmap tbody tr").last.locator("td").first
    median_ms = float(np.median(ttft_s[lone])) * 1000
    assert last.locator("b").inner_text().rstrip(" ▲") == f"{float(f'{median_ms:.3g}'):g} ms"
    assert last.locator("small").inner_text() == f"n {lone.sum()}"
    good = int(np.sum(ok & (ttft_s <= 0.060)))
    first = page.locator("#attainment .objective").first
    text = first.inner_text()
    n = int(text.split("· n ")[1].split(" ·")[0].replace(",", ""))
    assert f"{n - good:,} bad" in text
    share = float(first.locator("svg .value").text_content().removesuffix(" %"))  # type: ignore[union-attr]
    assert share == pytest.approx(good / n * 100, abs=0.06)
    assert "missed" in text
    page.close()


def test_shares_read_as_in_the_report(browser: Browser, service: Server, run: SyntheticRun) -> None:
    """Attainments rounded down and intervals outwards: the texts of `words`, which writes table and HTML report."""
    judgement = judge(RunReader(run.dir), parse_slo(SLO_TEXT, source="slo.yaml"))
    page = open_page(browser, f"{service.url}/#run=closed").page
    boxes = page.locator("#attainment .objective")
    expect(boxes).to_have_count(len(judgement.objectives))
    for box, one in zip(boxes.all(), judgement.objectives, strict=True):
        expect(box).to_contain_text(f"95 % interval {words.interval(one.low, one.high)}")
        expect(box.locator("svg .value")).to_have_text(words.attained(one.attainment))
    expect(page.locator("#attainment dl")).to_contain_text(words.attained(judgement.goodput.ratio))
    page.close()


ERROR = {"n": 1000, "p50_s": -0.0001, "p99_s": 0.0007, "max_s": 0.001}
LEVEL = {"streams": 20, "asked_streams": 20, "gap_s": 0.02, "ttft": ERROR, "itl": ERROR, "core_s_per_chunk": 1e-5}


def test_checks_read_as_in_the_report(browser: Browser, root: Path, service: Server) -> None:
    """Value, thresholds, n and state of each check, in the words of table and HTML report; the client's bias below."""
    calibration = {"levels": [{"name": "load", **LEVEL}], "took_s": 5.0}
    manifest = make_manifest(run_id="checked", created_unix_s=2.0, calibration=calibration, tightest_s={"ttft": 0.06})
    verdict = make_run(root / "checked", 300, failures=0.5, manifest=manifest).manifest.verdict
    assert verdict is not None
    checks = verdict.checks
    look = open_page(browser, f"{service.url}/#run=checked")
    expect(look.page.locator("#trust tbody tr")).to_have_count(len(checks))
    rows = look.page.locator("#trust tbody tr")
    shown = rows.evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")
    assert shown == [
        [
            one.check, words.checked(one.value, one.unit), words.limit(one.degraded, one),
            words.limit(one.invalid, one), words.UNKNOWN if one.n is None else f"{one.n:,}", words.trusted(one),
        ]
        for one in checks
    ]  # fmt: skip
    assert {one.state for one in checks} == {None, VerdictState.VALID, VerdictState.DEGRADED}
    expect(look.page.locator("#trust")).to_contain_text("at 20 streams: TTFT -100 µs, P99 700 µs (n 1,000)")
    assert look.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert look.said == []
    look.page.close()


def test_heatmap_is_walked_with_arrow_keys(browser: Browser, service: Server) -> None:
    page = open_page(browser, f"{service.url}/#run=closed").page
    expect(page.locator("#heatmap td").first).to_be_visible()
    assert page.locator('#heatmap td[tabindex="0"]').count() == 1
    page.locator("#columns").focus()
    page.keyboard.press("Tab")
    place = "[document.activeElement.dataset.r, document.activeElement.dataset.c]"
    assert page.evaluate(place) == ["0", "0"]
    for key, expected in WALK:
        page.keyboard.press(key)
        assert page.evaluate(place) == expected, key
        assert page.evaluate("document.activeElement.ariaLabel") == page.locator("#readout").inner_text()
    assert ", batch 1: " in page.locator("#readout").inner_text()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.close()


def test_a_cell_opens_its_requests_by_keyboard_and_closes_again(
    browser: Browser, service: Server, run: SyntheticRun
) -> None:
    look = open_page(browser, f"{service.url}/#run=closed", width=390)
    page, cell = look.page, look.page.locator('#heatmap td[data-r="1"][data-c="1"]')
    expect(cell).to_be_visible()
    expect(page.locator("#cell")).to_be_hidden()
    cell.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#cell-title")).to_be_focused()
    expect(page.locator("#cell-title")).to_have_text("Requests of input tokens 2k–4k, batch 2")
    table = run.table
    inside = (
        (table["input_tokens"].to_numpy() >= 2048) & (table["input_tokens"].to_numpy() < 4096)
        & (table["batch"].to_numpy() == 2) & (np.array(table["phase"].to_pylist()) == "measured")
    )  # fmt: skip
    ttft = (np.array(table["first_token_ns"].to_pylist(), float) - table["intended_ns"].to_numpy()) / 1e9
    slowest = table["request_id"].to_numpy()[inside][np.argsort(-np.nan_to_num(ttft[inside], nan=-1.0), kind="stable")]
    ids = page.locator("#cell tbody th")
    assert [int(text) for text in ids.all_inner_texts()] == slowest[:20].tolist()
    page.get_by_role("button", name="Faster").click()
    expect(ids.first).to_have_text(str(slowest[20]))
    assert "row=2048&column=2&offset=20" in page.url
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("#cell-title").press("Escape")
    expect(page.locator("#cell")).to_be_hidden()
    expect(cell).to_be_focused()
    assert look.said == []
    page.close()


def test_other_sides_may_be_chosen(browser: Browser, service: Server) -> None:
    page = open_page(browser, f"{service.url}/#run=closed&row=2048&column=2").page
    expect(page.locator("#cell tbody th")).to_have_count(20)
    page.locator("#columns").select_option("concurrency")
    expect(page.locator("#heatmap thead")).to_contain_text("concurrency")
    expect(page.locator("#cell")).to_be_hidden()  # it was no cell of this one
    page.locator("#rows").select_option("concurrency")  # changes places with the columns
    expect(page.locator("#columns")).to_have_value("input_tokens")
    expect(page.locator("#heatmap thead")).to_contain_text("input")
    page.close()


def test_each_plot_is_watched_once_however_often_it_is_drawn(browser: Browser, service: Server) -> None:
    page = browser.new_page()
    page.add_init_script("""
        window.watching = new Set();
        window.ResizeObserver = class extends ResizeObserver {
            observe(element) { watching.add(this); super.observe(element); }
            disconnect() { watching.delete(this); super.disconnect(); }
        };""")
    page.goto(f"{service.url}/#run=closed&metric=itl_s")
    for metric in ("e2e_s", "ttft_s", "itl_s"):
        page.locator("#metric").select_option(metric)
        expect(page.locator(f'#timeline[aria-label^="{metric.removesuffix("_s").upper()}"]')).to_be_visible()
    assert page.evaluate("watching.size") == page.locator(".uplot").count() > 1
    page.close()


def test_choices_are_in_the_address(browser: Browser, service: Server) -> None:
    page = open_page(browser, f"{service.url}/#run=closed&metric=itl_s&statistic=p99").page
    expect(page.locator("#heatmap caption")).to_contain_text("P99 of ITL")
    page.locator("#metric").select_option("e2e_s")
    expect(page.locator("#heatmap caption")).to_contain_text("P99 of E2E")
    assert "metric=e2e_s" in page.url
    page.go_back()
    expect(page.locator("#heatmap caption")).to_contain_text("P99 of ITL")
    expect(page.locator("#metric")).to_have_value("itl_s")
    page.close()


def test_wrong_choice_in_the_address_is_explained(browser: Browser, service: Server) -> None:
    page = open_page(browser, f"{service.url}/#run=closed&metric=speed").page
    expect(page.locator("#heatmap")).to_contain_text("Allowed: ttft_s")
    expect(page.locator("#attainment .objective").first).to_be_visible()  # the other parts stand
    page.locator("#heatmap a").click()
    expect(page.locator("#heatmap td[data-heat]").first).to_be_visible()
    page.close()


def test_heatmap_falls_back_to_medians_while_cells_are_thin(browser: Browser, root: Path, service: Server) -> None:
    make_run(root / "thin", 250, manifest=make_manifest(run_id="thin", created_unix_s=1.0))
    page = open_page(browser, f"{service.url}/#run=thin").page
    expect(page.locator("#heatmap caption")).to_contain_text("P50 of TTFT")
    expect(page.locator("#heatmap caption")).to_contain_text("too few for a P95")
    page.locator("#statistic").select_option("p95")
    expect(page.locator("#heatmap caption")).to_contain_text("P95 of TTFT")
    assert page.locator("#heatmap td.none").count() > 10
    page.close()


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[tuple[Path, Server]]:
    (tmp_path / "runs").mkdir()
    for server in serve(tmp_path / "runs"):
        yield tmp_path / "runs", server


def test_empty_then_started_then_live(browser: Browser, own_service: tuple[Path, Server]) -> None:
    """The page is opened before the run exists; it follows the run without a reload, and the focus stays."""
    folder, server = own_service
    look = open_page(browser, server.url)
    page = look.page
    expect(page.locator("h1")).to_have_text("No runs yet")
    expect(page.locator("#message")).to_contain_text("cliffwatch run")
    started = make_run(folder / "first", 0, state=RunState.RUNNING, workers=0, manifest=make_manifest(run_id="first"))
    expect(page.locator("#heatmap")).to_contain_text("no data yet", timeout=15_000)
    writer = ShardWriter(started.dir, 0, part_interval_s=0.1)
    add(writer, 0, 30)
    expect(page.locator("#heatmap td").first).to_contain_text("n 30", timeout=15_000)
    page.locator("#heatmap td").first.focus()
    page.evaluate("window.kept = document.activeElement")
    expect(page.locator("#heatmap caption")).to_contain_text("P95 of TTFT")
    add(writer, 30, 30)
    expect(page.locator("#heatmap td").first).to_contain_text("n 60", timeout=15_000)
    assert page.evaluate("document.activeElement === window.kept && window.kept.isConnected")
    expect(page.locator("#readout")).to_contain_text("n 60")
    expect(page.locator("#pulse-text")).to_have_text("Live")
    writer.close()
    assert look.said == []
    page.close()


def add(writer: ShardWriter, first: int, count: int) -> None:
    """Append rows and have them rolled into a part, as the load generator does."""
    for number in range(first, first + count):
        writer.issued(number, number * 1_000_000)
        writer.ended(make_row(number))
    time.sleep(0.2)
    writer.issued(first + count, 0)
    writer.ended(make_row(first + count, phase="warmup"))


def test_says_when_the_service_is_gone_and_recovers(browser: Browser, tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "one", 100, manifest=make_manifest(run_id="one"))
    serving = serve(tmp_path / "runs")
    look = open_page(browser, next(serving).url)
    expect(look.page.locator("h1")).to_have_text("one")
    serving.close()
    expect(look.page.locator("#pulse-text")).to_contain_text("does not answer", timeout=15_000)
    expect(look.page.locator("h1")).to_have_text("one")
    look.page.close()


def test_text_of_a_run_is_text(browser: Browser, own_service: tuple[Path, Server]) -> None:
    """Names come from files that others wrote: none of them is ever taken as markup."""
    folder, server = own_service
    evil = "<img src=x onerror=document.title='taken'>"
    manifest = make_manifest(run_id="x", name=evil, model=evil, engine=evil, warnings=(evil,), workload={"a": evil})
    make_run(folder / "<b>bold", 50, failures=0.5, manifest=manifest)
    page = open_page(browser, server.url).page
    expect(page.locator("h1")).to_have_text("<b>bold")
    expect(page.locator("#outcomes td.number").first).to_be_visible()
    assert page.locator("main img, main b b, h1 b").count() == 0
    assert "taken" not in page.title()
    page.close()
