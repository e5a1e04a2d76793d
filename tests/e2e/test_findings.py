"""Measurements of another tool, imported: the page says at once where they jump, and outlines the place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from cliffwatch.records.importing import import_run
from tests.cli.test_surface_along import measured
from tests.e2e.test_page import CHROMIUM, browser, open_page, serve
from tests.servers.processes import Server

__all__ = ["browser"]  # a fixture
pytestmark = [
    pytest.mark.beside,
    pytest.mark.e2e,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("findings")
    for name, place in {"before": 8, "lab": 16}.items():  # the newest is shown first
        import_run(measured(folder / f"{name}.jsonl", place), folder / "runs" / name, name=name, engine="vllm")
    yield from serve(folder / "runs")


def test_a_cliff_is_said_and_outlined(browser: Browser, service: Server) -> None:
    look = open_page(browser, f"{service.url}/#metric=ttft_s&statistic=p50")
    said = look.page.locator("#findings")
    expect(said).to_contain_text("jumps")
    expect(said).to_contain_text("from 4k to 8k at batch")
    outlined = look.page.locator('#heatmap td[data-jump="cliff"]')
    expect(outlined).to_have_count(10)  # one a batch size
    assert set(outlined.evaluate_all("cells => cells.map((cell) => cell.dataset.r)")) == {"4"}
    assert look.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert look.said == []
    look.page.close()


def test_an_untried_point_is_answered_or_refused_with_its_reason(browser: Browser, service: Server) -> None:
    look = open_page(browser, f"{service.url}/#metric=ttft_s")
    card = look.page.locator("#untried-card")
    card.get_by_label("Input tokens").fill("3000")
    card.get_by_label("Batch").fill("3")
    card.get_by_role("button").click()
    expect(card.locator("#untried-answer")).to_contain_text("90 % interval")
    expect(card.locator("#untried-answer")).to_contain_text("80 cells in all")
    assert "at_tokens=3000" in look.page.url and "at_batch=3" in look.page.url
    assert look.said == []
    look.page.close()
    refused = open_page(browser, f"{service.url}/#metric=ttft_s&at_tokens=200000&at_batch=2")
    answer = refused.page.locator("#untried-answer")
    expect(answer).to_contain_text("No answer: 200000 x 2 is outside what was measured")
    expect(answer).to_contain_text("Nearest measured: 64k x 2")
    expect(refused.page.locator("#untried-tokens")).to_have_value("200000")
    answer.get_by_role("link").click()
    expect(answer).to_contain_text("extrapolated")
    refused.page.close()


def test_a_knee_is_drawn_and_its_move_from_another_run_told(browser: Browser, service: Server) -> None:
    look = open_page(browser, f"{service.url}/#run=lab&metric=ttft_s")
    card = look.page.locator("#knee-card")
    expect(card.locator("#knee-words")).to_contain_text("flat, then growing")
    expect(card.locator("canvas")).to_be_visible()
    card.get_by_label("Against").select_option("before")
    expect(card.locator("#knee-words b")).to_contain_text("from before")
    expect(card.locator("#knee .u-series")).to_have_count(3)  # the axis and two runs
    card.locator("#knee-axis").select_option("rate")
    expect(card).to_contain_text("No request has the metric")  # of measurements without a clock no rate is known
    assert look.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert look.said == []
    look.page.close()


def test_use_of_the_hardware_is_shown_once_it_is_chosen(browser: Browser, service: Server) -> None:
    look = open_page(browser, f"{service.url}/#run=lab&metric=ttft_s&part=prefill&share=arithmetic")
    card = look.page.locator("#use-card")
    expect(card.locator("#use")).to_contain_text("Choose the hardware")
    card.locator("#use-hardware").select_option("H200")
    card.locator("#use-model").select_option("llama-3-8b")
    expect(card.locator("td[data-heat]")).to_have_count(80)
    expect(card.locator("caption")).to_contain_text("Arithmetic (MFU) used, prefill")
    expect(card.locator("#use-words")).to_contain_text("989 TFLOP/s")
    assert look.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert look.said == []
    look.page.close()
