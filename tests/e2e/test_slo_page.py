"""The page of SLOs in a real browser: right figures, what fires, its course, and a Prometheus that goes away."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.test_page import browser, open_page, pytestmark  # noqa: F401  a fixture, and what it needs
from tests.servers.processes import Server, free_port, running
from tests.slo.live.records import OBJECTIVE, SLO, WINDOWS, records
from tests.slo.live.scripted import Script, Scripted, answer, serving

OWN = {**OBJECTIVE, "model_name": "<b>m</b>"}


def prometheus(bad: float, server: Scripted) -> Script:
    """Records of now, and of every instant asked for the same ratio; one alert that began half an hour ago."""
    now = records(bad)

    def script(path: str, query: str) -> tuple[int, bytes]:
        if path != "/api/v1/query_range":
            return now(path, query)
        end_s = server.ends[-1]
        if query.startswith("ALERTS"):
            labels = {"alertname": "SloBurn1h", "alertstate": "firing", "severity": "page", **OWN}
            rows = [{"metric": labels, "values": [[end_s - 60 * at, "1"] for at in range(30, -1, -1)]}]
        else:
            rows = [
                {"metric": {"__name__": f"cliffwatch_slo:bad:ratio{window}", **OBJECTIVE, "model_name": "m"},
                 "values": [[end_s - 720 * at, str(bad)] for at in range(119, -1, -1)]}
                for window in (*WINDOWS, "30d")
            ]  # fmt: skip
        return 200, answer({"resultType": "matrix", "result": rows})

    return script


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with serving(lambda _path, _query: (503, b"")) as server:
        server.script = prometheus(0.2, server)
        yield server


@pytest.fixture
def service(tmp_path: Path, scripted: Scripted) -> Iterator[Server]:
    (tmp_path / "slo.yaml").write_text(SLO)
    (tmp_path / "runs").mkdir()
    port = free_port()
    command = [
        sys.executable, "-m", "cliffwatch", "serve", "--runs", tmp_path / "runs", "--port", str(port),
        "--watch", tmp_path / "slo.yaml", "--prometheus", scripted.url,
    ]  # fmt: skip
    url, log = f"http://127.0.0.1:{port}", tmp_path / "service.log"
    with running(command, url=url, health="/healthz", log=log, ready_within_s=30) as server:
        yield server


def test_shows_what_burns_and_says_when_prometheus_is_gone(
    browser: Browser,  # noqa: F811  the fixture
    service: Server,
    scripted: Scripted,
) -> None:
    """20 % bad of a budget of 1 %: attained 80 %, -1900 % left, burning 20 times too fast."""
    look = open_page(browser, f"{service.url}/slos")
    page = look.page
    expect(page.locator("h1")).to_have_text("chat")
    expect(page.locator(".badges")).to_contain_text("a page fires")
    row = page.locator("#objectives tbody tr")
    for text in ("80.0 %", "25,920,000", "-1900.0 %", "20×", "exhausted", "spent"):
        expect(row).to_contain_text(text)
    expect(page.locator("#budget canvas")).to_be_visible()
    expect(page.locator("#burn canvas")).to_be_visible()
    expect(page.locator("#alerts")).to_contain_text("SloBurn1h (page)")
    expect(page.locator("#alerts tbody tr")).to_contain_text("still fires")
    assert look.said == []
    assert {address.split("/")[2] for address in look.asked} == {service.url.split("/")[2]}
    scripted.script = lambda _path, _query: (503, b'{"status":"error","error":"starting up"}')
    page.wait_for_timeout(5_100)  # a reading is kept for 5 s
    page.reload()
    expect(page.locator("#head .banner")).to_contain_text("starting up")
    expect(page.locator(".badges")).to_contain_text("stale")
    expect(page.locator("#pulse-text")).to_have_text("Old figures")
    page.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_fits_its_window(browser: Browser, service: Server, width: int) -> None:  # noqa: F811  the fixture
    look = open_page(browser, f"{service.url}/slos", width=width, scheme="dark")
    expect(look.page.locator("#burn canvas")).to_be_visible()
    assert look.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    look.page.close()
